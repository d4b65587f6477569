/**
 * Postgres that dies, and Postgres that comes back as something older: what an engine must survive without a word to its clients, and what it
 * must notice although no LSN says so.
 */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createEngine, type Engine } from './engine.ts'
import { createEngineClient, type EngineClient } from './testing/client.ts'
import { startTestPostgres, type TestPostgres } from './testing/postgres.ts'

let postgres: TestPostgres
let dataDir: string
let engine: Engine
let restored: string[]
const present: Pick<Engine, 'handle'> = { handle: (request) => engine.handle(request) }

const startEngine = async (): Promise<void> => {
  const tables = ['item']
  const onRestored = async (reason: string): Promise<void> => void restored.push(reason)
  engine = createEngine({ connectionString: postgres.url, dataDir, tables, longPollMs: 1000, onRestored })
  await engine.start()
}
const sql = async <R extends object>(text: string, url = postgres.url): Promise<R[]> => {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<R>(text)).rows
  } finally {
    await client.end()
  }
}
const follower = (): EngineClient => createEngineClient(present, { table: 'item' })
const titles = (client: EngineClient): string[] => [...client.rows().values()].map((row) => String(row['title'])).sort()
const truth = async (): Promise<string[]> =>
  (await sql<{ title: string }>('select title from item')).map(({ title }) => title).sort()
/** LSN of the end of the write-ahead log. */
const walEnd = async (url?: string): Promise<number> =>
  Number((await sql<{ lsn: string }>(`select pg_current_wal_lsn() - '0/0' as lsn`, url))[0]?.lsn)
const eventually = async (what: string, probe: () => Promise<boolean>): Promise<void> => {
  for (const deadline = Date.now() + 30_000; !(await probe()); await sleep(30)) {
    if (Date.now() > deadline) throw new Error(`not in time: ${what}`)
  }
}
const reaches = (client: EngineClient, title: string): Promise<unknown> =>
  client.follow((changes) => changes.some(({ value }) => value?.['title'] === title))

beforeEach(async () => {
  postgres = await startTestPostgres()
  dataDir = await mkdtemp(join(tmpdir(), 'hq-engine-'))
  restored = []
  await sql(
    'create table item (id int generated always as identity primary key, title text unique); create table other (n int)',
  )
  await startEngine()
})
afterEach(async () => {
  await engine?.stop()
  await postgres?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

test('Postgres is killed again and again while rows are written and read: no handle changes, no row is missing or doubled', async () => {
  const clients = [follower(), createEngineClient(present, { table: 'item', where: `title <> 'x' || id` })]
  for (const client of clients) await client.catchUp()
  const handles = clients.map(({ handle }) => handle)
  let writing = true
  const write = async (): Promise<void> => {
    for (let n = 0; writing; n++) {
      // What was cut off may have been committed or not; the next attempt says the same.
      await sql(`insert into item (title) values ('row ${n}') on conflict do nothing`).catch(() => sleep(20))
    }
  }
  const writer = write()
  for (let kill = 0; kill < 3; kill++) {
    await sleep(300)
    await postgres.kill()
    await postgres.restart()
  }
  await sleep(300)
  writing = false
  await writer
  await sql(`insert into item (title) values ('the end')`)
  for (const client of clients) {
    await reaches(client, 'the end')
    expect(titles(client)).toEqual(await truth())
  }
  expect(clients.map(({ handle }) => handle)).toEqual(handles)
  expect(restored).toEqual([])
})

test('a slot that is dropped under a running engine: old handles are refused, nothing is missing, and it is no restore', async () => {
  const client = follower()
  await sql(`insert into item (title) values ('before')`)
  await client.catchUp()
  await eventually('the slot is dropped', async () => {
    await sql(`select pg_terminate_backend(active_pid) from pg_replication_slots where active`)
    return sql(`select pg_drop_replication_slot('hq_shapes')`).then(
      () => true,
      () => false,
    )
  })
  await sql(`insert into item (title) values ('between')`)
  await eventually('the old handle is refused', async () => (await client.request()).status === 409)
  const fresh = follower()
  await fresh.catchUp()
  expect(fresh.handle).not.toBe(client.handle)
  await sql(`insert into item (title) values ('after')`)
  await reaches(fresh, 'after')
  expect(titles(fresh)).toEqual(['after', 'before', 'between'])
  expect(restored).toEqual([])
})

/** Halts Postgres for a copy of its data. */
const backup = async (): Promise<string> => {
  await engine.stop()
  await postgres.halt()
  const copy = await postgres.copy()
  await postgres.restart()
  await startEngine()
  return copy
}
/** Another history, as long as the one that was lost: LSNs tell nothing. */
const goOnUntil = async (lsn: number, url: string): Promise<void> => {
  for (let n = 0; (await walEnd(url)) <= lsn + 100_000; n++)
    await sql(`insert into item (title) select 'other ${n}/' || m from generate_series(1, 200) m`, url)
}

for (const running of [false, true]) {
  test(`an older copy of the database, gone on as far as the log, under ${running ? 'a running' : 'a stopped'} engine: everybody fetches anew`, async () => {
    await sql(`insert into item (title) values ('kept')`)
    const copy = await backup()
    const client = follower()
    await sql(`insert into item (title) values ('lost 1'), ('lost 2')`)
    await client.catchUp()
    await reaches(client, 'lost 2')
    const lsn = await walEnd()
    if (!running) await engine.stop()
    await postgres.halt()
    await postgres.restore(copy)
    await postgres.aside((url) => goOnUntil(lsn, url))
    await postgres.restart()
    if (!running) {
      await startEngine()
      expect(restored).toEqual(['the database has another past than the log: it was restored'])
    }
    await eventually('the old handle is refused', async () => (await client.request()).status === 409)
    expect(restored).toEqual(['the database has another past than the log: it was restored'])
    const fresh = follower()
    await fresh.catchUp()
    expect(titles(fresh)).toEqual(await truth())
    expect(titles(fresh)).not.toContain('lost 1')
    // Noticed once.
    await engine.stop()
    await startEngine()
    await sql(`insert into item (title) values ('next')`)
    await reaches(fresh, 'next')
    expect(restored).toHaveLength(1)
  })
}

test('a copy that lacks nothing but what no shape is of: what was written instead reaches everybody', async () => {
  const client = follower()
  await sql(`insert into item (title) values ('kept')`)
  await client.catchUp()
  const copy = await backup()
  // The position moves on without a transaction for a shape.
  const before = engine.position()
  await sql('insert into other select generate_series(1, 5000)')
  const lsn = await walEnd()
  expect(await engine.waitFor(lsn)).toBe(true)
  expect(engine.position()).toBeGreaterThan(before)
  await engine.stop()
  await postgres.halt()
  await postgres.restore(copy)
  await postgres.aside((url) => goOnUntil(lsn, url))
  await postgres.restart()
  await startEngine()
  expect((await client.request()).status).toBe(409)
  const fresh = follower()
  await fresh.catchUp()
  expect(titles(fresh)).toEqual(await truth())
  expect(restored).toHaveLength(1)
})

test('an older copy that is still behind the log is told by its LSN', async () => {
  const copy = await backup()
  const client = follower()
  await sql(`insert into item (title) select 'lost ' || n from generate_series(1, 5000) n`)
  await client.catchUp()
  await engine.stop()
  await postgres.halt()
  await postgres.restore(copy)
  await postgres.restart()
  await startEngine()
  expect(restored).toEqual(['the database is older than the log: it was restored'])
  expect((await client.request()).status).toBe(409)
})

test('a folder of the log that was copied back, together with its database, is noticed too', async () => {
  const client = follower()
  await sql(`insert into item (title) values ('kept')`)
  await client.catchUp()
  await engine.stop()
  await postgres.halt()
  const copy = await postgres.copy()
  await cp(dataDir, `${dataDir}-copy`, { recursive: true })
  await postgres.restart()
  await startEngine()
  await sql(`insert into item (title) values ('lost')`)
  await reaches(client, 'lost')
  await engine.stop()
  await postgres.halt()
  await postgres.restore(copy)
  await rm(dataDir, { recursive: true, force: true })
  await cp(`${dataDir}-copy`, dataDir, { recursive: true })
  await rm(`${dataDir}-copy`, { recursive: true, force: true })
  await postgres.restart()
  await startEngine()
  expect(restored).toEqual(['the folder of the log is a copy: it was moved or restored'])
  expect((await client.request()).status).toBe(409)
})

test('Postgres stopped in order, engine stopped, both started: nobody is sent back', async () => {
  const client = follower()
  await sql(`insert into item (title) values ('one')`)
  await client.catchUp()
  const { handle } = client
  await engine.stop()
  await sql('insert into other select generate_series(1, 100)')
  await postgres.restart()
  await sql(`insert into item (title) values ('two')`)
  await startEngine()
  await postgres.restart()
  await sql(`insert into item (title) values ('three')`)
  await reaches(client, 'three')
  expect(titles(client)).toEqual(['one', 'three', 'two'])
  expect(client.handle).toBe(handle)
  expect(restored).toEqual([])
})
