/**
 * Files of an agent as a person changes them: every change is a command to the agent's gateway, on this device at once and carried out when the gateway is there.
 *
 *  C1 A change names the blob it was made from. What the gateway has instead comes back as a conflict, with its text; nothing is overwritten.
 *  C2 The newest command about a path says how that file stands: waiting, refused, in conflict, or as the mirror (`agent_files`) has it.
 *  C3 Who changes a file again before the gateway has it builds on the waiting text: `blobSha` is what the gateway will have made of it.
 */
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Statement } from '@hq/shared/sync/contract.ts'

export type FileRow = Pick<Row<'agent_files'>, 'id' | 'path' | 'size' | 'sha' | 'content' | 'updated_at'>

export type FileAction = 'file_write' | 'file_delete' | 'file_restore'

export interface FileCommand {
  readonly id: string
  readonly action: FileAction
  readonly path: string
  readonly status: Row<'agent_commands'>['status']
  readonly created_at: string
  readonly error_message: string | null
  /** Text of a `file_write`; null for the others. */
  readonly text: string | null
  readonly conflict: { readonly sha: string | null; readonly text: string | null; readonly truncated?: boolean } | null
}

/** The newest change of each path. $1: agent. */
export const FILE_COMMANDS = `
  select distinct on (payload->>'path') id, action, payload->>'path' as path, status, created_at, error_message,
    payload->>'text' as text, result->'conflict' as conflict
  from agent_commands
  where agent_id = $1 and action in ('file_write', 'file_delete', 'file_restore') and deleted_at is null and payload->>'path' is not null
  order by payload->>'path', created_at desc, id desc`

export type FileState =
  | { readonly kind: 'saved' }
  | { readonly kind: 'waiting'; readonly command: FileCommand }
  | { readonly kind: 'refused'; readonly command: FileCommand }
  | { readonly kind: 'conflict'; readonly command: FileCommand }

/** C2. */
export function fileState(command: FileCommand | undefined): FileState {
  if (!command || command.status === 'done') return { kind: 'saved' }
  if (['pending', 'leased', 'running'].includes(command.status)) return { kind: 'waiting', command }
  return command.conflict ? { kind: 'conflict', command } : { kind: 'refused', command }
}

/** Git's id of a text as a blob. */
export async function blobSha(text: string): Promise<string> {
  const content = new TextEncoder().encode(text)
  const head = new TextEncoder().encode(`blob ${content.length}\0`)
  const whole = new Uint8Array(head.length + content.length)
  whole.set(head)
  whole.set(content, head.length)
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-1', whole))
  return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

interface Addressee {
  readonly id: string
  readonly tenant_id: string
  readonly gateway_id: string | null
}

export const askGateway = (
  agent: Addressee,
  personId: string,
  id: string,
  action: FileAction | 'file_history' | 'file_read' | 'upgrade_template',
  payload: Readonly<Record<string, unknown>>,
): Statement => ({
  sql: `insert into agent_commands (id, tenant_id, gateway_id, agent_id, action, payload, requested_by)
        values ($1, $2, $3, $4, $5, $6::jsonb, $7)`,
  params: [id, agent.tenant_id, agent.gateway_id, agent.id, action, JSON.stringify(payload), personId],
})

/** A refused or conflicting change that nobody wants any more. */
export const forget = (commandId: string): Statement => ({
  sql: 'update agent_commands set deleted_at = now() where id = $1',
  params: [commandId],
})

/** Why a path can't be one, or null. The gateway decides; this only spares a person the way there. */
export function pathProblem(path: string): string | null {
  const parts = path.split('/')
  if (path === '') return 'Give the file a name, such as notes/plan.md.'
  if (path.startsWith('/') || path.includes('\\') || parts.some((part) => ['', '.', '..'].includes(part)))
    return 'Use a path inside the workspace, such as notes/plan.md.'
  if (parts.some((part) => part.toLowerCase() === '.git')) return '“.git” belongs to git.'
  return null
}
