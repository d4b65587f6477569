/** What a task waits for, what waits for it, and what it has to do with. Stored in one direction: the source blocks the target. */
import { Link } from '@tanstack/react-router'
import { Link2, Plus, X } from 'lucide-react'
import { useState } from 'react'
import { replica, useRows } from '../../replica/hooks.ts'
import { CommandPalette } from '../../ui/command-palette.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Menu } from '../../ui/menu.tsx'
import { toast } from '../../ui/toast.tsx'
import type { TaskActions } from './actions.ts'
import type { Directory } from './directory.ts'
import { StatusMark } from './marks.tsx'
import type { Task, TaskStatus } from './model.ts'
import { report } from './use-actions.ts'

export type RelationKind = 'blocked-by' | 'blocks' | 'relates'

export interface RelatedTask {
  readonly relation_id: string
  readonly kind: RelationKind
  readonly id: string
  readonly title: string
  readonly status: TaskStatus
}

const RELATED = `select r.id as relation_id, t.id, t.title, t.status,
    case when r.relation_type = 'relates_to' then 'relates' when r.target_task_id = $1::uuid then 'blocked-by' else 'blocks' end as kind
  from task_relations r
  join tasks t on t.id = case when r.source_task_id = $1::uuid then r.target_task_id else r.source_task_id end
  where (r.source_task_id = $1::uuid or r.target_task_id = $1::uuid) and r.deleted_at is null and t.deleted_at is null
  order by t.status in ('done', 'cancelled'), t.title`

/** `id` is that of the other task, so rows are keyed by it within one kind. */
export function useRelated(taskId: string): readonly RelatedTask[] {
  return useRows<RelatedTask>(RELATED, [taskId], { tables: ['task_relations', 'tasks'], keepPrevious: false }).rows
}

const NAMES: Record<RelationKind, string> = { 'blocked-by': 'Blocked by', blocks: 'Blocks', relates: 'Relates to' }

export function Relations(props: {
  task: Task
  related: readonly RelatedTask[]
  directory: Directory
  actions: TaskActions
}) {
  const { task, related, directory, actions } = props
  const [adding, setAdding] = useState<RelationKind>()
  const add = async (other: string) => {
    if (!adding) return
    if (adding === 'relates') return actions.relate(task.id, other, 'relates_to')
    const [source, target] = adding === 'blocks' ? [task.id, other] : [other, task.id]
    if (await wouldWaitForItself(source, target)) {
      toast({
        title: 'That would be a circle',
        description: 'The two tasks would wait for each other, and neither could ever begin.',
        meaning: 'warning',
      })
      return
    }
    await actions.relate(source, target, 'blocks')
  }
  return (
    <section aria-labelledby="relations" className="min-w-0">
      <header className="flex h-6 items-center justify-between pb-1">
        <h2 id="relations" className="text-xs text-text-3">
          Relations
        </h2>
        {directory.canWrite && (
          <Menu
            label="Add a relation"
            align="end"
            trigger={<IconButton size="sm" label="Add a relation" icon={Plus} />}
            items={(Object.keys(NAMES) as RelationKind[]).map((kind) => ({
              kind: 'item',
              label: `${NAMES[kind]}…`,
              onSelect: () => setAdding(kind),
            }))}
          />
        )}
      </header>
      {related.length === 0 && <p className="text-text-3">None.</p>}
      {(Object.keys(NAMES) as RelationKind[]).map((kind) => {
        const of = related.filter((each) => each.kind === kind)
        if (of.length === 0) return null
        return (
          <div key={kind} className="pb-1">
            <h3 className="py-0.5 text-xs text-text-2">{NAMES[kind]}</h3>
            <ul>
              {of.map((each) => (
                <li key={each.relation_id} className="group/rel flex min-h-7 items-center gap-2 touch:min-h-11">
                  <StatusMark status={each.status} named />
                  <Link
                    to="/tasks/$taskId"
                    params={{ taskId: each.id }}
                    className="min-w-0 flex-1 truncate rounded-sm hover:underline"
                  >
                    {each.title}
                  </Link>
                  {directory.canWrite && (
                    <IconButton
                      size="sm"
                      label={`Remove the relation to “${each.title}”`}
                      icon={X}
                      onClick={() => void actions.removeRelation(each.relation_id).catch(report)}
                      className="opacity-0 group-hover/rel:opacity-100 focus-visible:opacity-100 touch:opacity-100"
                    />
                  )}
                </li>
              ))}
            </ul>
          </div>
        )
      })}
      <TaskPicker
        open={adding !== undefined}
        title={adding ? `${NAMES[adding]}…` : ''}
        exclude={[task.id, ...related.filter((each) => each.kind === adding).map((each) => each.id)]}
        onPick={(id) => void add(id).catch(report)}
        onClose={() => setAdding(undefined)}
      />
    </section>
  )
}

/** Whether `source` already waits, over any number of steps, for `target`. */
async function wouldWaitForItself(source: string, target: string): Promise<boolean> {
  const rows = await replica().query(
    `with recursive waits(id) as (
       select $1::uuid union
       select r.target_task_id from task_relations r join waits w on r.source_task_id = w.id
       where r.relation_type = 'blocks' and r.deleted_at is null)
     select 1 from waits where id = $2::uuid`,
    [target, source],
  )
  return rows.length > 0
}

type Found = Pick<Task, 'id' | 'title' | 'status'>

/** Finds one task by typing. */
export function TaskPicker(props: {
  open: boolean
  title: string
  exclude: readonly string[]
  onPick: (id: string) => void
  onClose: () => void
}) {
  const { open, title, exclude, onPick, onClose } = props
  const [query, setQuery] = useState('')
  const { rows } = useRows<Found>(
    `select id, title, status from tasks where deleted_at is null and not (id = any($1::uuid[])) and title ilike $2::text
     order by status in ('done', 'cancelled'), updated_at desc limit 20`,
    [exclude, `%${query.trim().replace(/[\\%_]/g, '\\$&')}%`],
    { tables: ['tasks'], enabled: open },
  )
  return (
    <CommandPalette
      open={open}
      onOpenChange={(next) => {
        if (next) return
        setQuery('')
        onClose()
      }}
      scope={title}
      placeholder="Find a task…"
      onQueryChange={setQuery}
      empty="No task has this in its title."
      groups={[
        {
          heading: 'Tasks',
          found: true,
          items: rows.map((task) => ({
            id: task.id,
            label: task.title,
            leading: <StatusMark status={task.status} named />,
            onSelect: () => onPick(task.id),
          })),
        },
      ]}
    />
  )
}

/** In a sentence of the page: by what a task is blocked. */
export function BlockedBy({ related }: { related: readonly RelatedTask[] }) {
  const blockers = related.filter(
    (each) => each.kind === 'blocked-by' && each.status !== 'done' && each.status !== 'cancelled',
  )
  if (blockers.length === 0) return null
  return (
    <p className="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-1 text-warning-ink">
      <Link2 className="size-4 shrink-0" strokeWidth={1.75} aria-hidden="true" />
      Blocked by
      {blockers.map((each) => (
        <Link key={each.id} to="/tasks/$taskId" params={{ taskId: each.id }} className="min-w-0 truncate underline">
          {each.title}
        </Link>
      ))}
    </p>
  )
}
