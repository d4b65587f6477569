/** The rows that agent screens show: an agent with its gateway, its live run and its open work, in one statement. */
import type { Row } from '@hq/shared/schema/tables.ts'
import type { WatchedTable } from '../../replica/live-query.ts'
import type { AgentFacts } from './agent-state.ts'

export type AgentRow = Row<'agents'> &
  AgentFacts & {
    readonly run_id: string | null
    readonly run_demo: boolean | null
    readonly open_tasks: number
    readonly cost_month: number | null
    readonly tokens_month: number | null
  }

export const AGENT_TABLES: readonly WatchedTable[] = [
  'agents',
  'approvals',
  'gateways',
  'agent_runs',
  'agent_commands',
  'agent_usage',
  'tasks',
  'entity_links',
  'people',
]

const LIVE_COMMAND = "('pending', 'leased', 'running')"

export const AGENTS_SQL = `
  select a.*,
    g.label as gateway_label, g.status as gateway_status, g.last_seen_at as gateway_seen_at,
    p.name as paused_by_name,
    r.id as run_id, r.started_at as run_started_at, r.demo as run_demo, rt.title as run_task_title,
    exists (select 1 from agent_commands c where c.agent_id = a.id and c.action = 'remove' and c.status in ${LIVE_COMMAND}) as removing,
    (select count(*)::int from tasks t where t.assignee_agent_id = a.id and t.deleted_at is null and t.status in ('todo', 'in_progress', 'blocked')) as open_tasks,
    (select count(*)::int from entity_links l join tasks t on t.id = l.owner_id and l.owner_type = 'task'
      where l.submitted_by_agent_id = a.id and l.is_deliverable and l.review_status = 'submitted' and l.deleted_at is null and t.deleted_at is null) as reviews,
    (select q.title from approvals q where q.agent_id = a.id and q.status = 'pending' and q.deleted_at is null
      and (q.expires_at is null or q.expires_at > now()) order by q.created_at limit 1) as question,
    u.cost_month, u.tokens_month
  from agents a
  left join gateways g on g.id = a.gateway_id and g.deleted_at is null
  left join people p on p.id = a.paused_by
  left join lateral (select id, started_at, demo, task_id from agent_runs where agent_id = a.id and status = 'running' order by started_at desc limit 1) r on true
  left join tasks rt on rt.id = r.task_id
  left join lateral (
    select sum(cost_usd) as cost_month, sum(input_tokens + output_tokens) as tokens_month
    from agent_usage where agent_id = a.id and occurred_at >= date_trunc('month', now())
  ) u on true`

export const emojiOf = (agent: { readonly meta: Record<string, unknown> | null }): string =>
  typeof agent.meta?.['emoji'] === 'string' && agent.meta['emoji'] !== '' ? agent.meta['emoji'] : '🤖'

export const teamOf = (agent: { readonly meta: Record<string, unknown> | null }): string | undefined =>
  typeof agent.meta?.['team'] === 'string' ? agent.meta['team'] : undefined

/** "$0.0042", "$3.20"; null is unmetered. */
export function money(usd: number | null): string {
  if (usd === null) return 'unmetered'
  if (usd === 0) return '$0'
  return usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`
}

export const tokens = (count: number): string =>
  count < 10_000 ? count.toLocaleString('en') : `${Math.round(count / 1000).toLocaleString('en')}k`
