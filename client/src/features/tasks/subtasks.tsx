/** The steps of a task, one level: add, tick off, rename, put in order (drag, or ⌥↑ ⌥↓), give away. */
import {
  closestCenter,
  DndContext,
  type DragEndEvent,
  KeyboardSensor,
  MouseSensor,
  TouchSensor,
  useSensor,
  useSensors,
} from '@dnd-kit/core'
import {
  SortableContext,
  sortableKeyboardCoordinates,
  useSortable,
  verticalListSortingStrategy,
} from '@dnd-kit/sortable'
import { Link } from '@tanstack/react-router'
import { GripVertical, Plus, Trash2 } from 'lucide-react'
import { type KeyboardEvent, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { useRows } from '../../replica/hooks.ts'
import { Avatar } from '../../ui/avatar.tsx'
import { Checkbox } from '../../ui/checkbox.tsx'
import { cx } from '../../ui/cx.ts'
import { IconButton } from '../../ui/icon-button.tsx'
import { Menu } from '../../ui/menu.tsx'
import { RowMarkView } from '../sync/row-mark.tsx'
import { type RowMark, useRowMarks } from '../sync/row-marks.ts'
import type { TaskActions } from './actions.ts'
import { choiceEntries } from './choices.tsx'
import type { Directory } from './directory.ts'
import { AssigneeMark, DueMark } from './marks.tsx'
import { assigneeOf, type Task } from './model.ts'
import { parseQuick } from './quick.ts'
import { report, toastUndo } from './use-actions.ts'

type Subtask = Pick<
  Task,
  'id' | 'title' | 'status' | 'sort_order' | 'due_date' | 'assignee_type' | 'assignee_agent_id' | 'assignee_person_id'
>

const SUBTASKS = `select id, title, status, sort_order, due_date, assignee_type, assignee_agent_id, assignee_person_id
  from tasks where parent_id = $1::uuid and deleted_at is null order by sort_order, id`

export function Subtasks(props: { task: Task; directory: Directory; actions: TaskActions; now: number }) {
  const { task, directory, actions, now } = props
  const { rows } = useRows<Subtask>(SUBTASKS, [task.id], { tables: ['tasks'], keepPrevious: false })
  const marks = useRowMarks('tasks', rows)
  const [adding, setAdding] = useState(false)
  const [text, setText] = useState('')
  const field = useRef<HTMLInputElement>(null)
  const sensors = useSensors(
    useSensor(MouseSensor, { activationConstraint: { distance: 4 } }),
    useSensor(TouchSensor, { activationConstraint: { delay: 220, tolerance: 8 } }),
    useSensor(KeyboardSensor, { coordinateGetter: sortableKeyboardCoordinates }),
  )
  const moveTo = (id: string, index: number) => {
    const moved = rows.find((row) => row.id === id)
    const others = rows.filter((row) => row.id !== id)
    if (moved) actions.move(moved, others, index).catch(report)
  }
  const onDragEnd = ({ active, over }: DragEndEvent) => {
    const from = rows.findIndex((row) => row.id === active.id)
    const to = rows.findIndex((row) => row.id === over?.id)
    if (to >= 0 && from !== to) moveTo(String(active.id), to)
  }
  const add = async () => {
    const line = text
    if (line.trim() === '') return
    setText('')
    try {
      await actions.create({ ...parseQuick(line, directory), parent_id: task.id, stream_id: task.stream_id })
    } catch (error) {
      setText((typed) => (typed === '' ? line : typed))
      report(error)
    }
  }
  const done = rows.filter((row) => row.status === 'done' || row.status === 'cancelled').length
  return (
    <section aria-labelledby="subtasks" className="min-w-0">
      <header className="flex h-8 items-center gap-2">
        <h2 id="subtasks" className="section-title">
          Subtasks
        </h2>
        {rows.length > 0 && (
          <span className="nums text-text-3">
            {done}/{rows.length}
          </span>
        )}
        {directory.canWrite && (
          <IconButton
            size="sm"
            label="Add a subtask"
            icon={Plus}
            className="ml-auto"
            onClick={() => {
              // At once: the next keys belong into the field, not to the page's shortcuts.
              flushSync(() => setAdding(true))
              field.current?.focus()
            }}
          />
        )}
      </header>
      <DndContext sensors={sensors} collisionDetection={closestCenter} onDragEnd={onDragEnd}>
        <SortableContext items={rows.map((row) => row.id)} strategy={verticalListSortingStrategy}>
          <ul aria-label="Subtasks">
            {rows.map((row, index) => (
              <SubtaskLine
                key={row.id}
                row={row}
                directory={directory}
                actions={actions}
                now={now}
                mark={marks.get(row.id)}
                onMove={(by) => moveTo(row.id, index + by)}
              />
            ))}
          </ul>
        </SortableContext>
      </DndContext>
      {(adding || rows.length > 0) && directory.canWrite && (
        <div className="flex h-(--row) items-center gap-2 pl-6">
          <Plus className="size-3.5 shrink-0 text-text-3" aria-hidden="true" />
          <input
            ref={field}
            value={text}
            aria-label="New subtask"
            placeholder="New subtask"
            onChange={(event) => setText(event.target.value)}
            onBlur={() => text === '' && setAdding(false)}
            onKeyDown={(event) => {
              if (event.nativeEvent.isComposing) return
              if (event.key === 'Enter') {
                event.preventDefault()
                void add()
              } else if (event.key === 'Escape') event.currentTarget.blur()
            }}
            className="h-full min-w-0 flex-1 bg-transparent outline-none touch:text-lg"
          />
        </div>
      )}
      {!adding && rows.length === 0 && (
        <p className="text-text-3">
          {directory.canWrite ? 'Split it into steps; each can go to somebody else.' : 'None.'}
        </p>
      )}
    </section>
  )
}

function SubtaskLine(props: {
  row: Subtask
  directory: Directory
  actions: TaskActions
  now: number
  mark: RowMark | undefined
  onMove: (by: 1 | -1) => void
}) {
  const { row, directory, actions, now, mark, onMove } = props
  const sort = useSortable({ id: row.id, disabled: !directory.canWrite })
  const closed = row.status === 'done' || row.status === 'cancelled'
  const actor = directory.actor(assigneeOf(row))
  const onKeyDown = (event: KeyboardEvent) => {
    if (!event.altKey || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return
    event.preventDefault()
    onMove(event.key === 'ArrowUp' ? -1 : 1)
  }
  return (
    <li
      ref={sort.setNodeRef}
      onKeyDown={onKeyDown}
      style={{
        transform: sort.transform ? `translate3d(0, ${sort.transform.y}px, 0)` : undefined,
        transition: sort.transition,
      }}
      className={cx(
        'group/sub flex min-h-(--row) items-center gap-2 rounded-control pr-1 hover:bg-surface-2',
        sort.isDragging && 'relative z-10 bg-surface-1 shadow-float',
      )}
    >
      {directory.canWrite && (
        <button
          type="button"
          {...sort.attributes}
          {...sort.listeners}
          aria-label={`Move “${row.title}”`}
          className="grid h-6 w-4 shrink-0 cursor-grab place-items-center text-text-3 opacity-0 group-hover/sub:opacity-100 focus-visible:opacity-100 touch:h-11 touch:w-6 touch:opacity-100"
        >
          <GripVertical className="size-3.5" aria-hidden="true" />
        </button>
      )}
      <Checkbox
        checked={row.status === 'done'}
        label={`Done: ${row.title}`}
        hideLabel
        disabled={!directory.canWrite}
        className="-mt-[3px] touch:mt-0"
        onCheckedChange={(checked) => void actions.setStatus([row.id], checked ? 'done' : 'todo').catch(report)}
      />
      <Link
        to="/tasks/$taskId"
        params={{ taskId: row.id }}
        className={cx('min-w-0 flex-1 truncate rounded-sm hover:underline', closed && 'text-text-3 line-through')}
      >
        {row.title}
      </Link>
      <RowMarkView mark={mark} />
      <DueMark task={row} zone={directory.zone} now={now} />
      <Menu
        label="Assignee"
        align="end"
        items={choiceEntries('assignee', [row.id], assigneeOf(row)?.id ?? 'none', actions, directory)}
        trigger={
          <button
            type="button"
            disabled={!directory.canWrite}
            aria-label={`Assignee: ${actor?.name ?? 'nobody'}. Change`}
            className="grid size-6 shrink-0 place-items-center rounded-sm hover:bg-surface-3 touch:size-11"
          >
            {actor ? <Avatar actor={actor} decorative /> : <AssigneeMark task={row} directory={directory} />}
          </button>
        }
      />
      {directory.canWrite && (
        <IconButton
          size="sm"
          label={`Delete “${row.title}”`}
          icon={Trash2}
          onClick={() =>
            void actions
              .remove([row.id])
              .then(() => toastUndo('Subtask deleted'))
              .catch(report)
          }
          className="opacity-0 group-hover/sub:opacity-100 focus-visible:opacity-100 touch:opacity-100"
        />
      )}
    </li>
  )
}
