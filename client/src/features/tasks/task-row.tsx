/** A task as one line of a list. Everything in it that can be pressed has a key in the list, so nothing in it takes Tab. */
import { Link } from '@tanstack/react-router'
import { Ban, CornerDownRight, PackageCheck } from 'lucide-react'
import { memo, type ReactNode, useEffect, useRef } from 'react'
import { Avatar } from '../../ui/avatar.tsx'
import { cx } from '../../ui/cx.ts'
import { Menu } from '../../ui/menu.tsx'
import { StatusShape } from '../../ui/status.tsx'
import { RowMarkView } from '../sync/row-mark.tsx'
import type { RowMark } from '../sync/row-marks.ts'
import type { TaskActions } from './actions.ts'
import { choiceEntries } from './choices.tsx'
import type { Directory } from './directory.ts'
import { AssigneeMark, DueMark, Label, PriorityMark, StatusMark, StreamDot, SubtaskCount } from './marks.tsx'
import { assigneeOf, plural, STATUS, type TaskRow } from './model.ts'

export type RowMenuKind = 'status' | 'assignee' | 'priority'

export interface TaskRowProps {
  readonly task: TaskRow
  readonly directory: Directory
  readonly actions: TaskActions
  readonly now: number
  readonly mark: RowMark | undefined
  /** Which of its menus is open; the others are plain buttons, so that a long list stays light. */
  readonly menu: RowMenuKind | undefined
  readonly onMenu: (menu: { id: string; kind: RowMenuKind } | undefined) => void
  readonly editing: boolean
  /** The title is done with: saved (text) or left as it was (undefined). */
  readonly onEdited: (id: string, title: string | undefined) => void
}

export const TaskRowView = memo(function TaskRowView(props: TaskRowProps) {
  const { task, directory, actions, now, mark, menu, onMenu, editing, onEdited } = props
  const stream = directory.stream(task.stream_id)
  const assignee = directory.actor(assigneeOf(task))
  const closed = task.status === 'done' || task.status === 'cancelled'
  const trigger = (kind: RowMenuKind, label: string, children: ReactNode) => {
    const button = (
      <button
        type="button"
        tabIndex={-1}
        aria-label={label}
        title={label}
        onClick={(event) => {
          event.stopPropagation()
          if (menu !== kind) onMenu({ id: task.id, kind })
        }}
        className="grid size-6 shrink-0 place-items-center rounded-sm hover:bg-surface-3 touch:size-9"
      >
        {children}
      </button>
    )
    if (menu !== kind) return button
    const current =
      kind === 'status' ? task.status : kind === 'priority' ? task.priority : (assigneeOf(task)?.id ?? 'none')
    return (
      <Menu
        open
        onOpenChange={(open) => !open && onMenu(undefined)}
        trigger={button}
        label={label}
        align={kind === 'assignee' ? 'end' : 'start'}
        items={choiceEntries(kind, [task.id], current, actions, directory)}
      />
    )
  }
  return (
    <span className="flex h-full min-w-0 items-center gap-1.5 pr-3">
      <span className="max-sm:hidden">
        {trigger('priority', `Priority: ${task.priority}. Change`, <PriorityMark priority={task.priority} />)}
      </span>
      {trigger('status', `Status: ${STATUS[task.status].label}. Change`, <StatusMark status={task.status} />)}
      {editing ? (
        <TitleInput task={task} onEdited={onEdited} />
      ) : (
        <span className="flex min-w-0 flex-1 items-center gap-2">
          <Link
            to="/tasks/$taskId"
            params={{ taskId: task.id }}
            tabIndex={-1}
            onClick={(event) => {
              // The list opens it; a modified click keeps its meaning (a new tab).
              if (!event.metaKey && !event.ctrlKey && !event.shiftKey) event.preventDefault()
            }}
            className={cx('min-w-0 truncate outline-none', closed ? 'text-text-3' : 'text-text-1')}
          >
            {task.title}
          </Link>
          {task.parent_title && (
            <span className="flex min-w-0 items-center gap-1 truncate text-xs text-text-3 max-md:hidden">
              <CornerDownRight className="size-3 shrink-0" aria-label="in" role="img" />
              <span className="truncate">{task.parent_title}</span>
            </span>
          )}
          <span className="inline-flex max-sm:hidden">
            <SubtaskCount task={task} />
          </span>
          {task.running && (
            <span className="inline-flex shrink-0 items-center gap-1 text-xs text-busy-ink">
              <StatusShape shape="arc" meaning="busy" />
              <span className="max-sm:sr-only">working</span>
            </span>
          )}
          {task.blockers > 0 && !closed && (
            <span className="inline-flex shrink-0 items-center gap-1 text-xs text-warning-ink">
              <Ban className="size-3.5" strokeWidth={1.75} aria-hidden="true" />
              <span className="max-sm:sr-only">blocked by {task.blockers}</span>
            </span>
          )}
          {task.reviews > 0 && (
            <span
              title={`${plural(task.reviews, 'deliverable')} to review`}
              className="inline-flex h-4.5 shrink-0 items-center gap-1 rounded-sm bg-accent-soft px-1.5 text-xs font-medium text-accent-ink"
            >
              <PackageCheck className="size-3.5" strokeWidth={1.75} aria-hidden="true" />
              <span className="max-sm:sr-only">Review</span>
            </span>
          )}
        </span>
      )}
      <span className="flex shrink-0 items-center gap-2 max-md:hidden">
        {task.tags.slice(0, 2).map((tag) => (
          <Label key={tag}>{tag}</Label>
        ))}
        {task.tags.length > 2 && <span className="text-2xs text-text-3">+{task.tags.length - 2}</span>}
        {stream && (
          <span className="inline-flex max-w-32 items-center gap-1.5 text-xs text-text-3">
            <StreamDot stream={stream} />
            <span className="truncate">{stream.name}</span>
          </span>
        )}
      </span>
      <DueMark task={task} zone={directory.zone} now={now} className="justify-end md:w-28" />
      {trigger(
        'assignee',
        `Assignee: ${assignee?.name ?? 'nobody'}. Change`,
        assignee ? <Avatar actor={assignee} decorative /> : <AssigneeMark task={task} directory={directory} />,
      )}
      <span className="grid w-5 shrink-0 place-items-center touch:w-6">
        <RowMarkView mark={mark} tabIndex={-1} />
      </span>
    </span>
  )
})

function TitleInput({ task, onEdited }: { task: TaskRow; onEdited: TaskRowProps['onEdited'] }) {
  const field = useRef<HTMLInputElement>(null)
  const done = useRef(false)
  useEffect(() => {
    field.current?.focus()
    field.current?.select()
  }, [])
  const finish = (title: string | undefined) => {
    if (done.current) return
    done.current = true
    onEdited(task.id, title)
  }
  return (
    <input
      ref={field}
      aria-label="Title"
      defaultValue={task.title}
      onClick={(event) => event.stopPropagation()}
      onBlur={(event) => finish(event.target.value)}
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing) return
        if (event.key === 'Enter') finish(event.currentTarget.value)
        else if (event.key === 'Escape') finish(undefined)
        else return
        event.preventDefault()
        event.stopPropagation()
      }}
      className="h-6 min-w-0 flex-1 rounded-sm bg-surface-1 px-1 outline-2 outline-focus touch:h-9 touch:text-lg"
    />
  )
}
