/**
 * The SQL of task lists. Pure: from a view to a statement and its parameters; no value ever becomes part of the text.
 *
 * S1 Only the window that is looked at is read; headings come from counts.
 * S2 Groups come in the order given, and only those given: a collapsed group is left out, and its rows are never read.
 * S3 The order is total (the id decides last), so that windows never overlap or leave a row out.
 */
import type { SqlValue } from '../../replica/hooks.ts'
import type { Grouping, Sorting, TaskView } from './view.ts'

export interface Query {
  readonly sql: string
  readonly params: readonly SqlValue[]
}

/** What a list needs to know beside its view. */
export interface ListContext {
  readonly me: string
  /** ISO; rounded by the caller, because it is part of the query's identity. */
  readonly now: string
  readonly today: string
  readonly week: string
}

/** Everything that a list's rows are made of. */
export const LIST_TABLES = ['tasks', 'task_relations', 'agent_runs', 'entity_links', 'conflicts'] as const

class Params {
  readonly values: SqlValue[] = []
  add(value: SqlValue, type: string): string {
    this.values.push(value)
    return `$${this.values.length}::${type}`
  }
}

const CLOSED = `('done', 'cancelled')`

function conditions(view: TaskView, context: ListContext, p: Params): string {
  const all = ['t.deleted_at is null', 't.archived_at is null']
  if (view.status.length > 0) all.push(`t.status = any(${p.add(view.status, 'text[]')})`)
  if (view.stream === 'none') all.push('t.stream_id is null')
  else if (view.stream) all.push(`t.stream_id::text = ${p.add(view.stream, 'text')}`)
  if (view.assignee === 'none') all.push('t.assignee_agent_id is null and t.assignee_person_id is null')
  else if (view.assignee) {
    const id = p.add(view.assignee === 'me' ? context.me : view.assignee, 'text')
    all.push(`(t.assignee_agent_id::text = ${id} or t.assignee_person_id::text = ${id})`)
  }
  if (view.overdue) {
    all.push(`t.due_date < ${p.add(context.now, 'timestamptz')} and t.status not in ${CLOSED}`)
  }
  const words = view.q.trim().split(/\s+/).filter(Boolean)
  for (const word of words) {
    const pattern = p.add(`%${word.replace(/[\\%_]/g, '\\$&')}%`, 'text')
    all.push(
      `(t.title ilike ${pattern} or t.description ilike ${pattern} or array_to_string(t.tags, ' ') ilike ${pattern})`,
    )
  }
  // Subtasks stand under their parents, unless somebody looks for something: then each counts for itself.
  if (words.length === 0 && !view.assignee && !view.overdue) all.push('t.parent_id is null')
  return all.join('\n    and ')
}

function groupKey(grouping: Grouping, context: ListContext, p: Params): string {
  switch (grouping) {
    case 'status':
      return 't.status'
    case 'priority':
      return 't.priority'
    case 'assignee':
      return `coalesce(t.assignee_agent_id::text, t.assignee_person_id::text, 'none')`
    case 'stream':
      return `coalesce(t.stream_id::text, 'none')`
    case 'due':
      return `case when t.status in ${CLOSED} then 'closed' when t.due_date is null then 'none'
        when t.due_date < ${p.add(context.now, 'timestamptz')} then 'overdue'
        when t.due_date < ${p.add(context.today, 'timestamptz')} then 'today'
        when t.due_date < ${p.add(context.week, 'timestamptz')} then 'week' else 'later' end`
    case 'none':
      return `'all'`
  }
}

const PRIORITY_RANK = `array_position('{urgent,high,medium,low}'::text[], t.priority)`
const ORDER: Record<Sorting, string> = {
  manual: 't.sort_order, t.id',
  priority: `${PRIORITY_RANK}, t.due_date nulls last, t.sort_order, t.id`,
  due: `t.due_date nulls last, ${PRIORITY_RANK}, t.sort_order, t.id`,
  updated: 't.updated_at desc, t.id',
  created: 't.created_at desc, t.id',
}

/** How many rows each group has: `{key, count}`. */
export function groupCounts(view: TaskView, context: ListContext): Query {
  const p = new Params()
  const key = groupKey(view.group, context, p)
  return {
    sql: `select ${key} as key, count(*)::int as count
  from tasks t
  where ${conditions(view, context, p)}
  group by 1`,
    params: p.values,
  }
}

export interface Window {
  readonly limit: number
  readonly offset: number
}

/** The rows of a window over the groups, in their order. Each row also says where the window begins (`base`), because results of an older window stay on screen for a moment. */
export function windowRows(view: TaskView, context: ListContext, groups: readonly string[], window: Window): Query {
  const p = new Params()
  const wanted = p.add(groups, 'text[]')
  const base = p.add(window.offset, 'int')
  const limit = p.add(window.limit, 'int')
  const key = groupKey(view.group, context, p)
  const where = conditions(view, context, p)
  return {
    sql: `with page as (
  select t.id, row_number() over (order by array_position(${wanted}, ${key}), ${ORDER[view.sort]}) as place
  from tasks t
  where ${where}
    and ${key} = any(${wanted})
  order by 2 limit ${limit} offset ${base}
)
select ${ROW_COLUMNS}, ${base} as base
from page join tasks t on t.id = page.id
order by page.place`,
    params: p.values,
  }
}

/** The columns of a `TaskRow`, for `tasks t`. */
export const ROW_COLUMNS = `t.id, t.title, t.status, t.priority, t.stream_id, t.parent_id,
  (select p.title from tasks p where p.id = t.parent_id) as parent_title,
  t.assignee_type, t.assignee_agent_id, t.assignee_person_id, t.due_date, t.tags, t.sort_order, t.updated_at,
  (select count(*)::int from tasks s where s.parent_id = t.id and s.deleted_at is null) as subtasks,
  (select count(*)::int from tasks s where s.parent_id = t.id and s.deleted_at is null and s.status in ${CLOSED}) as subtasks_done,
  (select count(*)::int from task_relations r join tasks b on b.id = r.source_task_id
    where r.target_task_id = t.id and r.relation_type = 'blocks' and r.deleted_at is null
      and b.deleted_at is null and b.status not in ${CLOSED}) as blockers,
  exists (select from agent_runs a where a.task_id = t.id and a.status = 'running') as running,
  (select count(*)::int from entity_links l where l.owner_id = t.id and l.is_deliverable and l.deleted_at is null
      and l.review_status = 'submitted'
      and not exists (select from entity_links n where n.owner_id = t.id and n.supersedes_id = l.id and n.deleted_at is null)
  ) as reviews,
  exists (select from conflicts c where c.row_id = t.id and c.resolved_at is null and c.deleted_at is null) as conflicted`

/** Ids of everything that a view shows, for 'select all'. */
export function allIds(view: TaskView, context: ListContext): Query {
  const p = new Params()
  return { sql: `select t.id from tasks t where ${conditions(view, context, p)}`, params: p.values }
}
