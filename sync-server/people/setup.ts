/**
 * The first visit: creates the owner and names the workspace.
 *
 *  1. Exactly one owner comes of it, however many ask at once: the workspace row is locked, and `initialized` decides.
 *  2. User, person and workspace are one transaction: a crash leaves either nothing or all of it.
 */
import { newId } from '../database/ids.ts'
import { type Pool, transaction } from '../database/pool.ts'
import { HttpError } from '../errors.ts'
import { createUser } from './auth.ts'
import { parse, setupSchema } from './input.ts'

export async function setupRequired(pool: Pool, tenantId: string): Promise<boolean> {
  const { rows } = await pool.query<{ initialized: boolean }>(
    'select initialized from workspace where tenant_id = $1',
    [tenantId],
  )
  return rows[0]?.initialized !== true
}

/** Returns what the new owner signs in with. */
export async function setup(
  pool: Pool,
  tenantId: string,
  input: unknown,
): Promise<{ email: string; password: string }> {
  const { name, email, password, workspace_name, timezone } = parse(setupSchema, input)
  await transaction(pool, async (client) => {
    const { rows } = await client.query<{ initialized: boolean }>(
      'select initialized from workspace where tenant_id = $1 for update',
      [tenantId],
    )
    if (rows[0]?.initialized !== false) {
      throw new HttpError(
        409,
        'already_set_up',
        'This workspace already has an owner. Please sign in, or ask for an invitation.',
      )
    }
    const userId = await createUser(client, { name, email, password })
    await client.query(
      `insert into people (id, tenant_id, user_id, name, email, role, timezone) values ($1, $2, $3, $4, $5, 'owner', $6)`,
      [newId(), tenantId, userId, name, email, timezone],
    )
    await client.query(
      `update workspace set initialized = true, name = $2, owner_name = $3, owner_preferred_name = $4, owner_timezone = $5, updated_at = now()
        where tenant_id = $1`,
      [tenantId, workspace_name, name, name.split(' ')[0], timezone],
    )
    await client.query('update tenants set name = $2 where id = $1', [tenantId, workspace_name])
  })
  return { email, password }
}
