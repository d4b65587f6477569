/** The engine over time and over kinds of tables: retention, new snapshots, partitions, generated columns. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createEngine, type Engine, type EngineOptions } from './engine.ts'
import { createEngineClient, type EngineClient, isChange } from './testing/client.ts'
import { startTestPostgres, type TestPostgres } from './testing/postgres.ts'

let postgres: TestPostgres
let database: pg.Client
let dataDir: string
let engine: Engine
let count = 0
/** Whichever engine runs at the moment. */
const present: Pick<Engine, 'handle'> = { handle: (request) => engine.handle(request) }

const connect = async (): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString: postgres.url })
  client.on('error', () => undefined)
  await client.connect()
  return client
}
const startEngine = async (options: Partial<EngineOptions> = {}): Promise<Engine> => {
  const started = createEngine({ connectionString: postgres.url, dataDir, longPollMs: 3000, ...options })
  await started.start()
  return started
}
const restartEngine = async (options: Partial<EngineOptions> = {}): Promise<void> => {
  await engine.stop()
  engine = await startEngine(options)
}
const ids = (client: EngineClient): number[] =>
  [...client.rows().values()].map((row) => Number(row['id'])).sort((a, b) => a - b)
const upTo = (n: number, from = 1): number[] => Array.from({ length: n - from + 1 }, (_, index) => index + from)
const hasId = (id: number) => (changes: readonly { value?: Readonly<Record<string, string | null>> }[]) =>
  changes.some(({ value }) => value?.['id'] === String(id))
/** Everything that was committed so far is in the log. */
const settle = async (): Promise<void> => {
  const { rows } = await database.query<{ lsn: string }>(`select (pg_current_wal_flush_lsn() - '0/0')::text as lsn`)
  expect(await engine.waitFor(Number(rows[0]?.lsn))).toBe(true)
}
const eventually = async (what: string, probe: () => Promise<boolean> | boolean): Promise<void> => {
  for (const deadline = Date.now() + 15_000; !(await probe()); await sleep(30)) {
    if (Date.now() > deadline) throw new Error(`not in time: ${what}`)
  }
}

beforeAll(async () => {
  postgres = await startTestPostgres()
  database = await connect()
})
afterAll(async () => {
  await database?.end()
  await postgres?.stop()
})
let item: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'hq-engine-'))
  item = `item_${++count}`
  await database.query(`create table ${item} (id int primary key, tenant uuid, title text, n int)`)
  engine = await startEngine()
})
afterEach(async () => {
  await engine.stop()
  await database.query('select pg_drop_replication_slot(slot_name) from pg_replication_slots where not active')
  await database.query('drop publication if exists hq_shapes')
  await rm(dataDir, { recursive: true, force: true })
})

describe('tables', () => {
  test('a partitioned table is one shape, whichever partition a row is in', async () => {
    await database.query(
      `create table ${item}_p (id int, region text, n int, primary key (id, region)) partition by list (region)`,
    )
    for (const region of ['a', 'b'])
      await database.query(`create table ${item}_${region} partition of ${item}_p for values in ('${region}')`)
    await database.query(`insert into ${item}_p values (1, 'a', 1), (2, 'b', 2)`)
    const client = createEngineClient(present, { table: `${item}_p`, where: 'n > 0' })
    await client.catchUp()
    await database.query(`insert into ${item}_b values (3, 'b', 3)`)
    await database.query(`update ${item}_p set n = 0 where id = 2`)
    await database.query(`update ${item}_p set region = 'b' where id = 1`)
    await settle()
    await client.catchUp()
    expect([...client.rows().values()]).toEqual([
      { id: '3', region: 'b', n: '3' },
      { id: '1', region: 'b', n: '1' },
    ])
    await database.query(`truncate ${item}_p`)
    await eventually('a 409 after TRUNCATE', async () => (await client.request()).status === 409)
  })

  test('generated columns are the same in snapshot and log; virtual ones are in neither', async () => {
    await database.query(`create table ${item}_g (id int primary key, n int, twice int generated always as (n * 2) stored,
      thrice int generated always as (n * 3) virtual)`)
    await database.query(`insert into ${item}_g values (1, 1)`)
    const client = createEngineClient(present, { table: `${item}_g` })
    await client.catchUp()
    await database.query(`insert into ${item}_g values (2, 2)`)
    await client.follow(hasId(2))
    expect([...client.rows().values()]).toEqual([
      { id: '1', n: '1', twice: '2' },
      { id: '2', n: '2', twice: '4' },
    ])
  })

  test('system catalogs and temporary tables are not served', async () => {
    await database.query('create temporary table passing (id int primary key)')
    for (const table of ['pg_catalog.pg_authid', 'pg_temp.passing', 'information_schema.sql_features']) {
      expect((await createEngineClient(present, { table }).request()).status).toBe(400)
    }
  })
})

describe('retention', () => {
  const write = async (from: number, to: number): Promise<void> => {
    for (const id of upTo(to, from)) {
      await database.query(`insert into ${item} (id, title) values ($1, repeat('x', 300))`, [id])
      if (id % 2 === 0) await database.query(`delete from ${item} where id = $1`, [id - 1])
    }
  }

  test('a long log gets a new snapshot: newcomers begin there, the others go on where they are', async () => {
    await restartEngine({ maintenanceMs: 50, compactBytes: 10_000 })
    const early = createEngineClient(present, { table: item })
    await early.catchUp()
    const { handle } = early
    let newcomer = createEngineClient(present, { table: item })
    let id = 0
    await eventually('a new handle', async () => {
      await write(id + 1, id + 20)
      id += 20
      newcomer = createEngineClient(present, { table: item })
      await newcomer.catchUp()
      return newcomer.handle !== handle
    })
    expect(newcomer.log.filter(isChange).filter(({ headers }) => headers['lsn'] === undefined).length).toBeGreaterThan(
      0,
    )
    await write(id + 1, id + 20)
    await settle()
    await early.catchUp()
    await newcomer.catchUp()
    expect(early.handle).toBe(handle)
    expect(ids(newcomer)).toEqual(ids(early))
    await restartEngine()
    const later = createEngineClient(present, { table: item })
    await later.catchUp()
    expect(ids(later)).toEqual(ids(early))
  })

  test('what is older than the retention is refused with a 409 and deleted', async () => {
    const away = createEngineClient(present, { table: item })
    await away.catchUp()
    await write(1, 20)
    await settle()
    await away.catchUp()
    const { handle = '', offset } = away
    await write(21, 60)
    await settle()
    const settled = createEngineClient(present, { table: item })
    await settled.catchUp()
    await engine.stop()
    engine = await startEngine({ maintenanceMs: 50, retentionMs: 300 })
    await sleep(400)
    await eventually('a 409 for the old offset', async () => {
      const reply = await createEngineClient(present, { table: item }).request({ handle, offset })
      return reply.status === 409 && reply.headers['electric-handle'] !== handle
    })
    await database.query(`insert into ${item} (id) values (1000)`)
    await settled.follow(hasId(1000))
    const fresh = createEngineClient(present, { table: item })
    await fresh.catchUp()
    expect(ids(fresh)).toEqual(ids(settled))
    const files = await readdir(join(dataDir, 'snapshots'))
    expect(files.every((name) => !/^\d+-0-/.test(name))).toBe(true)
  })

  test('a shape that nobody asks for is dropped', async () => {
    await restartEngine({ maintenanceMs: 50, idleShapeMs: 200 })
    await createEngineClient(present, { table: item }).catchUp()
    expect(engine.status().shapes).toBe(1)
    await eventually('no shape left', () => engine.status().shapes === 0)
    await eventually('no file left', async () => (await readdir(join(dataDir, 'snapshots'))).length === 0)
  })
})
