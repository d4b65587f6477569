import { Link } from '@tanstack/react-router'
import { ChevronLeft, ChevronRight, PanelRight } from 'lucide-react'
import { Fragment, type ReactNode, useState } from 'react'
import { IconButton } from '../icon-button.tsx'
import { useShortcuts } from '../keyboard.ts'
import { useMedia, usePhone } from '../media.ts'
import { usePersisted } from '../persisted.ts'
import { Sheet } from '../sheet.tsx'

export type Crumb = { label: string; to: string; leading?: ReactNode }

export type PageProps = {
  /** The screen's name: the last part of the breadcrumb, and its h1. */
  title: string
  leading?: ReactNode
  /** Where it lies, outermost first. */
  crumbs?: readonly Crumb[]
  /** After the title: a status, a sync dot, a star. */
  status?: ReactNode
  /** At the right: at most one primary Button, then IconButtons. */
  actions?: ReactNode
  /** A second row: tabs, filters. */
  bar?: ReactNode
  /** Facts about what is shown: 340 px at the right; a sheet where there is no room. ⌘I. */
  inspector?: { title: string; content: ReactNode } | undefined
  /** `scroll`: the page scrolls. `fill`: the child fills the height and scrolls by itself (lists, boards). */
  body?: 'scroll' | 'fill'
  children: ReactNode
}

/** A screen: header with breadcrumb and actions, content, inspector. */
export function Page(props: PageProps) {
  const { title, leading, crumbs = [], status, actions, bar, inspector, body = 'scroll', children } = props
  const phone = usePhone()
  const wide = useMedia('(min-width: 1100px)')
  const [inspectorState, setInspectorState] = usePersisted<'open' | 'closed'>('inspector', 'open')
  const [sheet, setSheet] = useState(false)
  const docked = inspector !== undefined && wide && inspectorState === 'open'
  const toggle = () => (wide ? setInspectorState(inspectorState === 'open' ? 'closed' : 'open') : setSheet(!sheet))
  useShortcuts(
    inspector ? [{ keys: 'mod+i', label: 'Show or hide the details', group: 'Everywhere', run: toggle }] : [],
  )
  const parent = crumbs.at(-1)
  return (
    <>
      <header className="flex h-12 shrink-0 items-center gap-2 border-b border-line pr-3 pl-4 touch:h-14">
        {phone && parent && (
          <Link
            to={parent.to}
            aria-label={`Back to ${parent.label}`}
            className="-ml-3 grid size-11 place-items-center text-text-2"
          >
            <ChevronLeft className="size-5" aria-hidden="true" />
          </Link>
        )}
        <div className="flex min-w-0 flex-1 items-center gap-1.5">
          {!phone && crumbs.length > 0 && (
            <nav aria-label="Breadcrumb" className="flex min-w-0 shrink items-center gap-1.5">
              {crumbs.map((crumb) => (
                <Fragment key={crumb.to}>
                  <Link
                    to={crumb.to}
                    className="flex min-w-0 items-center gap-1.5 truncate rounded-sm text-text-2 hover:text-text-1"
                  >
                    {crumb.leading}
                    <span className="truncate">{crumb.label}</span>
                  </Link>
                  <ChevronRight className="size-3.5 shrink-0 text-text-3" aria-hidden="true" />
                </Fragment>
              ))}
            </nav>
          )}
          {leading}
          <h1 className="min-w-0 truncate font-semibold">{title}</h1>
          {status}
        </div>
        <div className="flex shrink-0 items-center gap-1.5">
          {actions}
          {inspector && (
            <IconButton
              label={docked ? 'Hide the details' : 'Show the details'}
              icon={PanelRight}
              shortcut="mod+i"
              pressed={docked || sheet}
              onClick={toggle}
            />
          )}
        </div>
      </header>
      {bar && (
        <div className="flex shrink-0 items-center gap-2 overflow-x-auto border-b border-line px-4 [scrollbar-width:none]">
          {bar}
        </div>
      )}
      <div className="flex min-h-0 flex-1">
        <main
          aria-label={title}
          className={body === 'scroll' ? 'min-w-0 flex-1 overflow-y-auto' : 'min-h-0 min-w-0 flex-1'}
        >
          {children}
        </main>
        {docked && (
          <aside
            aria-label={inspector.title}
            className="w-(--inspector) shrink-0 overflow-y-auto border-l border-line bg-surface-1"
          >
            {inspector.content}
          </aside>
        )}
      </div>
      {inspector && !wide && (
        <Sheet open={sheet} onOpenChange={setSheet} title={inspector.title} side={phone ? 'bottom' : 'right'}>
          {inspector.content}
        </Sheet>
      )}
    </>
  )
}
