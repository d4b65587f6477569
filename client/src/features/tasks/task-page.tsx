/** `/tasks/$taskId`: one column from top to bottom: what it is, why it stands where it stands, what was handed in, what was said. */
import { useNavigate } from '@tanstack/react-router'
import { Copy, MoreHorizontal, RotateCcw, Trash2 } from 'lucide-react'
import { useCallback, useMemo } from 'react'
import { useById, useRows, useSession } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { useShortcuts } from '../../ui/keyboard.ts'
import { useMedia } from '../../ui/media.ts'
import { Menu } from '../../ui/menu.tsx'
import { useNow } from '../../ui/relative-time.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { StatusShape } from '../../ui/status.tsx'
import { toast } from '../../ui/toast.tsx'
import { RUNS_SQL, RunLine, type RunRow } from '../agents/run-line.tsx'
import type { Names } from '../comments/activity.ts'
import { Conversation } from '../comments/conversation.tsx'
import { RowMarkView } from '../sync/row-mark.tsx'
import { useRowMark } from '../sync/row-marks.ts'
import type { TaskActions } from './actions.ts'
import { Chooser } from './choices.tsx'
import { DeliverableCard } from './deliverable-card.tsx'
import { deliverablesOf, type Link as EntityLink, REVIEW } from './deliverables.ts'
import { type Directory, useDirectory } from './directory.ts'
import { dueLabel } from './due.ts'
import { StatusMark } from './marks.tsx'
import { assigneeOf, PRIORITY, STATUS, type Task, type TaskPriority, type TaskStatus } from './model.ts'
import { Properties, PropertyChips } from './properties.tsx'
import { BlockedBy, Relations, useRelated } from './relations.tsx'
import { Subtasks } from './subtasks.tsx'
import { TaskConflicts } from './task-conflicts.tsx'
import { TaskDescription, TaskTitle } from './task-text.tsx'
import { TaskWhy } from './task-why.tsx'
import { report, toastUndo, useTaskActions } from './use-actions.ts'
import { useChooser } from './use-chooser.ts'

export function TaskPage({ taskId }: { taskId: string }) {
  const directory = useDirectory()
  const actions = useTaskActions()
  const valid = /^[0-9a-f-]{36}$/i.test(taskId)
  const { row: task, ready } = useById<Task>('tasks', valid ? taskId : undefined)
  if (task) return <Loaded task={task} directory={directory} actions={actions} />
  const crumbs = [{ label: 'Tasks', to: '/tasks' }]
  if (valid && !ready)
    return (
      <Page title="Task" crumbs={crumbs}>
        {null}
      </Page>
    )
  return (
    <Page title="Task" crumbs={crumbs}>
      <EmptyState drawing="search" title="This task is not on this device">
        It may have been deleted for good, or it has not arrived yet. It appears here as soon as it does.
      </EmptyState>
    </Page>
  )
}

function Loaded({ task, directory, actions }: { task: Task; directory: Directory; actions: TaskActions }) {
  const navigate = useNavigate()
  const { principal } = useSession()
  const now = useNow()
  const wide = useMedia('(min-width: 1100px)')
  const mark = useRowMark('tasks', task.id)
  const related = useRelated(task.id)
  const parent = useById<Task>('tasks', task.parent_id ?? undefined).row
  const links = useRows<EntityLink>(
    'select * from entity_links where owner_id = $1::uuid and deleted_at is null order by created_at',
    [task.id],
    { tables: ['entity_links'], keepPrevious: false },
  ).rows
  const deliverables = useMemo(() => deliverablesOf(links), [links])
  const { chosen, choose, close } = useChooser()
  const openSync = () => void navigate({ to: '/sync', ...(mark && { hash: mark.anchor }) })
  const names = useNames(directory)
  const actor = useCallback((type: 'human' | 'agent', id: string) => directory.actor({ type, id }), [directory])

  const remove = () => {
    actions
      .remove([task.id])
      .then(() => {
        toastUndo('Task deleted')
        void navigate({ to: '/tasks' })
      })
      .catch(report)
  }
  const restore = () => actions.set([task.id], { deleted_at: null }, 'brought a task back').catch(report)
  const mine = (kind: Parameters<typeof choose>[0]) => () => choose(kind, [task.id], task.title)
  useShortcuts(
    directory.canWrite
      ? [
          { keys: '.', label: 'Change status', group: 'Task', run: mine('status') },
          { keys: 'a', label: 'Assign', group: 'Task', run: mine('assignee') },
          { keys: 'p', label: 'Change priority', group: 'Task', run: mine('priority') },
          { keys: 'd', label: 'Set the due date', group: 'Task', run: mine('due') },
          { keys: 's', label: 'Move to a stream', group: 'Task', run: mine('stream') },
          {
            keys: 'e',
            label: 'Edit the title',
            group: 'Task',
            run: () => document.querySelector<HTMLElement>('textarea[aria-label="Title"]')?.focus(),
          },
          {
            keys: 'm',
            label: 'Comment',
            group: 'Task',
            run: () => document.querySelector<HTMLElement>('textarea[aria-label="Comment"]')?.focus(),
          },
          { keys: 'escape', label: 'Back to the list', group: 'Task', run: () => void navigate({ to: '/tasks' }) },
        ]
      : [{ keys: 'escape', label: 'Back to the list', group: 'Task', run: () => void navigate({ to: '/tasks' }) }],
  )
  const assignee = assigneeOf(task)
  const agent = directory.agent(assignee?.type === 'agent' ? assignee.id : null)
  const facts = (
    <>
      <div className="px-4 py-3">
        <Properties task={task} directory={directory} actions={actions} />
      </div>
      <div className="border-t border-line px-4 py-3">
        <Relations task={task} related={related} directory={directory} actions={actions} />
      </div>
    </>
  )
  return (
    <Page
      title={task.title}
      leading={<StatusMark status={task.status} named />}
      crumbs={[
        { label: 'Tasks', to: '/tasks' },
        ...(parent ? [{ label: parent.title, to: `/tasks/${parent.id}` }] : []),
      ]}
      status={mark && <RowMarkView mark={mark} />}
      inspector={{ title: 'Details', content: facts }}
      actions={
        <Menu
          label="More"
          align="end"
          trigger={<IconButton label="More" icon={MoreHorizontal} />}
          items={[
            {
              kind: 'item',
              label: 'Copy the address',
              icon: Copy,
              onSelect: () =>
                void navigator.clipboard
                  .writeText(window.location.href)
                  .then(() => toast({ title: 'Address copied' }), report),
            },
            ...(directory.canWrite
              ? [
                  { kind: 'separator' } as const,
                  { kind: 'item', label: 'Delete', icon: Trash2, danger: true, onSelect: remove } as const,
                ]
              : []),
          ]}
        />
      }
    >
      <div className="mx-auto grid w-full max-w-[760px] min-w-0 gap-6 px-4 pt-5 pb-16 sm:px-6">
        {task.deleted_at && (
          <Banner
            meaning="warning"
            title="This task is deleted"
            action={
              directory.canWrite && (
                <Button size="sm" icon={RotateCcw} onClick={() => void restore()}>
                  Bring it back
                </Button>
              )
            }
          >
            It no longer shows in lists. What was said and done stays here.
          </Banner>
        )}
        {mark?.state === 'rejected' && <Rejected reason={mark.reason} onOpen={openSync} />}
        <TaskConflicts task={task} directory={directory} actions={actions} />
        <div className="grid min-w-0 gap-2">
          <TaskTitle task={task} actions={actions} directory={directory} />
          {!wide && <PropertyChips task={task} directory={directory} actions={actions} />}
          {agent && (
            <TaskWhy
              task={task}
              agent={agent}
              related={related}
              reviews={deliverables.filter((each) => each.current.review_status === 'submitted').length}
            />
          )}
          {!agent && <BlockedBy related={related} />}
          <TaskDescription task={task} actions={actions} directory={directory} />
        </div>
        {deliverables.length > 0 && (
          <section aria-labelledby="deliverables" className="grid min-w-0 gap-3">
            <h2 id="deliverables" className="section-title">
              Deliverables
            </h2>
            {deliverables.map((deliverable) => (
              <DeliverableCard key={deliverable.current.id} deliverable={deliverable} directory={directory} />
            ))}
          </section>
        )}
        {!task.parent_id && <Subtasks task={task} directory={directory} actions={actions} now={now} />}
        <Runs taskId={task.id} directory={directory} />
        <Conversation
          entityType="task"
          entityId={task.id}
          tenantId={principal.tenant_id}
          me={directory.me}
          canWrite={directory.canWrite}
          mentionable={directory.mentionable}
          actor={actor}
          names={names}
          hint={agent ? `${agent.name} hears of every comment here` : undefined}
        />
      </div>
      <Chooser chosen={chosen} onClose={close} actions={actions} directory={directory} />
    </Page>
  )
}

function useNames(directory: Directory): Names {
  const now = Math.floor(useNow() / 3_600_000) * 3_600_000
  return useMemo(
    (): Names => ({
      agent: (id) => directory.agent(id)?.name,
      person: (id) => directory.person(id)?.name,
      stream: (id) => directory.stream(id)?.name,
      status: (status) => STATUS[status as TaskStatus]?.label ?? status,
      priority: (priority) => PRIORITY[priority as TaskPriority]?.label ?? priority,
      review: (status) => REVIEW[status as keyof typeof REVIEW]?.label ?? status,
      day: (due) => dueLabel(due, directory.zone, now),
    }),
    [directory, now],
  )
}

function Runs({ taskId, directory }: { taskId: string; directory: Directory }) {
  const { rows } = useRows<RunRow>(
    `${RUNS_SQL} where r.task_id = $1::uuid and r.deleted_at is null order by r.started_at desc limit 20`,
    [taskId],
    { tables: ['agent_runs', 'tasks'], keepPrevious: false },
  )
  if (rows.length === 0) return null
  return (
    <section aria-labelledby="runs" className="min-w-0">
      <h2 id="runs" className="section-title pb-1">
        Runs
      </h2>
      <ul className="-mx-2">
        {rows.map((run) => {
          const agent = directory.agent(run.agent_id)
          return (
            <RunLine
              key={run.id}
              run={{ ...run, task_title: agent?.name ?? 'An agent that is gone' }}
              slug={agent?.slug ?? ''}
            />
          )
        })}
      </ul>
    </section>
  )
}

/** Why the server refused the newest change of this row, with the way to deal with it. */
function Rejected({ reason, onOpen }: { reason: string | undefined; onOpen: () => void }) {
  return (
    <Banner
      meaning="warning"
      title="The server refused a change to this task"
      action={
        <Button size="sm" onClick={onOpen}>
          Look at it
        </Button>
      }
    >
      <span className="inline-flex items-start gap-1.5">
        <StatusShape shape="triangle" meaning="warning" className="mt-[3px]" />
        {reason ?? 'The reason stands on the sync page.'} Your change is kept until you decide.
      </span>
    </Banner>
  )
}
