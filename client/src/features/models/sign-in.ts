/**
 * Signing in to a model provider, as statements of one local transaction, and how far it is. What is pasted is a secret: it is sealed for the gateway before anything is
 * written, and the command names only the sealed row.
 */
import { isLoopbackHost, type SignInFlow, STILL_COUNTS, WAITING_FOR_SIGN_IN } from '@hq/shared/domain/oauth-settings.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Statement } from '@hq/shared/sync/contract.ts'
import { addSecret, replaceSecret } from '../secrets/set-secret.ts'
import { keyName } from './connection.ts'

type Connection = Pick<Row<'model_connections'>, 'id' | 'tenant_id' | 'gateway_id' | 'label'>
type Command = Pick<Row<'agent_commands'>, 'status' | 'result' | 'error_message'>

const command = (
  { tenant_id, gateway_id }: Connection,
  action: 'auth_start' | 'auth_paste' | 'auth_refresh',
  payload: Readonly<Record<string, string>>,
  id: string,
  personId: string,
): Statement => ({
  sql: `insert into agent_commands (id, tenant_id, gateway_id, action, payload, requested_by) values ($1, $2, $3, $4, $5, $6)`,
  params: [id, tenant_id, gateway_id, action, JSON.stringify(payload), personId],
})

export const beginSignIn = (connection: Connection, flow: SignInFlow, id: string, personId: string): Statement[] => [
  command(connection, 'auth_start', { connection_id: connection.id, flow }, id, personId),
]

export const renewSignIn = (connection: Connection, id: string, personId: string): Statement[] => [
  command(connection, 'auth_refresh', { connection_id: connection.id }, id, personId),
]

/** @param secret the one that earlier pastes were sealed as; null: this is the first */
export async function pasteSignIn(
  connection: Connection,
  secret: Row<'secrets'> | null,
  text: string,
  publicKey: string,
  ids: { readonly command: string; readonly secret: string; readonly sealed: string },
  personId: string,
): Promise<Statement[]> {
  const { id, tenant_id, gateway_id, label } = connection
  const sealed = secret
    ? await replaceSecret(secret, ids.sealed, publicKey, text.trim())
    : [
        ...(await addSecret(
          {
            id: ids.secret,
            tenant_id,
            gateway_id,
            agent_id: null,
            category: 'model',
            key: keyName(id),
            name: `Sign-in of ${label}`,
            note: null,
            created_by: personId,
          },
          ids.sealed,
          publicKey,
          text.trim(),
        )),
        { sql: 'update model_connections set secret_id = $2 where id = $1', params: [id, ids.secret] },
      ]
  return [
    ...sealed,
    command(connection, 'auth_paste', { connection_id: id, sealed_id: ids.sealed }, ids.command, personId),
  ]
}

export type Face =
  /** The gateway is asked; `away`: it is not heard of just now. */
  | { readonly key: 'asking' | 'sending' | 'trying'; readonly away: boolean }
  | { readonly key: 'link'; readonly url: string; readonly expiresAt: string; readonly problem: string | null }
  | {
      readonly key: 'code'
      readonly userCode: string
      readonly url: string
      readonly complete: string | null
      readonly expiresAt: string
    }
  | { readonly key: 'failed'; readonly why: string }
  | { readonly key: 'expired' }
  | { readonly key: 'done'; readonly detail: string | null }

const isLive = ({ status }: Command): boolean => ['pending', 'leased', 'running'].includes(status)

/** A page that may be opened: what a gateway says is not taken for granted. */
const pageOf = (value: unknown): string | null => {
  const url = typeof value === 'string' ? URL.parse(value) : null
  return url && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname)))
    ? url.href
    : null
}

/** @param begun, pasted the two commands · @param now milliseconds since 1970 */
export function faceOf(
  begun: Command | undefined,
  pasted: Command | undefined,
  connection: Pick<Row<'model_connections'>, 'status' | 'status_detail'>,
  away: boolean,
  now: number,
): Face {
  if (!begun || isLive(begun)) return { key: 'asking', away }
  if (begun.status !== 'done') return { key: 'failed', why: begun.error_message ?? 'The gateway did not say why.' }
  const result = (begun.result ?? {}) as Readonly<Record<string, unknown>>
  const expiresAt = String(result['expires_at'] ?? '')
  const isOver = Date.parse(expiresAt) <= now
  if (pasted && isLive(pasted)) return { key: 'sending', away }
  const waiting = connection.status === 'unchecked' && connection.status_detail === WAITING_FOR_SIGN_IN
  if (result['flow'] === 'paste' && pasted?.status !== 'done') {
    if (isOver) return { key: 'expired' }
    const url = pageOf(result['authorize_url'])
    return url === null
      ? { key: 'failed', why: 'The gateway named no page that can be opened.' }
      : { key: 'link', url, expiresAt, problem: pasted?.error_message ?? null }
  }
  if (waiting && result['flow'] === 'device') {
    if (isOver) return { key: 'expired' }
    const url = pageOf(result['verification_url'])
    return url === null
      ? { key: 'failed', why: 'The gateway named no page that can be opened.' }
      : {
          key: 'code',
          userCode: String(result['user_code'] ?? ''),
          url,
          complete: pageOf(result['verification_url_complete']),
          expiresAt,
        }
  }
  const detail = connection.status_detail ?? ''
  if (connection.status === 'failed' || detail.startsWith(STILL_COUNTS))
    return { key: 'failed', why: detail || 'The gateway did not say why.' }
  return connection.status === 'ok' ? { key: 'done', detail: connection.status_detail } : { key: 'trying', away }
}
