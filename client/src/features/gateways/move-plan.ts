/**
 * Moving an agent to another gateway: what is written, and what somebody should know before. Pure.
 *
 *  M1 Where the old gateway works (or will be back) it is a `move` command to it: files, history and open work go along.
 *  M2 Without the old gateway the agent's row itself is changed and the new gateway told, in one mutation; its files are as they were last seen. For admins.
 */
import type { SqlValue } from '../../replica/hooks.ts'

export interface MovingAgent {
  readonly id: string
  readonly tenant_id: string
  readonly gateway_id: string | null
}

export interface Written {
  readonly sql: string
  readonly params: SqlValue[]
}

const COMMAND = `insert into agent_commands (id, tenant_id, gateway_id, agent_id, action, payload, requested_by) values ($1, $2, $3, $4, 'move', $5::jsonb, $6)`

export function moveStatements(
  agent: MovingAgent,
  toGatewayId: string,
  how: 'with_files' | 'without_files',
  { commandId, personId }: { readonly commandId: string; readonly personId: string },
): Written[] {
  const { id, tenant_id, gateway_id } = agent
  if (how === 'with_files') {
    const payload = JSON.stringify({ to_gateway_id: toGatewayId })
    return [{ sql: COMMAND, params: [commandId, tenant_id, gateway_id, id, payload, personId] }]
  }
  const payload = JSON.stringify({ without_files: true })
  return [
    { sql: 'update agents set gateway_id = $2 where id = $1', params: [id, toGatewayId] },
    { sql: COMMAND, params: [commandId, tenant_id, toGatewayId, id, payload, personId] },
  ]
}

/** "GITHUB_TOKEN and 2 more have to be set again"; undefined: there are none. */
export function secretsSentence(keys: readonly string[]): string | undefined {
  if (keys.length === 0) return undefined
  const shown = keys.length > 3 ? [...keys.slice(0, 2), `${keys.length - 2} more`] : [...keys]
  const list = shown.length === 1 ? shown[0] : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
  return `${list} ${keys.length === 1 ? 'has' : 'have'} to be set again there: a secret is sealed for one gateway’s key.`
}
