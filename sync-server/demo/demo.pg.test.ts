import { expect, test } from 'vitest'
import { migrate, readMigrations } from '../database/migrate.ts'
import { createPool } from '../database/pool.ts'
import { ensureTenant } from '../database/seed.ts'
import { startTestPostgres } from '../shapes/testing/postgres.ts'
import { DemoError, fillDemo } from './fill.ts'

test('fills an empty workspace, and only an empty one', async () => {
  const postgres = await startTestPostgres()
  const pool = createPool(postgres.url)
  try {
    await migrate(pool, await readMigrations())
    const { id: tenantId } = await ensureTenant(pool)
    const gatewayId = '0190a0b0-0000-7000-8000-00000000aaaa'
    await pool.query(
      `insert into gateways (id, tenant_id, gateway_id, slug, label) values ($1, $2, $1, 'local', 'Local')`,
      [gatewayId, tenantId],
    )
    const options = { tenantId, gatewayId, password: 'long enough', now: Date.now() }
    await fillDemo(pool, options)
    const count = async (table: string, where = 'true') =>
      (await pool.query<{ n: number }>(`select count(*)::int as n from ${table} where ${where}`)).rows[0]?.n ?? 0
    expect(await count('tasks')).toBeGreaterThanOrEqual(190)
    expect(await count('contacts')).toBe(100)
    expect(await count('knowledge_items')).toBe(30)
    expect(await count('agents')).toBe(4)
    expect(await count('agent_commands', `status = 'pending' and action = 'provision'`)).toBe(4)
    expect(await count('agent_inbox_items', `status = 'pending'`)).toBeLessThanOrEqual(3)
    expect(await count('entity_links', `review_status = 'submitted'`)).toBeGreaterThan(0)
    expect(await count('agent_runs')).toBeGreaterThan(10)
    await expect(fillDemo(pool, options)).rejects.toThrow(DemoError)
  } finally {
    await pool.end()
    await postgres.stop()
  }
})
