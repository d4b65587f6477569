/**
 * What needs a person, in one list. Derived from rows; pure apart from the statement it goes with.
 *
 *  H1 The order is what unblocks most first: questions that a run waits with, approvals, then what failed, then what is blocked, then what was mentioned; newest first within.
 *  H2 A thing is named once: a failed set-up is the agent's row, not also its command's.
 */

export type AttentionKind = 'approval' | 'review' | 'agent_error' | 'command' | 'dead_letter' | 'blocked'

export interface AttentionRow {
  readonly kind: AttentionKind
  readonly id: string
  readonly title: string
  readonly detail: string | null
  readonly task_id: string | null
  readonly agent_slug: string | null
  readonly agent_name: string | null
  readonly agent_meta: Record<string, unknown> | null
  readonly at: string
}

/** Everything in one statement, so that the list is of one moment. */
export const ATTENTION_SQL = `
  select * from (
    select 'approval' as kind, p.id, p.title, null as detail, null::uuid as task_id, a.slug as agent_slug, a.name as agent_name, a.meta as agent_meta, p.created_at as at
      from approvals p left join agents a on a.id = p.agent_id
      where p.status = 'pending' and p.deleted_at is null and (p.expires_at is null or p.expires_at > now())
    union all
    select 'review', l.id, t.title, l.label, t.id, a.slug, a.name, a.meta, l.created_at
      from entity_links l join tasks t on l.owner_type = 'task' and t.id = l.owner_id left join agents a on a.id = l.submitted_by_agent_id
      where l.is_deliverable and l.review_status = 'submitted' and l.deleted_at is null and t.deleted_at is null and t.status not in ('done', 'cancelled')
        and not exists (select 1 from entity_links newer where newer.supersedes_id = l.id and newer.deleted_at is null)
    union all
    select 'agent_error', a.id, a.name, a.status_reason, null, a.slug, a.name, a.meta, a.updated_at
      from agents a where a.deleted_at is null and (a.status = 'error' or a.gate = 'stalled')
    union all
    select 'command', c.id, c.action, c.error_message, null, a.slug, a.name, a.meta, coalesce(c.completed_at, c.updated_at)
      from agent_commands c left join agents a on a.id = c.agent_id
      where c.deleted_at is null and c.status in ('failed', 'dead_letter') and c.updated_at > now() - interval '7 days'
        and not (c.action = 'provision' and a.status = 'error')
        and not exists (select 1 from agent_commands again where again.agent_id is not distinct from c.agent_id and again.action = c.action and again.created_at > c.created_at)
    union all
    select 'dead_letter', i.id, coalesce(t.title, i.event_type), i.error_message, i.task_id, a.slug, a.name, a.meta, i.updated_at
      from agent_inbox_items i join agents a on a.id = i.agent_id left join tasks t on t.id = i.task_id
      where i.status = 'dead_letter' and i.deleted_at is null and a.deleted_at is null and (t.id is null or t.status not in ('done', 'cancelled'))
    union all
    select 'blocked', t.id, t.title, null, t.id, a.slug, a.name, a.meta, t.updated_at
      from tasks t left join agents a on a.id = t.assignee_agent_id
      where t.status = 'blocked' and t.deleted_at is null
  ) needs
  order by array_position(array['approval', 'review', 'agent_error', 'command', 'dead_letter', 'blocked'], kind), at desc, id
  limit 50`

export const ATTENTION_TABLES = [
  'approvals',
  'entity_links',
  'tasks',
  'agents',
  'agent_commands',
  'agent_inbox_items',
] as const

export const KIND_LABEL: Record<AttentionKind, string> = {
  approval: 'Allow?',
  review: 'Approve',
  agent_error: 'Agent',
  command: 'Command',
  dead_letter: 'Given up',
  blocked: 'Blocked',
}

/** "Good morning, Ada": by the hour (0–23) where the person is. */
export const greeting = (hour: number, name: string): string => {
  const part = hour < 5 ? 'night' : hour < 12 ? 'morning' : hour < 18 ? 'afternoon' : 'evening'
  return part === 'night' ? `Still up, ${name}?` : `Good ${part}, ${name}`
}

const THINGS: Record<string, string> = {
  task: 'the task',
  comment: 'a comment',
  deliverable: 'the deliverable',
  agent: 'the agent',
  command: 'the command',
  person: 'the person',
  gateway: 'the gateway',
  stream: 'the stream',
  workspace: 'the workspace',
  knowledge_item: 'the page',
  contact: 'the contact',
}

const VERBS: Record<string, string> = {
  created: 'created',
  updated: 'changed',
  deleted: 'deleted',
  restored: 'restored',
  archived: 'archived',
  status_changed: 'moved',
  assigned: 'assigned',
  commented: 'commented:',
  reviewed: 'reviewed',
  attached: 'attached',
  sent: 'sent',
}

/** "created the task “Brief”": what one line of the audit log says after the name of who did it. */
export function auditSentence(row: {
  readonly action: string
  readonly entity_type: string
  readonly summary: string | null
}): string {
  const verb = VERBS[row.action] ?? row.action.replaceAll('_', ' ')
  if (row.action === 'commented') return `${verb} ${row.summary ?? ''}`.trim()
  const thing = THINGS[row.entity_type] ?? row.entity_type.replaceAll('_', ' ')
  return row.summary ? `${verb} ${thing} “${row.summary}”` : `${verb} ${thing}`
}
