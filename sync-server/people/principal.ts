/**
 * Who a request comes from.
 *
 *  1. A person by better-auth's session cookie, a gateway by `Authorization: Bearer`; nothing else.
 *  2. A database that can't be asked is a 503, never "not signed in".
 *  3. Always from the database: a removed person, a changed role, a retired gateway count from the next request on.
 */
import type { Principal } from '@hq/shared/sync/protocol.ts'
import { hashToken } from '../database/ids.ts'
import type { Pool } from '../database/pool.ts'
import { busy } from '../errors.ts'
import type { Auth } from './auth.ts'

export type Authenticate = (headers: Headers) => Promise<Principal | null>

/** Prefix of a gateway's token, so that a leaked one is recognised for what it is. */
export const GATEWAY_TOKEN = 'hqgw_'

/** better-auth hides what went wrong, and has logged it: its database could not be asked. That says nothing about who is signed in. */
export const orBusy = <T>(asked: Promise<T>): Promise<T> =>
  asked.catch((error: unknown) => {
    if (error instanceof Error && 'status' in error && error.status === 'INTERNAL_SERVER_ERROR') throw busy()
    throw error
  })

export const createAuthenticate =
  (pool: Pool, auth: Auth): Authenticate =>
  async (headers) => {
    const bearer = /^Bearer\s+(\S+)$/i.exec(headers.get('authorization') ?? '')?.[1]
    if (bearer) return gatewayByToken(pool, bearer)
    if (!headers.get('cookie')?.includes('hq.session_token')) return null
    const session = await orBusy(auth.api.getSession({ headers }))
    return session ? personByUser(pool, session.user.id) : null
  }

export async function personByUser(pool: Pool, userId: string): Promise<Principal | null> {
  const { rows } = await pool.query<Principal & { kind: 'person' }>({
    name: 'person_by_user',
    text: `select 'person' as kind, tenant_id, id as person_id, role, name, email from people where user_id = $1 and deleted_at is null`,
    values: [userId],
  })
  return rows[0] ?? null
}

async function gatewayByToken(pool: Pool, token: string): Promise<Principal | null> {
  if (!token.startsWith(GATEWAY_TOKEN)) return null
  const { rows } = await pool.query<Principal & { kind: 'gateway' }>({
    name: 'gateway_by_token',
    text: `select 'gateway' as kind, g.tenant_id, g.id as gateway_id, g.slug
             from gateway_credentials c join gateways g on g.id = c.gateway_id
            where c.token_hash = $1 and c.revoked_at is null and g.deleted_at is null`,
    values: [hashToken(token)],
  })
  return rows[0] ?? null
}
