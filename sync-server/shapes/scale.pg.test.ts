/** The engine with many tables and many shapes: everything that is asked for comes, and goes on after a restart. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createEngine, type Engine } from './engine.ts'
import { createEngineClient, type EngineClient } from './testing/client.ts'
import { startTestPostgres, type TestPostgres } from './testing/postgres.ts'

const TABLES = 60
const TENANTS = ['a', 'b', 'c']
const ROWS = 100

let postgres: TestPostgres
let database: pg.Client
let dataDir: string
let engine: Engine
const present: Pick<Engine, 'handle'> = { handle: (request) => engine.handle(request) }
const names = Array.from({ length: TABLES }, (_, n) => `many_${n}`)

const startEngine = async (): Promise<Engine> => {
  const started = createEngine({ connectionString: postgres.url, dataDir, longPollMs: 3000 })
  await started.start()
  return started
}
const settle = async (): Promise<void> => {
  const { rows } = await database.query<{ lsn: string }>(`select (pg_current_wal_flush_lsn() - '0/0')::text as lsn`)
  expect(await engine.waitFor(Number(rows[0]?.lsn))).toBe(true)
}
const titlesOf = (client: EngineClient): string[] => [...client.rows().values()].map((row) => `${row['title']}`).sort()

/** Every client holds exactly its tenant's rows of its table. */
async function allAreRight(clients: ReadonlyMap<string, EngineClient>): Promise<void> {
  await settle()
  for (const [key, client] of clients) {
    await client.catchUp()
    const [table, tenant] = key.split(' ')
    const { rows } = await database.query<{ title: string }>(`select title from ${table} where tenant = $1`, [tenant])
    expect([key, titlesOf(client)]).toEqual([key, rows.map(({ title }) => title).sort()])
  }
}

beforeAll(async () => {
  postgres = await startTestPostgres()
  database = new pg.Client({ connectionString: postgres.url })
  await database.connect()
  dataDir = await mkdtemp(join(tmpdir(), 'hq-engine-'))
  for (const name of names) {
    await database.query(`create table ${name} (id int primary key, tenant text not null, title text not null)`)
    await database.query(
      `insert into ${name} select n, chr(97 + n % 3), '${name} ' || n from generate_series(1, $1::int) n`,
      [ROWS],
    )
  }
  engine = await startEngine()
})
afterAll(async () => {
  await engine?.stop()
  await database?.end()
  await postgres?.stop()
  if (dataDir) await rm(dataDir, { recursive: true, force: true })
})

test('three replicas of sixty shapes each: snapshots that are asked for at once, changes in all tables, a restart, and changes again', async () => {
  const clients = new Map<string, EngineClient>()
  for (const tenant of TENANTS) {
    for (const table of names)
      clients.set(`${table} ${tenant}`, createEngineClient(present, { table, where: 'tenant = $1', params: [tenant] }))
  }
  await Promise.all([...clients.values()].map((client) => client.catchUp()))
  await allAreRight(clients)
  expect(engine.status().shapes).toBe(TABLES * TENANTS.length)
  const handles = [...clients.values()].map(({ handle }) => handle)

  const changeAll = async (word: string): Promise<void> => {
    await database.query('begin')
    for (const name of names) {
      await database.query(`update ${name} set title = title || $1 where id <= 3`, [word])
      await database.query(
        `update ${name} set tenant = 'a' where id = (select max(id) from ${name} where tenant = 'b')`,
      )
      await database.query(`delete from ${name} where id = (select max(id) from ${name} where tenant = 'c')`)
    }
    await database.query('commit')
  }
  await changeAll(' changed')
  await allAreRight(clients)

  await engine.stop()
  await changeAll(' meanwhile')
  engine = await startEngine()
  await changeAll(' afterwards')
  await allAreRight(clients)
  expect([...clients.values()].map(({ handle }) => handle)).toEqual(handles)
})

test('a thousand snapshots that are asked for at once all come, however few connections there are', async () => {
  const clients = Array.from({ length: 1_000 }, (_, n) =>
    createEngineClient(present, { table: 'many_0', where: 'id = $1', params: [String(n)] }),
  )
  await Promise.all(clients.map((client) => client.catchUp()))
  const { rows } = await database.query<{ id: number }>('select id from many_0 where id < 1000')
  expect(clients.filter((client) => client.rows().size === 1)).toHaveLength(rows.length)
})
