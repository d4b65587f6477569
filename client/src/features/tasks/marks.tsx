/** The small marks of a task: status, priority, stream, due date, assignee, labels. */
import { CalendarClock } from 'lucide-react'
import { memo } from 'react'
import { Avatar } from '../../ui/avatar.tsx'
import { cx, hueVar } from '../../ui/cx.ts'
import { StatusShape } from '../../ui/status.tsx'
import type { Directory } from './directory.ts'
import { dueLabel, isOverdue } from './due.ts'
import {
  assigneeOf,
  PRIORITY,
  STATUS,
  type StreamLike,
  streamHue,
  type TaskPriority,
  type TaskRow,
  type TaskStatus,
} from './model.ts'

export const StatusMark = ({ status, named }: { status: TaskStatus; named?: boolean }) => (
  <StatusShape
    shape={STATUS[status].shape}
    meaning={STATUS[status].meaning}
    label={named ? STATUS[status].label : undefined}
  />
)

/** Three bars, filled to the priority; urgent is a solid square with a mark. */
export const PriorityMark = memo(function PriorityMark({
  priority,
  named,
}: {
  priority: TaskPriority
  named?: boolean
}) {
  const { bars, label } = PRIORITY[priority]
  const name = `Priority: ${label}`
  return (
    <svg
      viewBox="0 0 14 14"
      className={cx('size-3.5 shrink-0', priority === 'urgent' ? 'text-danger' : 'text-text-3')}
      {...(named ? { role: 'img', 'aria-label': name } : { 'aria-hidden': true })}
    >
      <title>{name}</title>
      {priority === 'urgent' ? (
        <>
          <rect x="1" y="1" width="12" height="12" rx="3" fill="currentColor" />
          <path
            d="M7 3.8v3.9M7 10v.2"
            stroke="var(--glyph, var(--surface-1))"
            strokeWidth="1.7"
            strokeLinecap="round"
          />
        </>
      ) : (
        [0, 1, 2].map((bar) => (
          <rect
            key={bar}
            x={1 + bar * 4.5}
            y={8.5 - bar * 3}
            width="3"
            height={4 + bar * 3}
            rx="1"
            fill="currentColor"
            opacity={bar < bars ? 1 : 0.28}
          />
        ))
      )}
    </svg>
  )
})

export const StreamDot = ({ stream, className }: { stream: StreamLike; className?: string }) => (
  <span
    aria-hidden="true"
    className={cx('size-2 shrink-0 rounded-full', className)}
    style={{ background: hueVar(streamHue(stream)) }}
  />
)

export function DueMark(props: {
  task: Pick<TaskRow, 'due_date' | 'status'>
  zone: string
  now: number
  className?: string
}) {
  const { task, zone, now, className } = props
  if (!task.due_date) return null
  const overdue = isOverdue(task, now)
  return (
    <time
      dateTime={task.due_date}
      title={new Intl.DateTimeFormat('en', { dateStyle: 'full', timeStyle: 'short' }).format(Date.parse(task.due_date))}
      className={cx(
        'nums inline-flex shrink-0 items-center gap-1 text-xs whitespace-nowrap',
        overdue ? 'font-medium text-danger-ink' : 'text-text-3',
        className,
      )}
    >
      {overdue && <CalendarClock className="size-3.5" strokeWidth={1.75} aria-label="Overdue:" role="img" />}
      {dueLabel(task.due_date, zone, now)}
    </time>
  )
}

/** An empty, dashed circle for nobody. */
export function AssigneeMark({
  task,
  directory,
  size = 'sm',
}: {
  task: Pick<TaskRow, 'assignee_type' | 'assignee_agent_id' | 'assignee_person_id'>
  directory: Directory
  size?: 'sm' | 'md'
}) {
  const actor = directory.actor(assigneeOf(task))
  if (actor) return <Avatar actor={actor} size={size} />
  return (
    <span
      role="img"
      aria-label="Nobody"
      title="Nobody"
      className={cx(
        'block shrink-0 rounded-full border border-dashed border-text-3',
        size === 'sm' ? 'size-5' : 'size-6',
      )}
    />
  )
}

/** "2/5" with a ring that fills. */
export function SubtaskCount({ task }: { task: Pick<TaskRow, 'subtasks' | 'subtasks_done'> }) {
  if (task.subtasks === 0) return null
  const part = task.subtasks_done / task.subtasks
  const name = `${task.subtasks_done} of ${task.subtasks} subtasks closed`
  return (
    <span className="nums inline-flex shrink-0 items-center gap-1 text-xs text-text-3" title={name}>
      <svg viewBox="0 0 12 12" className="size-3 -rotate-90" role="img" aria-label={name}>
        <title>{name}</title>
        <circle cx="6" cy="6" r="4.5" fill="none" stroke="var(--line-strong)" strokeWidth="2" />
        <circle
          cx="6"
          cy="6"
          r="4.5"
          fill="none"
          stroke="var(--good)"
          strokeWidth="2"
          pathLength="1"
          strokeDasharray={`${part} 1`}
        />
      </svg>
      <span aria-hidden="true">
        {task.subtasks_done}/{task.subtasks}
      </span>
    </span>
  )
}

export const Label = ({ children }: { children: string }) => (
  <span className="inline-flex h-4 max-w-32 min-w-0 shrink-0 items-center rounded-full border border-line px-1.5 text-2xs text-text-2">
    <span className="truncate">{children}</span>
  </span>
)
