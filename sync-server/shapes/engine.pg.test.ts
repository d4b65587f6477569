/** The engine in process, against a real Postgres: what the black-box suite can't see or can't bring about. */
import { mkdtemp, rm } from 'node:fs/promises'
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
const _settle = async (): Promise<void> => {
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

describe('in process', () => {
  test('the definition of the server wins over what the client asks for', async () => {
    await database.query(`insert into ${item} (id, n) values (1, 1), (2, 2)`)
    const client = createEngineClient(present, { table: item, where: 'n = $1', params: ['2'], columns: ['id'] })
    const reply = await client.request({ table: 'pg_catalog.pg_authid', where: 'true', columns: 'n' })
    expect(reply.messages.filter(isChange).map(({ value }) => value)).toEqual([{ id: '2' }])
    expect(reply.headers['cache-control']).toBe('no-store')
  })

  test('position() and waitFor() follow commits, also of tables without a shape', async () => {
    await database.query(`insert into ${item} (id) values (1)`)
    const { rows } = await database.query<{ lsn: string }>(`select (pg_current_wal_flush_lsn() - '0/0')::text as lsn`)
    expect(await engine.waitFor(Number(rows[0]?.lsn))).toBe(true)
    expect(engine.position()).toBeGreaterThanOrEqual(Number(rows[0]?.lsn) - 1)
    expect(await engine.waitFor(engine.position() + 1e9, { timeoutMs: 50 })).toBe(false)
  })

  test('stopping ends held requests, and later ones are a 503', async () => {
    const client = createEngineClient(present, { table: item })
    await client.catchUp()
    const held = client.request({ live: 'true' })
    await sleep(50)
    await engine.stop()
    expect((await held).status).toBe(503)
    expect((await client.request()).status).toBe(503)
  })

  test('a client that is gone frees its request at once', async () => {
    const client = createEngineClient(present, { table: item })
    await client.catchUp()
    const leaving = new AbortController()
    const started = Date.now()
    const held = client.request({ live: 'true' }, leaving.signal)
    leaving.abort()
    await held
    expect(Date.now() - started).toBeLessThan(2000)
  })

  test('with a list of tables, others are refused, and a table may join later', async () => {
    await database.query(`create table ${item}_b (id int primary key)`)
    await restartEngine({ tables: [item] })
    expect((await createEngineClient(present, { table: `${item}_b` }).request()).status).toBe(400)
    const known = createEngineClient(present, { table: item })
    await known.catchUp()
    await restartEngine({ tables: [item, `public.${item}_b`] })
    const joined = createEngineClient(present, { table: `${item}_b` })
    await joined.catchUp()
    await database.query(`insert into ${item}_b values (1)`)
    await database.query(`insert into ${item} (id) values (1)`)
    await joined.follow(hasId(1))
    await known.follow(hasId(1))
  })
})

describe('trouble', () => {
  test('Postgres restarts while rows are written: nothing is lost, nothing comes twice', async () => {
    const client = createEngineClient(present, { table: item })
    await client.catchUp()
    const { handle } = client
    for (const id of upTo(50)) await database.query(`insert into ${item} (id) values ($1)`, [id])
    await database.end()
    await postgres.restart()
    database = await connect()
    for (const id of upTo(100, 51)) await database.query(`insert into ${item} (id) values ($1)`, [id])
    await client.follow(hasId(100))
    expect(ids(client)).toEqual(upTo(100))
    expect(client.handle).toBe(handle)
  })

  test('the stream is cut again and again', async () => {
    const plain = createEngineClient(present, { table: item })
    const decided = createEngineClient(present, { table: item, where: `n + 0 >= 0` })
    await plain.catchUp()
    await decided.catchUp()
    for (const id of upTo(120)) {
      await database.query(`insert into ${item} (id, n) values ($1, 0)`, [id])
      if (id % 20 === 0)
        await database.query(`select pg_terminate_backend(active_pid) from pg_replication_slots where active`)
      if (id % 30 === 0)
        await database.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'hq-shapes'`,
        )
    }
    await plain.follow(hasId(120))
    await decided.follow(hasId(120))
    expect(ids(plain)).toEqual(upTo(120))
    expect(ids(decided)).toEqual(upTo(120))
  })

  test('a slot that is gone begins a new epoch: old handles are refused, new ones are right', async () => {
    const client = createEngineClient(present, { table: item })
    await database.query(`insert into ${item} (id) values (1)`)
    await client.catchUp()
    await engine.stop()
    await database.query(`select pg_drop_replication_slot('hq_shapes')`)
    await database.query(`insert into ${item} (id) values (2)`)
    engine = await startEngine()
    const refused = await createEngineClient(present, { table: item }).request({
      handle: client.handle ?? '',
      offset: client.offset,
    })
    expect(refused.status).toBe(409)
    expect(refused.headers['electric-handle']).not.toBe(client.handle)
    const fresh = createEngineClient(present, { table: item })
    await fresh.catchUp()
    expect(ids(fresh)).toEqual([1, 2])
    expect(fresh.handle).toBe(refused.headers['electric-handle'])
  })

  test('a data directory older than the slot is not trusted', async () => {
    const client = createEngineClient(present, { table: item })
    await client.catchUp()
    await engine.stop()
    await database.query(`insert into ${item} (id) values (1)`)
    await database.query(`select pg_replication_slot_advance('hq_shapes', pg_current_wal_lsn())`)
    engine = await startEngine()
    expect(
      (
        await createEngineClient(present, { table: item }).request({
          handle: client.handle ?? '',
          offset: client.offset,
        })
      ).status,
    ).toBe(409)
  })

  test('a client ahead of the log is sent back, under a handle of its own, and the others stay', async () => {
    const client = createEngineClient(present, { table: item })
    await client.catchUp()
    const { handle = '', offset } = client
    const ahead = await client.request({ offset: '999999999999_0' })
    expect(ahead.status).toBe(409)
    expect(ahead.headers['electric-handle']).not.toBe(handle)
    const restarted = createEngineClient(present, { table: item })
    await restarted.catchUp()
    expect(restarted.handle).toBe(ahead.headers['electric-handle'])
    Object.assign(client, { handle, offset })
    await database.query(`insert into ${item} (id) values (1)`)
    await client.follow(hasId(1))
    expect(client.handle).toBe(handle)
    await restartEngine()
    expect((await createEngineClient(present, { table: item }).request({ handle, offset: '0_inf' })).status).toBe(200)
  })

  test('when the log stops holding whole rows the shape is retired and the identity set again', async () => {
    const client = createEngineClient(present, { table: item, where: 'n > 0' })
    await database.query(`insert into ${item} (id, n) values (1, 1)`)
    await client.catchUp()
    await database.query(`alter table ${item} replica identity default`)
    await database.query(`update ${item} set n = 0 where id = 1`)
    await eventually('a 409', async () => (await client.request()).status === 409)
    const fresh = createEngineClient(present, { table: item, where: 'n > 0' })
    await fresh.catchUp()
    expect(ids(fresh)).toEqual([])
    await database.query(`update ${item} set n = 2 where id = 1`)
    await fresh.follow(hasId(1))
  })

  test('a quiet table that is altered, or dropped and made again, is noticed without a write', async () => {
    const client = createEngineClient(present, { table: item })
    await client.catchUp()
    await database.query(`alter table ${item} alter n set not null`)
    await eventually('a 409 after ALTER', async () => (await client.request()).status === 409)
    const again = createEngineClient(present, { table: item })
    await again.catchUp()
    await database.query(`drop table ${item}; create table ${item} (id int primary key)`)
    await eventually('a 409 after DROP', async () => (await again.request()).status === 409)
  })

  test('a condition that fails on a row ends the shape, not the engine', async () => {
    const client = createEngineClient(present, { table: item, where: '10 / n > 1' })
    const other = createEngineClient(present, { table: item, where: '10 + n > 1' })
    await client.catchUp()
    await other.catchUp()
    await database.query(`insert into ${item} (id, n) values (1, 0)`)
    await eventually(
      'an error for that condition',
      async () => (await client.request()).status === 409 || (await client.request()).status === 400,
    )
    await other.follow(hasId(1))
    expect(engine.status().status).toBe('active')
  })

  test('wal_level that is not logical is said so', async () => {
    const plain = await startTestPostgres({ settings: { wal_level: 'replica' } })
    const folder = await mkdtemp(join(tmpdir(), 'hq-engine-'))
    const refused = createEngine({ connectionString: plain.url, dataDir: folder })
    try {
      await expect(refused.start()).rejects.toThrow(/wal_level=replica.*ALTER SYSTEM SET wal_level/)
    } finally {
      await refused.stop()
      await plain.stop()
      await rm(folder, { recursive: true, force: true })
    }
  })
})

describe('size', () => {
  test('a large transaction comes whole and in order, with one last, in bounded parts', async () => {
    const all = createEngineClient(present, { table: item })
    const some = createEngineClient(present, { table: item, where: 'n = 3' })
    await all.catchUp()
    await some.catchUp()
    await database.query(
      `insert into ${item} (id, n, title) select n, n % 7, repeat('x', 400) from generate_series(1, 60000) n`,
    )
    await some.follow(hasId(59_993))
    await all.follow(hasId(60_000))
    expect(ids(all)).toEqual(upTo(60_000))
    expect(some.rows().size).toBe(8572)
    for (const client of [all, some])
      expect(client.log.filter(({ headers }) => headers['last'] === true)).toHaveLength(1)
    expect(all.log.filter(isChange).map(({ value }) => Number(value?.['id']))).toEqual(upTo(60_000))
  })

  test('shapes begun in the middle of many transactions have each row once', async () => {
    const writers = await Promise.all(upTo(4).map(connect))
    try {
      let writing = true
      let next = 1
      const writes = writers.map(async (writer) => {
        while (writing) {
          const id = next++
          await writer.query('begin')
          await writer.query(`insert into ${item} (id, n) values ($1, 0)`, [id])
          if (id % 3 === 0) await writer.query(`update ${item} set n = n + 1 where id = $1`, [id])
          if (id % 5 === 0) await writer.query(`delete from ${item} where id = $1`, [id])
          await writer.query('commit')
        }
      })
      const clients = upTo(30).map((n) => createEngineClient(present, { table: item, where: `id > ${-n}` }))
      for (const client of clients) {
        await client.catchUp()
        await sleep(5)
      }
      writing = false
      await Promise.all(writes)
      await database.query(`insert into ${item} (id) values (1000000)`)
      const { rows } = await database.query<{ id: number; n: number | null }>(`select id, n from ${item} order by id`)
      for (const client of clients) {
        await client.follow(hasId(1_000_000))
        const seen = [...client.rows().values()].map((row) => ({
          id: Number(row['id']),
          n: row['n'] === null ? null : Number(row['n']),
        }))
        expect(seen.sort((a, b) => a.id - b.id)).toEqual(rows)
      }
    } finally {
      await Promise.all(writers.map((writer) => writer.end()))
    }
  })
})
