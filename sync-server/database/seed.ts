/** The rows that a new database begins with: one tenant, its workspace (not yet initialised), and the epoch of the database. */
import { randomUUID } from 'node:crypto'
import { newId } from './ids.ts'
import { type Pool, transaction } from './pool.ts'

export interface Tenant {
  readonly id: string
  /** Changes when the database was restored from a backup: replicas then refetch. */
  readonly epoch: string
}

/** Finds or makes them; safe to call at every start and from two processes at once. */
export function ensureTenant(pool: Pool): Promise<Tenant> {
  return transaction(pool, async (client) => {
    await client.query('lock table tenants in share row exclusive mode')
    const found = await client.query<{ id: string }>('select id from tenants order by created_at limit 1')
    const id = found.rows[0]?.id ?? newId()
    if (!found.rows[0]) await client.query(`insert into tenants (id, name, slug) values ($1, 'HQ', 'hq')`, [id])
    await client.query(
      `insert into workspace (id, tenant_id, name, slug, initialized) select $1, $2, 'HQ', 'hq', false
        where not exists (select from workspace where tenant_id = $2)`,
      [newId(), id],
    )
    await client.query(
      `insert into server_state (key, value) values ('epoch', to_jsonb($1::text)) on conflict do nothing`,
      [randomUUID()],
    )
    const state = await client.query<{ value: string }>(`select value from server_state where key = 'epoch'`)
    return { id, epoch: String(state.rows[0]?.value) }
  })
}

/** The database was restored: everybody is told by a new epoch. Returns it. */
export async function renewEpoch(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ value: string }>(
    `insert into server_state (key, value) values ('epoch', to_jsonb($1::text))
     on conflict (key) do update set value = excluded.value returning value`,
    [randomUUID()],
  )
  return String(rows[0]?.value)
}
