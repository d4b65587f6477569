import { Link } from '@tanstack/react-router'
import { ChevronsUpDown, PanelLeft, Search, SquarePen } from 'lucide-react'
import { PersonAvatar } from '../avatar.tsx'
import { Count } from '../badge.tsx'
import { cx } from '../cx.ts'
import { IconButton } from '../icon-button.tsx'
import { Menu } from '../menu.tsx'
import { Tooltip } from '../tooltip.tsx'
import type { NavItem, ShellProps } from './nav.ts'
import { SyncPill } from './sync-pill.tsx'

export type SidebarProps = Omit<ShellProps, 'children' | 'banner' | 'phoneItems'> & {
  closed: boolean
  /** Missing inside the phone's sheet. */
  onToggle?: (() => void) | undefined
  /** After a link was followed: close the sheet. */
  onNavigate?: (() => void) | undefined
}

/** The mark: the icon's ring and tail, drawn for 20 px. */
function Mark() {
  return (
    <span aria-hidden="true" className="grid size-5 shrink-0 place-items-center rounded-sm bg-accent text-on-accent">
      <svg
        viewBox="0 0 20 20"
        className="size-5"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.9"
        strokeLinecap="round"
        aria-hidden="true"
      >
        <circle cx="9.7" cy="9.7" r="4.7" />
        <path d="M12.6 12.6l2.5 2.5" />
        <circle cx="9.7" cy="9.7" r="1.3" fill="currentColor" stroke="none" />
      </svg>
    </span>
  )
}

function Item({ item, closed, onNavigate }: { item: NavItem; closed: boolean; onNavigate: (() => void) | undefined }) {
  const Icon = item.icon
  const link = (
    <Link
      to={item.to}
      activeOptions={{ exact: item.to === '/' }}
      onClick={onNavigate}
      aria-label={closed ? item.label : undefined}
      className={cx(
        'group/item relative flex h-7 items-center rounded-control text-text-2 select-none hover:bg-surface-3 hover:text-text-1 touch:h-11',
        'aria-[current=page]:bg-surface-3 aria-[current=page]:font-medium aria-[current=page]:text-text-1',
        closed ? 'w-8 justify-center touch:w-11' : 'gap-2 px-2',
      )}
    >
      {item.leading ??
        (Icon && (
          <Icon
            className="size-4 shrink-0 text-text-3 group-aria-[current=page]/item:text-accent-ink"
            strokeWidth={1.75}
            aria-hidden="true"
          />
        ))}
      {!closed && <span className="min-w-0 flex-1 truncate">{item.label}</span>}
      {item.count ? (
        closed ? (
          <span
            aria-hidden="true"
            className={cx('absolute top-0.5 right-0.5 size-1.5 rounded-full', item.urgent ? 'bg-accent' : 'bg-text-3')}
          />
        ) : (
          <Count value={item.count} urgent={item.urgent ?? false} label={item.countLabel ?? String(item.count)} />
        )
      ) : null}
    </Link>
  )
  if (!closed) return link
  return (
    <Tooltip content={item.label} shortcut={item.shortcut} side="right">
      {link}
    </Tooltip>
  )
}

/** The left column: workspace, find and create, the groups, sync and the person. 232 px, or 52 when closed. */
export function Sidebar(props: SidebarProps) {
  const { workspace, person, groups, sync, onSearch, onCreate, closed, onToggle, onNavigate } = props
  return (
    <div className={cx('flex h-full min-h-0 flex-col', closed ? 'items-center px-2' : 'px-2.5')}>
      <div className={cx('flex shrink-0 items-center', closed ? 'h-12 justify-center' : 'h-12 gap-1')}>
        <Menu
          label="Workspace"
          items={workspace.menu}
          trigger={
            <button
              type="button"
              aria-label={closed ? workspace.name : undefined}
              className={cx(
                'flex min-w-0 items-center gap-2 rounded-control hover:bg-surface-3 data-[state=open]:bg-surface-3 touch:h-11',
                closed ? 'size-8 justify-center' : 'h-8 flex-1 px-1.5',
              )}
            >
              <Mark />
              {!closed && (
                <>
                  <span className="truncate font-semibold">{workspace.name}</span>
                  <ChevronsUpDown className="size-3.5 shrink-0 text-text-3" aria-hidden="true" />
                </>
              )}
            </button>
          }
        />
        {!closed && onToggle && (
          <IconButton label="Close the sidebar" icon={PanelLeft} shortcut="mod+b" onClick={onToggle} />
        )}
      </div>
      <div className={cx('flex shrink-0 gap-1 pb-2', closed && 'flex-col')}>
        {closed ? (
          <>
            {onToggle && (
              <IconButton
                label="Open the sidebar"
                icon={PanelLeft}
                shortcut="mod+b"
                side="right"
                onClick={onToggle}
                className="size-8 touch:size-11"
              />
            )}
            <IconButton
              label="Find or do anything"
              icon={Search}
              shortcut="mod+k"
              side="right"
              onClick={onSearch}
              className="size-8 touch:size-11"
            />
          </>
        ) : (
          <button
            type="button"
            onClick={onSearch}
            className="flex h-8 min-w-0 flex-1 items-center gap-2 rounded-control border border-line-strong bg-surface-1 px-2 text-text-3 shadow-control hover:text-text-2 touch:h-11"
          >
            <Search className="size-4 shrink-0" strokeWidth={1.75} aria-hidden="true" />
            <span className="truncate">Find or do</span>
          </button>
        )}
        {onCreate && (
          <IconButton
            label="Create"
            icon={SquarePen}
            shortcut="c"
            variant="outline"
            side={closed ? 'right' : 'bottom'}
            onClick={onCreate}
            className="size-8 touch:size-11"
          />
        )}
      </div>
      <nav aria-label="Main" className="-mx-1 min-h-0 flex-1 overflow-y-auto px-1 pb-2 [scrollbar-width:none]">
        {groups.map((group, i) => (
          <div key={group.id} className={cx(i > 0 && (closed ? 'mt-2 border-t border-line pt-2' : 'mt-4'))}>
            {group.label && !closed && <h2 className="px-2 pb-1 text-xs text-text-3">{group.label}</h2>}
            <ul className="flex flex-col gap-px">
              {group.items.map((item) => (
                <li key={item.id}>
                  <Item item={item} closed={closed} onNavigate={onNavigate} />
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <div
        className={cx(
          'flex shrink-0 items-center gap-1 border-t border-line py-2',
          closed ? 'flex-col-reverse px-0' : '',
        )}
      >
        <div className={cx('min-w-0', !closed && 'flex-1')}>
          <SyncPill {...sync} compact={closed} />
        </div>
        <Menu
          label={person.name}
          items={person.menu}
          side="top"
          align="end"
          trigger={
            <button
              type="button"
              className="grid size-8 shrink-0 place-items-center rounded-full hover:bg-surface-3 touch:size-11"
            >
              <PersonAvatar name={person.name} id={person.id} size="md" decorative />
              <span className="sr-only">You: {person.name}</span>
            </button>
          }
        />
      </div>
    </div>
  )
}
