/**
 * Invitation links.
 *
 *  1. Only the hash of a token is stored; the link is shown once.
 *  2. A link works once, for seven days, and never gives a role above the inviter's (as that role is when the link is used).
 *  3. Why a link doesn't work is said: used, withdrawn, expired, or unknown.
 */
import { type Role, roleAtLeast } from '@hq/shared/domain/access.ts'
import type { Principal } from '@hq/shared/sync/protocol.ts'
import { hashToken, newId, newToken } from '../database/ids.ts'
import { type Pool, type Queryable, sqlState, transaction } from '../database/pool.ts'
import { HttpError } from '../errors.ts'
import { createUser } from './auth.ts'
import { acceptSchema, inviteSchema, parse } from './input.ts'

type Person = Principal & { kind: 'person' }

const DAYS = 7

export async function invite(
  pool: Pool,
  inviter: Person,
  input: unknown,
): Promise<{ id: string; token: string; expires_at: string }> {
  const { email, role } = parse(inviteSchema, input ?? {})
  if (!roleAtLeast(inviter.role, role)) {
    throw new HttpError(403, 'forbidden', `You are ${inviter.role} and can't invite somebody as ${role}.`)
  }
  if (email) {
    const known = await pool.query('select from people where tenant_id = $1 and email = $2 and deleted_at is null', [
      inviter.tenant_id,
      email,
    ])
    if (known.rowCount) throw new HttpError(409, 'already_member', `${email} already belongs to this workspace.`)
  }
  const id = newId()
  const token = newToken()
  const { rows } = await pool.query<{ expires_at: Date }>(
    `insert into invitations (id, tenant_id, email, role, token_hash, invited_by, expires_at)
     values ($1, $2, $3, $4, $5, $6, now() + make_interval(days => $7)) returning expires_at`,
    [id, inviter.tenant_id, email ?? null, role, hashToken(token), inviter.person_id, DAYS],
  )
  return { id, token, expires_at: (rows[0]?.expires_at ?? new Date()).toISOString() }
}

/** Those that can still be used, newest first. */
export async function openInvitations(pool: Pool, tenantId: string): Promise<unknown[]> {
  const { rows } = await pool.query(
    `select i.id, i.email, i.role, p.name as invited_by, i.created_at, i.expires_at
       from invitations i join people p on p.id = i.invited_by
      where i.tenant_id = $1 and i.accepted_at is null and i.revoked_at is null and i.expires_at > now() order by i.created_at desc`,
    [tenantId],
  )
  return rows
}

export async function revokeInvitation(pool: Pool, tenantId: string, id: string): Promise<void> {
  const { rowCount } = await pool.query(
    'update invitations set revoked_at = now() where id = $1 and tenant_id = $2 and accepted_at is null and revoked_at is null',
    [id, tenantId],
  )
  if (!rowCount) throw new HttpError(404, 'not_found', 'There is no such open invitation.')
}

interface Invitation {
  id: string
  tenant_id: string
  email: string | null
  role: Role
  workspace_name: string
  invited_by: string
  expires_at: Date
}

/** The invitation that a token stands for, or an error that says why it can't be used (3). */
export async function findInvitation(db: Queryable, token: string, lock = false): Promise<Invitation> {
  const { rows } = await db.query<Invitation & { problem: string | null; inviter_role: Role; inviter_gone: boolean }>(
    `select i.id, i.tenant_id, i.email, i.role, i.expires_at, w.name as workspace_name, p.name as invited_by, p.role as inviter_role,
            p.deleted_at is not null as inviter_gone,
            case when i.accepted_at is not null then 'used' when i.revoked_at is not null then 'revoked' when i.expires_at <= now() then 'expired' end as problem
       from invitations i join people p on p.id = i.invited_by join workspace w on w.tenant_id = i.tenant_id
      where i.token_hash = $1 ${lock ? 'for update of i' : ''}`,
    [hashToken(token)],
  )
  const found = rows[0]
  if (!found)
    throw new HttpError(
      404,
      'invitation_unknown',
      'This invitation link is not valid. Please check that it was copied whole, or ask for a new one.',
    )
  const by = found.invited_by
  if (found.problem === 'used')
    throw new HttpError(
      410,
      'invitation_used',
      'This invitation has already been used. If that was you, sign in; otherwise ask for a new one.',
    )
  if (found.problem === 'expired')
    throw new HttpError(410, 'invitation_expired', `This invitation has expired. Please ask ${by} for a new one.`)
  if (found.problem === 'revoked' || found.inviter_gone || !roleAtLeast(found.inviter_role, found.role)) {
    throw new HttpError(
      410,
      'invitation_revoked',
      `This invitation was withdrawn. Please ask ${found.inviter_gone ? 'an admin' : by} for a new one.`,
    )
  }
  return found
}

/** Makes the user and the person. Returns what it signs in with. */
export async function acceptInvitation(
  pool: Pool,
  token: string,
  input: unknown,
): Promise<{ email: string; password: string }> {
  const { name, email, password } = parse(acceptSchema, input)
  try {
    await transaction(pool, async (client) => {
      const invitation = await findInvitation(client, token, true)
      if (invitation.email && invitation.email !== email) {
        throw new HttpError(403, 'wrong_email', `This invitation is for ${invitation.email}. Please use that address.`)
      }
      const personId = await join(client, invitation, { name, email, password })
      await client.query('update invitations set accepted_at = now(), accepted_by = $2 where id = $1', [
        invitation.id,
        personId,
      ])
    })
  } catch (error) {
    if (sqlState(error) === '23505')
      throw new HttpError(409, 'email_taken', `${email} already has an account here. Please sign in.`)
    throw error
  }
  return { email, password }
}

/** A person who was removed and is invited anew keeps its row, and so its authorship; its old password and sessions don't come back. */
async function join(
  client: Queryable,
  { tenant_id, role }: Invitation,
  person: { name: string; email: string; password: string },
): Promise<string> {
  const { rows } = await client.query<{ id: string; user_id: string | null; deleted_at: Date | null }>(
    'select id, user_id, deleted_at from people where tenant_id = $1 and email = $2 for update',
    [tenant_id, person.email],
  )
  const former = rows[0]
  if (former?.deleted_at) {
    await client.query('update people set user_id = null where id = $1', [former.id])
    await client.query('delete from auth_user where id = $1', [former.user_id])
  }
  const userId = await createUser(client, person)
  if (former?.deleted_at) {
    await client.query(
      'update people set user_id = $2, name = $3, role = $4, deleted_at = null, updated_at = now() where id = $1',
      [former.id, userId, person.name, role],
    )
    return former.id
  }
  const id = newId()
  await client.query('insert into people (id, tenant_id, user_id, name, email, role) values ($1, $2, $3, $4, $5, $6)', [
    id,
    tenant_id,
    userId,
    person.name,
    person.email,
    role,
  ])
  return id
}
