/** What an agent is shown of tasks: read models over the replica, shared by its tools, the local API and the context of a run. */
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Tx } from '@hq/shared/sync/contract.ts'

export interface TaskLine {
  readonly id: string
  readonly title: string
  readonly status: Row<'tasks'>['status']
  readonly priority: Row<'tasks'>['priority']
  /** ISO time, or null. */
  readonly due_date: string | null
  readonly assigned_to_me: boolean
  /** Titles of open tasks that block this one. */
  readonly waiting_for: readonly string[]
  /** Review status of the newest deliverable, or null. */
  readonly review: Row<'entity_links'>['review_status']
}

export interface DeliverableView {
  readonly id: string
  readonly label: string | null
  readonly kind: Row<'entity_links'>['target_type']
  readonly review_status: Row<'entity_links'>['review_status']
  readonly review_round: number
  readonly review_note: string | null
  /** Text of a `text` deliverable, else null. */
  readonly body: string | null
  readonly url: string | null
  readonly mine: boolean
}

export interface CommentView {
  readonly id: string
  readonly author: string
  readonly author_type: Row<'comments'>['actor_type']
  readonly mine: boolean
  readonly body: string
  readonly created_at: string
}

export interface TaskView extends TaskLine {
  readonly description: string | null
  readonly stream: string | null
  readonly tags: readonly string[]
  readonly model_override: string | null
  readonly thinking_override: Row<'tasks'>['thinking_override']
  readonly parent: { readonly id: string; readonly title: string } | null
  readonly subtasks: readonly { readonly id: string; readonly title: string; readonly status: Row<'tasks'>['status'] }[]
  /** Newest last, at most `COMMENTS_SHOWN`. */
  readonly comments: readonly CommentView[]
  /** Those that no newer version replaced, newest last. */
  readonly deliverables: readonly DeliverableView[]
}

export const COMMENTS_SHOWN = 30
const LIST_LIMIT = 100

type Line = Omit<TaskLine, 'assigned_to_me' | 'waiting_for' | 'review'> & { assignee_agent_id: string | null }

const LINE = 'select t.id, t.title, t.status, t.priority, t.due_date, t.assignee_agent_id from tasks t'
const ALIVE = 't.deleted_at is null and t.archived_at is null'

/** Open tasks assigned to the agent: the most urgent first, then what is due first. */
export async function tasksOf(db: Tx, agentId: string): Promise<TaskLine[]> {
  const rows = await db.query<Line>(
    `${LINE} where ${ALIVE} and t.assignee_type = 'agent' and t.assignee_agent_id = $1 and t.status not in ('done', 'cancelled')
     order by array_position(array['urgent', 'high', 'medium', 'low'], t.priority), t.due_date nulls last, t.created_at limit ${LIST_LIMIT}`,
    [agentId],
  )
  return addSigns(db, rows, agentId)
}

export interface TaskSearch {
  readonly text: string
  readonly status?: string | undefined
  readonly mine?: boolean | undefined
  /** At most 50. */
  readonly limit?: number | undefined
}

/** Tasks of the workspace whose title or description contains every word of `text`; titles that match come first. */
export async function searchTasks(db: Tx, agentId: string, search: TaskSearch): Promise<TaskLine[]> {
  const words = search.text.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 8)
  const params: (string | number)[] = []
  const bind = (value: string | number): string => `$${params.push(value)}`
  const conditions = [ALIVE]
  for (const word of words)
    conditions.push(`strpos(lower(t.title || ' ' || coalesce(t.description, '')), ${bind(word)}) > 0`)
  if (search.status) conditions.push(`t.status = ${bind(search.status)}`)
  if (search.mine) conditions.push(`t.assignee_agent_id = ${bind(agentId)}::uuid`)
  const first = words[0] ? `(strpos(lower(t.title), ${bind(words[0])}) > 0) desc, ` : ''
  const limit = Math.min(50, Math.max(1, Math.floor(search.limit ?? 20)))
  const rows = await db.query<Line>(
    `${LINE} where ${conditions.join(' and ')} order by ${first}t.updated_at desc, t.id limit ${limit}`,
    params,
  )
  return addSigns(db, rows, agentId)
}

async function addSigns(db: Tx, rows: readonly Line[], agentId: string): Promise<TaskLine[]> {
  if (rows.length === 0) return []
  const ids = rows.map((row) => row.id)
  const blockers = await openBlockers(db, ids)
  const links = await db.query<{ owner_id: string; review_status: TaskLine['review'] }>(
    `select l.owner_id, l.review_status from entity_links l where ${LIVE_DELIVERABLE} and l.owner_id = any($1::uuid[]) order by l.created_at, l.id`,
    [ids],
  )
  const reviews = new Map(links.map((link) => [link.owner_id, link.review_status]))
  return rows.map(({ assignee_agent_id, ...row }) => ({
    ...row,
    assigned_to_me: assignee_agent_id === agentId,
    waiting_for: blockers.get(row.id) ?? [],
    review: reviews.get(row.id) ?? null,
  }))
}

/** A deliverable of a task that no newer version has replaced. */
const LIVE_DELIVERABLE = `l.owner_type = 'task' and l.is_deliverable and l.deleted_at is null
  and not exists (select 1 from entity_links n where n.supersedes_id = l.id and n.deleted_at is null)`

/** Titles of the open tasks that block each of `taskIds`. */
export async function openBlockers(db: Tx, taskIds: readonly string[]): Promise<Map<string, string[]>> {
  const rows = await db.query<{ blocked: string; title: string }>(
    `select r.target_task_id as blocked, b.title from task_relations r join tasks b on b.id = r.source_task_id
     where r.relation_type = 'blocks' and r.deleted_at is null and b.deleted_at is null and b.status not in ('done', 'cancelled')
       and r.target_task_id = any($1::uuid[]) order by b.created_at, b.id`,
    [taskIds],
  )
  const result = new Map<string, string[]>()
  for (const { blocked, title } of rows) result.set(blocked, [...(result.get(blocked) ?? []), title])
  return result
}

export async function liveDeliverables(db: Tx, taskId: string): Promise<Row<'entity_links'>[]> {
  return db.query<Row<'entity_links'>>(
    `select l.* from entity_links l where ${LIVE_DELIVERABLE} and l.owner_id = $1 order by l.created_at, l.id`,
    [taskId],
  )
}

/** Everything about one task, or undefined when there is none. */
export async function showTask(db: Tx, agentId: string, taskId: string): Promise<TaskView | undefined> {
  const [task] = await db.query<Row<'tasks'> & { stream: string | null; parent_title: string | null }>(
    `select t.*, s.name as stream, p.title as parent_title from tasks t
     left join streams s on s.id = t.stream_id left join tasks p on p.id = t.parent_id
     where t.id = $1 and t.deleted_at is null`,
    [taskId],
  )
  if (!task) return undefined
  const [line] = await addSigns(db, [task], agentId)
  if (!line) return undefined
  const subtasks = await db.query<TaskView['subtasks'][number]>(
    'select id, title, status from tasks where parent_id = $1 and deleted_at is null order by sort_order, created_at limit 100',
    [taskId],
  )
  const comments = await db.query<CommentView & { agent_id: string | null }>(
    `select c.id, c.body, c.created_at, c.actor_type as author_type, c.actor_agent_id as agent_id,
            coalesce(p.name, a.name, 'HQ') as author
     from comments c left join people p on p.id = c.actor_person_id left join agents a on a.id = c.actor_agent_id
     where c.entity_type = 'task' and c.entity_id = $1 and c.deleted_at is null order by c.created_at desc, c.id desc limit ${COMMENTS_SHOWN}`,
    [taskId],
  )
  const deliverables = await liveDeliverables(db, taskId)
  return {
    id: line.id,
    title: line.title,
    status: line.status,
    priority: line.priority,
    due_date: line.due_date,
    assigned_to_me: line.assigned_to_me,
    waiting_for: line.waiting_for,
    review: line.review,
    description: task.description,
    stream: task.stream,
    tags: task.tags,
    model_override: task.model_override,
    thinking_override: task.thinking_override,
    parent: task.parent_id ? { id: task.parent_id, title: task.parent_title ?? '' } : null,
    subtasks,
    comments: comments.reverse().map(({ agent_id, ...comment }) => ({ ...comment, mine: agent_id === agentId })),
    deliverables: deliverables.map((link) => ({
      id: link.id,
      label: link.label,
      kind: link.target_type,
      review_status: link.review_status,
      review_round: link.review_round,
      review_note: link.review_note,
      body: link.body,
      url: link.url,
      mine: link.submitted_by_agent_id === agentId,
    })),
  }
}
