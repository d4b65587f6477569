/**
 * Commands and wakes that are not over on a gateway, and in one phrase why each waits. Pure but for the SQL.
 *
 *  Q1 The reason nearest to the cause: a silent gateway before everything, then its pause, then the agent's gate, then the queue itself.
 *  Q2 What a silent gateway once said to be running is not shown as running.
 */
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { WatchedTable } from '../../replica/live-query.ts'
import type { Meaning } from '../../ui/cx.ts'
import { relative } from '../../ui/relative-time.tsx'
import type { Shape } from '../../ui/status.tsx'
import type { GatewayState } from './gateway-state.ts'

export interface Queued {
  readonly id: string
  /** Of a command; null: a wake. */
  readonly action: Enum<'command_action'> | null
  readonly status: Enum<'command_status'> | Enum<'inbox_item_status'>
  readonly created_at: string
  readonly not_before: string | null
  readonly agent_name: string | null
  readonly task_id: string | null
  readonly task_title: string | null
  readonly gate: string | null
  readonly gate_detail: string | null
  readonly error_message: string | null
}

export const QUEUE_SQL = `
  select c.id, c.action, c.status, c.created_at, null::timestamptz as not_before, a.name as agent_name, null::uuid as task_id, null as task_title,
    null as gate, null as gate_detail, c.error_message
  from agent_commands c left join agents a on a.id = c.agent_id
  where c.gateway_id = $1 and c.status in ('pending', 'leased', 'running') and c.deleted_at is null
  union all
  select i.id, null, i.status, i.created_at, i.not_before, a.name, i.task_id, t.title, a.gate, a.gate_detail, i.error_message
  from agent_inbox_items i left join agents a on a.id = i.agent_id left join tasks t on t.id = i.task_id
  where i.gateway_id = $1 and i.status in ('pending', 'leased', 'failed') and i.deleted_at is null
  order by created_at limit 100`

export const QUEUE_TABLES: readonly WatchedTable[] = ['agent_commands', 'agent_inbox_items', 'agents', 'tasks']

export interface Reason {
  readonly meaning: Meaning
  readonly shape: Shape
  readonly label: string
  readonly detail: string | undefined
}

const QUIET = new Set(['open', 'working', 'no_work'])

/** @param now milliseconds since 1970 */
export function reasonOf(item: Queued, gateway: Pick<GatewayState, 'key'>, now: number): Reason {
  const waits = (detail: string | undefined): Reason => ({ meaning: 'waiting', shape: 'clock', label: 'Waits', detail })
  if (gateway.key === 'silent' || gateway.key === 'connecting') return waits('until the gateway is back')
  if (item.status === 'running' || item.status === 'leased')
    return { meaning: 'busy', shape: 'arc', label: 'Under way', detail: undefined }
  if (item.action !== null) return waits('for its turn')
  if (gateway.key === 'paused') return waits('the gateway is paused')
  if (item.gate !== null && !QUIET.has(item.gate)) return waits(item.gate_detail ?? item.gate.replaceAll('_', ' '))
  const at = item.not_before === null ? Number.NaN : Date.parse(item.not_before)
  if (item.status === 'failed' || at > now) {
    const when = at > now ? `tries again ${relative(at, now, true)}` : 'tries again'
    return waits(item.error_message ? `${when}: ${item.error_message}` : when)
  }
  return waits(item.gate === 'working' ? 'for what the agent does first' : 'for its turn')
}
