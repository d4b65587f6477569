/** Tasks as a list of any length: grouped, with the keys of every list and those of tasks, and actions on a selection. */
import { useNavigate } from '@tanstack/react-router'
import { ChevronDown, ChevronRight, Trash2 } from 'lucide-react'
import { type ReactNode, useCallback, useEffect, useMemo, useState } from 'react'
import { replica } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { usePersisted } from '../../ui/persisted.ts'
import { useNow } from '../../ui/relative-time.tsx'
import { syncEdge } from '../../ui/sync-dot.tsx'
import { type ListAction, VirtualList } from '../../ui/virtual-list.tsx'
import { useRowMarks } from '../sync/row-marks.ts'
import type { TaskActions } from './actions.ts'
import { type ChoiceKind, Chooser } from './choices.tsx'
import type { Directory } from './directory.ts'
import { type Group, isPriority, isStatus } from './grouping.ts'
import { PriorityMark, StatusMark, StreamDot } from './marks.tsx'
import { plural, type TaskRow } from './model.ts'
import { type RowMenuKind, TaskRowView } from './task-row.tsx'
import { allIds } from './task-sql.ts'
import { report, toastUndo } from './use-actions.ts'
import { useChooser } from './use-chooser.ts'
import { useListContext, useTaskLines } from './use-lines.ts'
import type { TaskView } from './view.ts'

type Line = { readonly heading: Group } | { readonly task: TaskRow }
const isHeading = (line: Line): line is { readonly heading: Group } => 'heading' in line
const keyOf = (line: Line): string => (isHeading(line) ? `heading ${line.heading.key}` : line.task.id)

export const LIST_LABEL = 'Tasks'
/** Gives the keyboard back to the list, after something in a row or above it had it. */
export function focusList(): void {
  requestAnimationFrame(() =>
    document.querySelector<HTMLElement>(`[data-list][aria-label="${LIST_LABEL}"]`)?.focus({ preventScroll: true }),
  )
}

export interface TaskListProps {
  readonly view: TaskView
  readonly directory: Directory
  readonly actions: TaskActions
  readonly onActive: (task: TaskRow | undefined) => void
  readonly empty: ReactNode
}

export function TaskList({ view, directory, actions, onActive, empty }: TaskListProps) {
  const navigate = useNavigate()
  const context = useListContext(directory)
  const now = useNow()
  const [closedText, setClosedText] = usePersisted<string>('tasks.closed', 'done cancelled closed')
  const closed = useMemo(() => new Set(closedText.split(' ')), [closedText])
  const { lines, groups, rows, rowAt, onRange, total, ready, error } = useTaskLines(view, context, directory, closed)
  const marks = useRowMarks('tasks', rows)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [menu, setMenu] = useState<{ id: string; kind: RowMenuKind }>()
  const [editing, setEditing] = useState<string>()
  const [active, setActive] = useState<number>()
  const { chosen, choose: chooseFor, close } = useChooser()

  const getRow = (index: number): Line | undefined => {
    const line = lines.at(index)
    if (line === undefined) return undefined
    if (line.kind === 'heading') return { heading: line.group }
    const task = rowAt(line.position)
    return task && { task }
  }
  // The active line may not be read yet (End, then Home): its task is told as soon as it is.
  const activeLine = active === undefined ? undefined : getRow(active)
  const activeTask = activeLine && !isHeading(activeLine) ? activeLine.task : undefined
  useEffect(() => onActive(activeTask), [activeTask, onActive])
  const toggle = (group: Group) => {
    const next = new Set(closed)
    if (!next.delete(group.key)) next.add(group.key)
    setClosedText([...next].join(' '))
  }
  const open = useCallback((id: string) => void navigate({ to: '/tasks/$taskId', params: { taskId: id } }), [navigate])
  const remove = (ids: readonly string[]) => {
    actions
      .remove(ids)
      .then(() => toastUndo(`${plural(ids.length, 'task')} deleted`))
      .catch(report)
    setSelected(new Set())
  }
  const closeMenu = useCallback((next: { id: string; kind: RowMenuKind } | undefined) => {
    setMenu(next)
    if (next === undefined) focusList()
  }, [])
  const edited = useCallback(
    (id: string, title: string | undefined) => {
      setEditing(undefined)
      focusList()
      if (title !== undefined) actions.rename(id, title).catch(report)
    },
    [actions],
  )
  const choose = (kind: ChoiceKind) => (ids: readonly string[], line: Line | undefined) => {
    chooseFor(kind, ids, line && !isHeading(line) ? line.task.title : '')
  }
  const keys: readonly ListAction<Line>[] = [
    { keys: '.', label: 'Change status', run: choose('status') },
    { keys: 'a', label: 'Assign', run: choose('assignee') },
    { keys: 'p', label: 'Change priority', run: choose('priority') },
    { keys: 'd', label: 'Set the due date', run: choose('due') },
    { keys: 's', label: 'Move to a stream', run: choose('stream') },
    { keys: 'e', label: 'Edit the title', run: (_, line) => line && !isHeading(line) && setEditing(line.task.id) },
    {
      keys: 'w',
      label: 'See what its sync mark means',
      run: (_, line) => {
        const mark = line && !isHeading(line) ? marks.get(line.task.id) : undefined
        if (mark) void navigate({ to: '/sync', hash: mark.anchor })
      },
    },
    { keys: 'backspace', label: 'Delete', run: (ids) => remove(ids) },
  ]
  const selectAll = async () => {
    const { sql, params } = allIds(view, context)
    setSelected(new Set((await replica().query<{ id: string }>(sql, params)).map((row) => row.id)))
  }
  // A narrower view must not act on what it doesn't show.
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever the view changes
  useEffect(() => setSelected(new Set()), [view])

  if (!ready) return null
  return (
    <div className="relative flex h-full min-h-0 flex-col">
      {error && (
        <Banner meaning="danger" look="edge" title="The list could not be read anew">
          What you see may be out of date: {error.message} It is tried again with the next change.
        </Banner>
      )}
      <VirtualList<Line>
        label={LIST_LABEL}
        className="min-h-0 flex-1"
        count={lines.count}
        getRow={getRow}
        rowKey={keyOf}
        isHeader={isHeading}
        rowClass={(line) =>
          isHeading(line) ? 'bg-bg border-b border-line' : syncEdge(marks.get(line.task.id)?.state ?? 'synced')
        }
        onRange={onRange}
        selected={selected}
        onSelectedChange={setSelected}
        onOpen={(line) => !isHeading(line) && open(line.task.id)}
        onActiveChange={(_, index) => setActive(index)}
        actions={keys}
        empty={empty}
        renderRow={(line) =>
          isHeading(line) ? (
            <GroupHeading
              group={line.heading}
              view={view}
              directory={directory}
              onToggle={() => toggle(line.heading)}
            />
          ) : (
            <TaskRowView
              task={line.task}
              directory={directory}
              actions={actions}
              now={now}
              mark={marks.get(line.task.id)}
              menu={menu?.id === line.task.id ? menu.kind : undefined}
              onMenu={closeMenu}
              editing={editing === line.task.id}
              onEdited={edited}
            />
          )
        }
      />
      {selected.size > 0 && (
        <section
          aria-label="Selection"
          className="float z-20 mx-3 my-2 flex max-w-max shrink-0 items-center gap-1 overflow-x-auto px-2 py-1.5 sm:mx-auto"
        >
          <span className="nums px-1.5 font-medium whitespace-nowrap">{plural(selected.size, 'task')}</span>
          {selected.size < total && (
            <Button variant="ghost" size="sm" onClick={() => void selectAll().catch(report)}>
              All {total.toLocaleString('en')}
            </Button>
          )}
          <span className="mx-1 h-4 w-px bg-line" aria-hidden="true" />
          <Button variant="ghost" size="sm" shortcut="." onClick={() => choose('status')([...selected], undefined)}>
            Status
          </Button>
          <Button variant="ghost" size="sm" shortcut="a" onClick={() => choose('assignee')([...selected], undefined)}>
            Assign
          </Button>
          <Button variant="ghost" size="sm" shortcut="p" onClick={() => choose('priority')([...selected], undefined)}>
            Priority
          </Button>
          <Button variant="ghost" size="sm" shortcut="d" onClick={() => choose('due')([...selected], undefined)}>
            Due
          </Button>
          <Button variant="ghost" size="sm" shortcut="s" onClick={() => choose('stream')([...selected], undefined)}>
            Stream
          </Button>
          <Button variant="ghost" size="sm" icon={Trash2} onClick={() => remove([...selected])}>
            Delete
          </Button>
          <Button variant="ghost" size="sm" shortcut="escape" onClick={() => setSelected(new Set())}>
            Clear
          </Button>
        </section>
      )}
      <p role="status" className="sr-only">
        {selected.size > 0
          ? `${plural(selected.size, 'task')} selected`
          : plural(
              groups.reduce((n, g) => n + g.count, 0),
              'task',
            )}
      </p>
      <Chooser chosen={chosen} onClose={close} actions={actions} directory={directory} />
    </div>
  )
}

function GroupHeading(props: { group: Group; view: TaskView; directory: Directory; onToggle: () => void }) {
  const { group, view, directory, onToggle } = props
  const stream = view.group === 'stream' ? directory.stream(group.key) : undefined
  const Chevron = group.open ? ChevronDown : ChevronRight
  return (
    <button
      type="button"
      tabIndex={-1}
      aria-expanded={group.open}
      onClick={onToggle}
      className="flex size-full items-center gap-2 pr-3 pl-3 text-left font-medium"
    >
      <Chevron className="size-3.5 text-text-3" aria-hidden="true" />
      {view.group === 'status' && isStatus(group.key) && <StatusMark status={group.key} />}
      {view.group === 'priority' && isPriority(group.key) && <PriorityMark priority={group.key} />}
      {stream && <StreamDot stream={stream} />}
      <span className="truncate">{group.label}</span>
      <span className="nums font-normal text-text-3">{group.count.toLocaleString('en')}</span>
    </button>
  )
}
