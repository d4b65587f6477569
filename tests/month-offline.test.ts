/**
 * A month away. A browser and a gateway work without a network, their clocks as they were then; meanwhile thousands of changes are made, the server's
 * change log is deleted past the place where they stopped, a migration (the server is killed in it) adds a column and a table, and the session ends. Then both come back: what
 * they made arrives once, what they missed is there, and a change that lost against a later one is kept. The gateway is updated last, and killed in it.
 */
import { randomUUID } from 'node:crypto'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { update } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Device,
  drained,
  eventually,
  hasChromium,
  openDevice,
  query,
  setUpOwner,
  signIn,
  statusOf,
  type TestServer,
  write,
  writeTask,
} from './support/browser.ts'
import { createChance, pause } from './support/chance.ts'
import { accountIsRight, accountOf, gatewayIsRight } from './support/chaos.ts'
import { browserConverged } from './support/converged.ts'
import type { Network } from './support/proxy.ts'
import { type Gateway, type System, startSystem, through } from './support/system.ts'

const chance = createChance('a month offline')
const MONTH_MS = 30 * 86_400_000
const CHANGES = 6_000

const LATER = `
-- @both
alter table tasks add column color text;
create table gadgets (id uuid primary key, tenant_id uuid not null, name text not null);
-- @replica
create table sync.later (id bigint primary key);
insert into sync.later select n from generate_series(1, 20000) n;
`

interface Stand {
  readonly handle: string
  readonly offset: string
  readonly replica_id: string
}

describe.skipIf(!hasChromium)('a month offline', () => {
  let system: System
  let network: Network
  let seen: TestServer
  let device: Device
  let gateway: Gateway
  let migrations: string

  beforeAll(async () => {
    migrations = await mkdtemp(join(tmpdir(), 'hq-later-'))
    await cp(join(import.meta.dirname, '../migrations'), migrations, { recursive: true })
    await writeFile(join(migrations, '0900_later.sql'), LATER)
    system = await startSystem({ browser: true, setUp: false })
    network = await system.proxy()
    seen = through(system.server, network)
    device = await openDevice(seen)
    await setUpOwner(device.page, seen)
    await system.signIn()
  })
  afterAll(async () => {
    await device?.close()
    await system?.stop()
    if (migrations) await rm(migrations, { recursive: true, force: true })
  })

  const mine: string[] = []
  const title = async (id: string): Promise<unknown> =>
    (await system.rows('select title from tasks where id = $1', [id]))[0]?.['title']

  test('both go away, work on, and come back', async () => {
    const known = await writeTask(device.page, 'known to all')
    gateway = await system.gateway('one', { url: network.url, env: { HQ_TEST_WRITER: 'gate' } })
    await system.when('the gateway is there', async () => accountOf(gateway).made.length > 3)
    await drained(device.page)
    await gateway.kill()
    await browserConverged(system, device.page)

    // Away.
    network.cut()
    await eventually('offline', async () => (await statusOf(device.page))?.status.connection === 'offline')
    const [stand] = await query<Stand & Record<string, unknown>>(
      device.page,
      `select s.handle, s."offset", r.replica_id from sync.shapes s, sync.replica r where s.table_name = 'tasks'`,
    )
    if (!stand) throw new Error('the browser has no place in its stream')
    for (let n = 0; n < 20; n++) mine.push(await writeTask(device.page, `away ${n}`))
    await write(device.page, [
      { sql: `update tasks set title = 'as it was a month ago' where id = $1`, params: [known] },
    ])
    const before = accountOf(gateway).made.length
    await gateway.start({ HQ_TEST_AHEAD_MS: String(-MONTH_MS) })
    await system.when('the gateway works without a network', async () => accountOf(gateway).made.length > before + 20)
    await gateway.kill()

    // Meanwhile.
    const other = await system.signIn()
    const asked = new URLSearchParams({ table: 'tasks', replica: 'full', ...stand })
    expect((await system.request(other, `/v1/shape?${asked}`)).status).toBe(200)
    await system.writer(other).apply([update('tasks', known, { title: 'known to all' }, { title: 'as it is now' })])
    for (let made = 0; made < CHANGES; made += 500) {
      await system.rows(
        `insert into tasks (id, tenant_id, title) select gen_random_uuid(), $1, 'meanwhile ' || n from generate_series($2::int + 1, $2::int + 500) n`,
        [system.tenantId, made],
      )
    }
    await system.rows(`update tasks set priority = 'high' where title like 'meanwhile %5'`)
    await system.server.kill()
    await system.server.start({
      TEST_SHAPES: JSON.stringify({ maintenanceMs: 100, retentionMs: 1, compactBytes: 1_000 }),
    })
    await system.when('the log no longer reaches back to where they stopped', async () => {
      // Only what is not the newest is ever deleted.
      await system.rows(
        `update tasks set priority = 'low' where id = (select id from tasks where title like 'meanwhile %' limit 1)`,
      )
      return (await system.request(other, `/v1/shape?${asked}`)).status === 409
    })
    await system.server.kill()
    for (let round = 0; round < 3; round++) {
      const starting = system.server.start({ TEST_MIGRATIONS: migrations }).catch((error: unknown) => error)
      await pause(chance.between(200, 900))
      await system.server.kill()
      await starting
    }
    await system.server.start()
    await system.rows(`update tasks set color = 'red' where title like 'meanwhile %7'`)
    await system.rows('delete from auth_session')

    // Back.
    network.heal()
    await gateway.start({ HQ_TEST_WRITER: '' })
    await device.page.getByLabel('Email', { exact: true }).waitFor({ timeout: 60_000 })
    expect(await system.rows(`select 1 from tasks where title like 'away %'`)).toEqual([])
    await signIn(device.page, seen)
    await drained(device.page, 60_000)
    await browserConverged(system, device.page, { ms: 120_000 })
    expect(await query(device.page, `select count(*)::int as n from tasks where title like 'meanwhile %'`)).toEqual([
      { n: CHANGES },
    ])
    expect(await system.rows(`select count(*)::int as n from tasks where title like 'away %'`)).toEqual([{ n: 20 }])
    expect(await title(known)).toBe('as it is now')
    expect(await system.rows('select loser from conflicts where row_id = $1', [known])).toEqual([
      { loser: 'as it was a month ago' },
    ])
    await accountIsRight(system, accountOf(gateway), 'gate')
    await gatewayIsRight(system, gateway)
  })

  test('an update that migrates a gateway’s database is killed again and again: it is applied once, and nothing is lost', async () => {
    for (let round = 0; round < 3; round++) {
      const starting = gateway.start({ HQ_TEST_MIGRATIONS: migrations }).catch((error: unknown) => error)
      await pause(chance.between(300, 1_600))
      await gateway.kill()
      await starting
    }
    await gateway.start({ HQ_TEST_MIGRATIONS: migrations, HQ_TEST_WRITER: 'updated' })
    await system.when('it works', async () => accountOf(gateway).made.length > 10)
    await gateway.end()
    const db = await PGlite.create({ dataDir: join(gateway.home, 'replica') })
    try {
      const { rows } = await db.query('select (select count(*)::int from sync.later) as rows, color from tasks limit 1')
      expect(rows).toEqual([{ rows: 20_000, color: null }])
    } finally {
      await db.close()
    }
    await accountIsRight(system, accountOf(gateway), 'updated')
    await writeTask(device.page, 'after the update', randomUUID())
    await drained(device.page)
    await browserConverged(system, device.page, { ms: 90_000 })
  })
})
