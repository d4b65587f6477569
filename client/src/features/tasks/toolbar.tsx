/** The row above a list: layout, search, filters, grouping and sorting. On a phone the menus are one sheet. */
import { AlarmClock, Check, Filter, Search, SlidersHorizontal, X } from 'lucide-react'
import { type ReactNode, type Ref, useEffect, useRef, useState } from 'react'
import { Avatar } from '../../ui/avatar.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { cx } from '../../ui/cx.ts'
import { IconButton } from '../../ui/icon-button.tsx'
import { Kbd } from '../../ui/kbd.tsx'
import { usePhone } from '../../ui/media.ts'
import { Menu, type MenuEntry } from '../../ui/menu.tsx'
import { Sheet } from '../../ui/sheet.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { agentActor, type Directory, personActor } from './directory.ts'
import { StatusMark, StreamDot } from './marks.tsx'
import { STATUS, STATUSES } from './model.ts'
import { GROUPINGS, type Grouping, isFiltered, SORTINGS, type Sorting, type TaskView } from './view.ts'

const GROUP_NAMES: Record<Grouping, string> = {
  status: 'Status',
  priority: 'Priority',
  due: 'Due date',
  assignee: 'Assignee',
  stream: 'Stream',
  none: 'No groups',
}
const SORT_NAMES: Record<Sorting, string> = {
  manual: 'By hand',
  priority: 'Priority',
  due: 'Due date',
  updated: 'Last changed',
  created: 'Newest',
}

export interface ToolbarProps {
  readonly view: TaskView
  readonly onView: (change: Partial<TaskView>) => void
  readonly directory: Directory
  readonly search: Ref<HTMLInputElement>
  /** Leaves the search for the list below. */
  readonly onLeave: () => void
}

/** The filters as menu entries: statuses, assignee, stream, overdue. */
function filterEntries({ view, onView, directory }: ToolbarProps): MenuEntry[] {
  const assignee = (value: string | undefined, label: string, icon?: ReactNode): MenuEntry => ({
    kind: 'item',
    label,
    icon,
    checked: view.assignee === value,
    onSelect: () => onView({ assignee: view.assignee === value ? undefined : value }),
  })
  const stream = (value: string, label: string, icon?: ReactNode): MenuEntry => ({
    kind: 'item',
    label,
    icon,
    checked: view.stream === value,
    onSelect: () => onView({ stream: view.stream === value ? undefined : value }),
  })
  return [
    {
      kind: 'sub',
      label: 'Status',
      icon: <StatusMark status="todo" />,
      items: STATUSES.map((status) => ({
        kind: 'item',
        label: STATUS[status].label,
        icon: <StatusMark status={status} />,
        checked: view.status.includes(status),
        onSelect: () =>
          onView({
            status: view.status.includes(status)
              ? view.status.filter((each) => each !== status)
              : STATUSES.filter((each) => each === status || view.status.includes(each)),
          }),
      })),
    },
    {
      kind: 'sub',
      label: 'Assignee',
      items: [
        assignee('me', 'Me'),
        assignee('none', 'Nobody'),
        ...(directory.agents.length > 0 ? [{ kind: 'label', label: 'Agents' } as const] : []),
        ...directory.agents.map((agent) =>
          assignee(agent.id, agent.name, <Avatar actor={agentActor(agent)} decorative />),
        ),
        { kind: 'label', label: 'People' },
        ...directory.people.map((person) =>
          assignee(person.id, person.name, <Avatar actor={personActor(person)} decorative />),
        ),
      ],
    },
    {
      kind: 'sub',
      label: 'Stream',
      items: [
        stream('none', 'No stream'),
        ...directory.streams.map((each) => stream(each.id, each.name, <StreamDot stream={each} />)),
      ],
    },
    {
      kind: 'item',
      label: 'Overdue',
      icon: AlarmClock,
      checked: view.overdue,
      onSelect: () => onView({ overdue: !view.overdue }),
    },
  ]
}

const displayEntries = ({ view, onView }: ToolbarProps): MenuEntry[] => [
  { kind: 'label', label: 'Group by' },
  ...GROUPINGS.map(
    (group): MenuEntry => ({
      kind: 'item',
      label: GROUP_NAMES[group],
      checked: view.group === group,
      onSelect: () => onView({ group }),
    }),
  ),
  { kind: 'separator' },
  { kind: 'label', label: 'Sort' },
  ...SORTINGS.map(
    (sort): MenuEntry => ({
      kind: 'item',
      label: SORT_NAMES[sort],
      checked: view.sort === sort,
      onSelect: () => onView({ sort }),
    }),
  ),
]

export function Toolbar(props: ToolbarProps) {
  const { view, onView, search, onLeave } = props
  const phone = usePhone()
  const [sheet, setSheet] = useState(false)
  return (
    <div className="flex h-11 w-full min-w-0 items-center gap-2 touch:h-14">
      <Tabs
        label="Layout"
        look="segment"
        value={view.view}
        onValueChange={(layout) => onView({ view: layout })}
        tabs={[
          { value: 'list', label: 'List' },
          { value: 'board', label: 'Board' },
        ]}
        className="shrink-0"
      />
      <SearchField value={view.q} onChange={(q) => onView({ q })} field={search} onLeave={onLeave} />
      {phone ? (
        <IconButton
          label="Filters and order"
          icon={SlidersHorizontal}
          pressed={isFiltered(view)}
          onClick={() => setSheet(true)}
        />
      ) : (
        <>
          <Menu
            label="Filters"
            trigger={
              <Button variant="ghost" icon={Filter}>
                Filter
              </Button>
            }
            items={filterEntries(props)}
          />
          <Chips {...props} />
          {view.view === 'list' && (
            <span className="ml-auto shrink-0">
              <Menu
                label="Groups and order"
                align="end"
                trigger={
                  <Button variant="ghost" icon={SlidersHorizontal}>
                    <span className="max-lg:sr-only">{GROUP_NAMES[view.group]}</span>
                    <span className="text-text-3 max-lg:hidden">· {SORT_NAMES[view.sort]}</span>
                  </Button>
                }
                items={displayEntries(props)}
              />
            </span>
          )}
        </>
      )}
      <Sheet open={sheet && phone} onOpenChange={setSheet} title="Filters and order" side="bottom">
        <SheetEntries entries={[...filterEntries(props), ...(view.view === 'list' ? displayEntries(props) : [])]} />
      </Sheet>
    </div>
  )
}

/** Typing here narrows the list at once; the address follows a moment later. */
function SearchField(props: {
  value: string
  onChange: (text: string) => void
  field: Ref<HTMLInputElement>
  onLeave: () => void
}) {
  const { value, onChange, field, onLeave } = props
  const [text, setText] = useState(value)
  const sent = useRef(value)
  useEffect(() => {
    if (value !== sent.current) {
      sent.current = value
      setText(value)
    }
  }, [value])
  const latest = useRef(onChange)
  latest.current = onChange
  useEffect(() => {
    if (text === sent.current) return
    const timer = setTimeout(() => {
      sent.current = text
      latest.current(text)
    }, 120)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <label className="flex h-(--control) min-w-24 flex-1 items-center gap-2 rounded-control px-2 focus-within:bg-surface-2 sm:max-w-56">
      <span className="sr-only">Search tasks</span>
      <Search className="size-4 shrink-0 text-text-3" strokeWidth={1.75} aria-hidden="true" />
      <input
        ref={field}
        type="search"
        value={text}
        placeholder="Search"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape' || (event.key === 'Enter' && !event.nativeEvent.isComposing)) {
            event.preventDefault()
            if (event.key === 'Escape') setText('')
            onLeave()
          }
        }}
        className="min-w-0 flex-1 bg-transparent outline-none touch:text-lg [&::-webkit-search-cancel-button]:hidden"
      />
      {text === '' ? (
        <Kbd keys="/" className="touch:hidden" />
      ) : (
        <button
          type="button"
          aria-label="Clear the search"
          onClick={() => setText('')}
          className="grid size-5 place-items-center rounded-sm text-text-3 hover:text-text-1 touch:size-9"
        >
          <X className="size-3.5" aria-hidden="true" />
        </button>
      )}
    </label>
  )
}

/** What narrows the list, each with its way out. */
function Chips({ view, onView, directory }: ToolbarProps) {
  const person =
    view.assignee === 'me'
      ? 'Me'
      : view.assignee === 'none'
        ? 'Nobody'
        : (directory.agent(view.assignee ?? null)?.name ?? directory.person(view.assignee ?? null)?.name)
  const stream = view.stream === 'none' ? 'No stream' : directory.stream(view.stream ?? null)?.name
  return (
    <span className="flex min-w-0 shrink items-center gap-1 overflow-hidden">
      {view.status.map((status) => (
        <Badge
          key={status}
          icon={<StatusMark status={status} />}
          onRemove={() => onView({ status: view.status.filter((each) => each !== status) })}
          removeLabel={`Remove the filter ${STATUS[status].label}`}
        >
          {STATUS[status].label}
        </Badge>
      ))}
      {view.assignee && (
        <Badge onRemove={() => onView({ assignee: undefined })} removeLabel="Remove the filter for the assignee">
          {person ?? 'Somebody else'}
        </Badge>
      )}
      {view.stream && (
        <Badge onRemove={() => onView({ stream: undefined })} removeLabel="Remove the filter for the stream">
          {stream ?? 'A stream that is gone'}
        </Badge>
      )}
      {view.overdue && (
        <Badge onRemove={() => onView({ overdue: false })} removeLabel="Remove the filter Overdue">
          Overdue
        </Badge>
      )}
    </span>
  )
}

/** The same entries where there is room for fingers. */
function SheetEntries({ entries }: { entries: readonly MenuEntry[] }) {
  return (
    <ul className="p-2">
      {entries.map((entry, i) => {
        const key = `${entry.kind}${i}`
        if (entry.kind === 'separator') return <li key={key} className="mx-2 my-1 h-px bg-line" />
        if (entry.kind === 'label' || entry.kind === 'sub')
          return (
            <li key={key}>
              <p className="px-2 pt-3 pb-1 text-xs text-text-3">{entry.label}</p>
              {entry.kind === 'sub' && <SheetEntries entries={entry.items} />}
            </li>
          )
        return (
          <li key={key}>
            <button
              type="button"
              aria-pressed={entry.checked ?? undefined}
              onClick={entry.onSelect}
              className={cx('menu-item w-full text-left', entry.checked && 'font-medium')}
            >
              {typeof entry.icon === 'object' &&
              entry.icon !== null &&
              '$$typeof' in entry.icon &&
              !('render' in entry.icon)
                ? (entry.icon as ReactNode)
                : null}
              <span className="min-w-0 flex-1 truncate">{entry.label}</span>
              {entry.checked && <Check className="size-4 text-accent-ink" aria-hidden="true" />}
            </button>
          </li>
        )
      })}
    </ul>
  )
}
