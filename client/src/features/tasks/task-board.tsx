/** Tasks as cards in columns by status. A drop writes the status and one number (`sort_order` between its new neighbours). */
import { useNavigate } from '@tanstack/react-router'
import { Ban, PackageCheck } from 'lucide-react'
import { useCallback, useMemo, useState } from 'react'
import { replica, useCount, useRows } from '../../replica/hooks.ts'
import { Board, type BoardColumn, type BoardMove } from '../../ui/board.tsx'
import { useShortcuts } from '../../ui/keyboard.ts'
import { useNow } from '../../ui/relative-time.tsx'
import { StatusShape } from '../../ui/status.tsx'
import { RowMarkView } from '../sync/row-mark.tsx'
import { type RowMark, useRowMarks } from '../sync/row-marks.ts'
import type { TaskActions } from './actions.ts'
import { type ChoiceKind, Chooser } from './choices.tsx'
import type { Directory } from './directory.ts'
import { AssigneeMark, DueMark, Label, PriorityMark, StatusMark, StreamDot, SubtaskCount } from './marks.tsx'
import { STATUS, STATUSES, type TaskRow, type TaskStatus } from './model.ts'
import type { Ordered } from './order.ts'
import { groupCounts, LIST_TABLES, type ListContext, windowRows } from './task-sql.ts'
import { report } from './use-actions.ts'
import { useChooser } from './use-chooser.ts'
import { useListContext, type WindowRow } from './use-lines.ts'
import type { TaskView } from './view.ts'

const BLOCK = 50

interface Column {
  readonly status: TaskStatus
  readonly count: number
  readonly base: number
  readonly rows: readonly TaskRow[]
}

/** One column's count and window. Closed columns show what was closed last first, and are ordered by hand no more. */
function useColumn(view: TaskView, context: ListContext, status: TaskStatus, first: number): Column {
  const wanted = view.status.length === 0 || view.status.includes(status)
  const own = useMemo((): TaskView => ({ ...view, status: [status], group: 'status', sort: 'manual' }), [view, status])
  const counting = useMemo(() => groupCounts(own, context), [own, context])
  const count = useCount(`select coalesce(sum(count), 0)::int from (${counting.sql}) c`, counting.params, {
    tables: ['tasks'],
    enabled: wanted,
  })
  const offset = Math.max(0, Math.floor(first / BLOCK) - 1) * BLOCK
  const reading = useMemo(
    () => windowRows(own, context, [status], { offset, limit: BLOCK * 4 }),
    [own, context, status, offset],
  )
  const { rows } = useRows<WindowRow>(reading.sql, reading.params, { tables: LIST_TABLES, enabled: wanted })
  return { status, count: count ?? 0, base: rows[0]?.base ?? 0, rows }
}

export function TaskBoard({
  view,
  directory,
  actions,
}: {
  view: TaskView
  directory: Directory
  actions: TaskActions
}) {
  const navigate = useNavigate()
  const context = useListContext(directory)
  const now = useNow()
  const [first, setFirst] = useState<Partial<Record<string, number>>>({})
  const columns = [
    useColumn(view, context, 'todo', first['todo'] ?? 0),
    useColumn(view, context, 'in_progress', first['in_progress'] ?? 0),
    useColumn(view, context, 'blocked', first['blocked'] ?? 0),
    useColumn(view, context, 'done', first['done'] ?? 0),
    useColumn(view, context, 'cancelled', first['cancelled'] ?? 0),
  ]
  const marks = useRowMarks(
    'tasks',
    columns.flatMap((column) => column.rows),
  )
  const shown = columns.filter((column) => view.status.length === 0 || view.status.includes(column.status))
  const onRange = useCallback((column: string, from: number) => {
    // Only when another block begins, so that scrolling draws nothing anew.
    setFirst((known) =>
      Math.floor((known[column] ?? 0) / BLOCK) === Math.floor(from / BLOCK) ? known : { ...known, [column]: from },
    )
  }, [])

  const move = async ({ key, to, before }: BoardMove) => {
    const status = STATUSES.find((each) => each === to)
    const column = columns.find((each) => each.status === status)
    const task = columns.flatMap((each) => each.rows).find((row) => row.id === key)
    if (!status || !column || !task) return
    let others: readonly Ordered[] = column.rows.filter((row) => row.id !== key)
    let index = others.findIndex((row) => row.id === before)
    if (index < 0) {
      // At the end, which may lie beyond the window: after the last of the whole column.
      others = await replica().query<Ordered>(
        `select id, sort_order from tasks where status = $1::text and id <> $2::uuid and parent_id is null and deleted_at is null
         order by sort_order desc, id desc limit 1`,
        [status, key],
      )
      index = others.length
    }
    await actions.move(task, others, index, status)
  }

  // The keys of the list, for the card that has the focus.
  const { chosen, choose, close } = useChooser()
  const focused = () => {
    const id = document.activeElement instanceof HTMLElement ? document.activeElement.dataset['card'] : undefined
    return columns.flatMap((each) => each.rows).find((row) => row.id === id)
  }
  const onFocused = (keys: string, label: string, kind: ChoiceKind) => ({
    keys,
    label,
    group: 'Board',
    when: () => focused() !== undefined,
    run: () => {
      const task = focused()
      if (task) choose(kind, [task.id], task.title)
    },
  })
  useShortcuts([
    onFocused('.', 'Change status', 'status'),
    onFocused('a', 'Assign', 'assignee'),
    onFocused('p', 'Change priority', 'priority'),
    onFocused('d', 'Set the due date', 'due'),
    onFocused('s', 'Move to a stream', 'stream'),
  ])

  return (
    <>
      <Board<TaskRow>
        label="Board"
        columns={shown.map(
          (column): BoardColumn<TaskRow> => ({
            id: column.status,
            title: STATUS[column.status].label,
            leading: <StatusMark status={column.status} />,
            count: column.count,
            getCard: (index) => column.rows[index - column.base],
          }),
        )}
        cardKey={(task) => task.id}
        cardLabel={(task) => `${task.title}, ${STATUS[task.status].label}`}
        renderCard={(task) => <Card task={task} directory={directory} now={now} mark={marks.get(task.id)} />}
        onMove={(change) => void move(change).catch(report)}
        onOpen={(task) => void navigate({ to: '/tasks/$taskId', params: { taskId: task.id } })}
        onRange={onRange}
      />
      <Chooser chosen={chosen} onClose={close} actions={actions} directory={directory} />
    </>
  )
}

function Card(props: { task: TaskRow; directory: Directory; now: number; mark: RowMark | undefined }) {
  const { task, directory, now, mark } = props
  const stream = directory.stream(task.stream_id)
  const closed = task.status === 'done' || task.status === 'cancelled'
  return (
    <div className="grid min-w-0 gap-1.5">
      <div className="flex min-w-0 items-start gap-2">
        <p className={closed ? 'line-clamp-3 min-w-0 flex-1 text-text-2' : 'line-clamp-3 min-w-0 flex-1'}>
          {task.title}
        </p>
        <AssigneeMark task={task} directory={directory} />
      </div>
      {(task.running || task.reviews > 0 || (task.blockers > 0 && !closed)) && (
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-xs">
          {task.running && (
            <span className="inline-flex items-center gap-1 text-busy-ink">
              <StatusShape shape="arc" meaning="busy" /> working
            </span>
          )}
          {task.blockers > 0 && !closed && (
            <span className="inline-flex items-center gap-1 text-warning-ink">
              <Ban className="size-3.5" strokeWidth={1.75} aria-hidden="true" /> blocked by {task.blockers}
            </span>
          )}
          {task.reviews > 0 && (
            <span className="inline-flex items-center gap-1 font-medium text-accent-ink">
              <PackageCheck className="size-3.5" strokeWidth={1.75} aria-hidden="true" /> to review
            </span>
          )}
        </div>
      )}
      <div className="flex min-w-0 items-center gap-2">
        <PriorityMark priority={task.priority} named />
        {stream && (
          <span className="flex min-w-0 items-center gap-1.5 text-xs text-text-3">
            <StreamDot stream={stream} />
            <span className="truncate">{stream.name}</span>
          </span>
        )}
        {task.tags.slice(0, 1).map((tag) => (
          <Label key={tag}>{tag}</Label>
        ))}
        <SubtaskCount task={task} />
        <DueMark task={task} zone={directory.zone} now={now} className="ml-auto" />
        <RowMarkView mark={mark} />
      </div>
    </div>
  )
}
