/** The facts of a task, each a menu: in the inspector of its page and of the list, and as a row of chips where there is no room. */
import { CalendarDays, Plus, X } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Avatar } from '../../ui/avatar.tsx'
import { Badge } from '../../ui/badge.tsx'
import { cx } from '../../ui/cx.ts'
import { DatePicker } from '../../ui/date-field.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Popover } from '../../ui/popover.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Fact, Facts } from '../../ui/shell/inspector.tsx'
import type { TaskActions } from './actions.ts'
import { choiceEntries } from './choices.tsx'
import type { Directory } from './directory.ts'
import { dayIn, dueLabel, dueOfDay, isOverdue, overdueLabel } from './due.ts'
import { AssigneeMark, PriorityMark, StatusMark, StreamDot } from './marks.tsx'
import { assigneeOf, PRIORITY, STATUS, type Task } from './model.ts'
import { report } from './use-actions.ts'

export interface PropertiesProps {
  readonly task: Task
  readonly directory: Directory
  readonly actions: TaskActions
}

const VALUE =
  'flex min-h-7 max-w-full min-w-0 items-center gap-2 rounded-control px-1.5 text-left not-disabled:hover:bg-surface-3 data-[state=open]:bg-surface-3 touch:min-h-11'
const CHIP =
  'inline-flex h-7 max-w-full min-w-0 shrink-0 items-center gap-1.5 rounded-full border border-line px-2.5 text-left not-disabled:hover:bg-surface-2 touch:h-10'

/** One fact as a button with a menu. */
function Choice(props: PropertiesProps & { kind: 'status' | 'priority' | 'assignee' | 'stream'; chip?: boolean }) {
  const { task, directory, actions, kind, chip } = props
  const look = chip ? CHIP : cx(VALUE, '-ml-1.5')
  const assignee = assigneeOf(task)
  const actor = directory.actor(assignee)
  const stream = directory.stream(task.stream_id)
  const shown: Record<typeof kind, { name: string; current: string; icon: ReactNode; text: string; quiet?: boolean }> =
    {
      status: {
        name: 'Status',
        current: task.status,
        icon: <StatusMark status={task.status} />,
        text: STATUS[task.status].label,
      },
      priority: {
        name: 'Priority',
        current: task.priority,
        icon: <PriorityMark priority={task.priority} />,
        text: PRIORITY[task.priority].label,
      },
      assignee: {
        name: 'Assignee',
        current: assignee?.id ?? 'none',
        icon: actor ? <Avatar actor={actor} decorative /> : <AssigneeMark task={task} directory={directory} />,
        text: actor?.name ?? 'Nobody',
        quiet: !actor,
      },
      stream: {
        name: 'Stream',
        current: task.stream_id ?? 'none',
        icon: stream ? <StreamDot stream={stream} /> : null,
        text: stream?.name ?? 'No stream',
        quiet: !stream,
      },
    }
  const { name, current, icon, text, quiet } = shown[kind]
  return (
    <Menu
      label={name}
      items={choiceEntries(kind, [task.id], current, actions, directory)}
      trigger={
        <button type="button" aria-label={`${name}: ${text}`} disabled={!directory.canWrite} className={look}>
          {icon}
          <span className={cx('truncate', quiet && 'text-text-3')}>{text}</span>
        </button>
      }
    />
  )
}

function Due({ task, directory, actions, chip }: PropertiesProps & { chip?: boolean }) {
  const [open, setOpen] = useState(false)
  const now = useNow()
  const overdue = isOverdue(task, now)
  const day = task.due_date ? dueLabel(task.due_date, directory.zone, now) : 'No due date'
  const text = overdue && task.due_date ? `${day} · ${overdueLabel(task.due_date, directory.zone, now)}` : day
  return (
    <Popover
      label="Due date"
      open={open}
      onOpenChange={setOpen}
      className="w-64"
      trigger={
        <button
          type="button"
          aria-label={`Due date: ${text}`}
          disabled={!directory.canWrite}
          className={chip ? CHIP : cx(VALUE, '-ml-1.5')}
        >
          <CalendarDays
            className={cx('size-4 shrink-0', overdue ? 'text-danger' : 'text-text-3')}
            strokeWidth={1.75}
            aria-hidden="true"
          />
          <span className={cx('nums truncate', overdue ? 'text-danger-ink' : !task.due_date && 'text-text-3')}>
            {text}
          </span>
        </button>
      }
    >
      <DatePicker
        label="Due date"
        value={task.due_date ? dayIn(task.due_date, directory.zone) : null}
        today={dayIn(now, directory.zone)}
        onChoose={(day) => {
          setOpen(false)
          actions.setDue([task.id], day ? dueOfDay(day, directory.zone) : null).catch(report)
        }}
      />
    </Popover>
  )
}

/** Labels: free words. */
function Labels({ task, actions, directory }: PropertiesProps) {
  const [adding, setAdding] = useState(false)
  const set = (tags: readonly string[]) => actions.setTags(task.id, tags).catch(report)
  return (
    <span className="flex min-w-0 flex-wrap items-center gap-1 py-1">
      {task.tags.map((tag) => (
        <Badge
          key={tag}
          {...(directory.canWrite
            ? {
                onRemove: () => void set(task.tags.filter((each) => each !== tag)),
                removeLabel: `Remove the label ${tag}`,
              }
            : {})}
        >
          {tag}
        </Badge>
      ))}
      {adding ? (
        <input
          // biome-ignore lint/a11y/noAutofocus: the person has just asked to type here
          autoFocus
          aria-label="New label"
          className="h-5 w-24 rounded-sm border border-line-strong bg-transparent px-1 text-xs touch:h-9 touch:text-lg"
          onBlur={(event) => {
            setAdding(false)
            const tag = event.target.value.trim()
            if (tag !== '' && !task.tags.includes(tag)) void set([...task.tags, tag])
          }}
          onKeyDown={(event) => {
            if (event.nativeEvent.isComposing) return
            if (event.key === 'Escape') event.currentTarget.value = ''
            if (event.key === 'Enter' || event.key === 'Escape') event.currentTarget.blur()
          }}
        />
      ) : (
        directory.canWrite && (
          <button
            type="button"
            aria-label="Add a label"
            onClick={() => setAdding(true)}
            className="inline-flex h-5 items-center gap-1 rounded-full px-1.5 text-xs text-text-3 hover:bg-surface-3 hover:text-text-1 touch:h-9"
          >
            <Plus className="size-3" aria-hidden="true" />
            {task.tags.length === 0 && 'Add'}
          </button>
        )
      )}
    </span>
  )
}

export function Properties(props: PropertiesProps) {
  const { task, directory, actions } = props
  const creator =
    task.created_by_id === null
      ? undefined
      : directory.actor({ type: task.created_by_type === 'agent' ? 'agent' : 'human', id: task.created_by_id })
  return (
    <Facts>
      <Fact label="Status">
        <Choice {...props} kind="status" />
      </Fact>
      <Fact label="Priority">
        <Choice {...props} kind="priority" />
      </Fact>
      <Fact label="Assignee">
        <Choice {...props} kind="assignee" />
      </Fact>
      <Fact label="Due">
        <Due {...props} />
        {task.due_date && directory.canWrite && (
          <button
            type="button"
            aria-label="Remove the due date"
            onClick={() => actions.setDue([task.id], null).catch(report)}
            className="grid size-5 place-items-center rounded-sm text-text-3 hover:bg-surface-3 touch:size-9"
          >
            <X className="size-3.5" aria-hidden="true" />
          </button>
        )}
      </Fact>
      <Fact label="Stream">
        <Choice {...props} kind="stream" />
      </Fact>
      <Fact label="Labels">
        <Labels {...props} />
      </Fact>
      <Fact label="Created">
        <span className="truncate text-text-2">
          <RelativeTime at={task.created_at} words />
          {creator && ` by ${creator.name}`}
        </span>
      </Fact>
      <Fact label="Changed">
        <RelativeTime at={task.updated_at} words className="text-text-2" />
      </Fact>
      {task.completed_at && (
        <Fact label="Done">
          <RelativeTime at={task.completed_at} words className="text-text-2" />
        </Fact>
      )}
    </Facts>
  )
}

export function PropertyChips(props: PropertiesProps) {
  return (
    <div className="-mx-4 flex gap-1.5 overflow-x-auto px-4 py-1 [scrollbar-width:none] sm:mx-0 sm:flex-wrap sm:px-0">
      <Choice {...props} kind="status" chip />
      <Choice {...props} kind="assignee" chip />
      <Choice {...props} kind="priority" chip />
      <Due {...props} chip />
      <Choice {...props} kind="stream" chip />
    </div>
  )
}
