import { Link } from '@tanstack/react-router'
import { Menu as MenuIcon } from 'lucide-react'
import { useNow } from '../relative-time.tsx'
import { StatusShape } from '../status.tsx'
import type { NavItem } from './nav.ts'
import { type SyncPillProps, syncWords } from './sync-pill.tsx'

const CELL =
  'relative flex min-w-0 flex-1 flex-col items-center justify-center gap-0.5 text-2xs text-text-3 select-none ' +
  'aria-[current=page]:font-medium aria-[current=page]:text-accent-ink focus-visible:-outline-offset-2'

export type BottomBarProps = { items: readonly NavItem[]; sync: SyncPillProps; onMore: () => void }

/** The phone's bar: up to four places and More, which carries the sync mark unless all is synced. */
export function BottomBar({ items, sync, onMore }: BottomBarProps) {
  const { title, shape, meaning } = syncWords(sync, useNow())
  return (
    <nav
      aria-label="Main"
      className="flex h-14 shrink-0 border-t border-line bg-bg pb-[env(safe-area-inset-bottom)] [box-sizing:content-box]"
    >
      {items.map(({ icon: Icon, ...item }) => (
        <Link key={item.id} to={item.to} activeOptions={{ exact: item.to === '/' }} className={CELL}>
          <span className="relative">
            {item.leading ?? (Icon && <Icon className="size-5" strokeWidth={1.75} aria-hidden="true" />)}
            {item.count && item.urgent ? (
              <span className="nums absolute -top-1 left-3 grid h-3.5 min-w-3.5 place-items-center rounded-full bg-accent px-1 text-[9px] leading-none font-medium text-on-accent">
                <span aria-hidden="true">{item.count > 99 ? '99+' : item.count}</span>
                <span className="sr-only">{item.countLabel ?? item.count}</span>
              </span>
            ) : null}
          </span>
          <span className="max-w-full truncate px-1">{item.label}</span>
        </Link>
      ))}
      <button type="button" onClick={onMore} className={CELL}>
        <span className="relative">
          <MenuIcon className="size-5" strokeWidth={1.75} aria-hidden="true" />
          {meaning !== 'good' && (
            <span className="absolute -top-1.5 left-3.5 rounded-full bg-bg p-px [--glyph:var(--bg)]">
              <StatusShape shape={shape} meaning={meaning} label={title} />
            </span>
          )}
        </span>
        More
      </button>
    </nav>
  )
}
