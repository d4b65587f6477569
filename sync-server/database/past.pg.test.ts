import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startTestPostgres, type TestPostgres } from '../shapes/testing/postgres.ts'
import { type Past, watchPast } from './past.ts'
import { createPool, type Pool } from './pool.ts'

let postgres: TestPostgres
let pool: Pool
let folder: string
let file: string
let reasons: string[]
const watches: Past[] = []

beforeEach(async () => {
  postgres = await startTestPostgres()
  pool = createPool(postgres.url, { onError: () => undefined })
  await pool.query('create table server_state (key text primary key, value jsonb not null)')
  folder = await mkdtemp(join(tmpdir(), 'hq-past-'))
  file = join(folder, 'past.json')
  reasons = []
})
afterEach(async () => {
  for (const watch of watches.splice(0)) await watch.stop()
  await pool.end()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
})

/** A server that starts; its clock strikes only when it is told to. */
const begin = async (): Promise<Past> => {
  const watch = await watchPast({
    pool,
    file,
    onRestored: async (reason) => void reasons.push(reason),
    onError: (error) => expect.unreachable(String(error)),
    everyMs: 3_600_000,
  })
  watches.push(watch)
  return watch
}
const write = (): Promise<unknown> =>
  pool.query('create table if not exists filler as select generate_series(1, 1000) n')

test('2. time passing, restarts of both, and a kill of Postgres are no restore', async () => {
  await (await begin()).look()
  await write()
  await postgres.restart()
  const again = await begin()
  await again.look()
  await postgres.kill()
  await postgres.restart()
  await again.look()
  await begin()
  expect(reasons).toEqual([])
})

test('2. an older copy is noticed, by a running server and by one that starts, once', async () => {
  const first = await begin()
  await postgres.halt()
  const copy = await postgres.copy()
  await postgres.restart()
  await first.look()
  await first.look()
  await postgres.halt()
  await postgres.restore(copy)
  await postgres.restart()
  await first.look()
  expect(reasons).toEqual([expect.stringMatching(/older/)])
  await first.look()
  await postgres.halt()
  await postgres.restore(copy)
  await postgres.restart()
  await begin()
  expect(reasons).toHaveLength(2)
  await begin()
  expect(reasons).toHaveLength(2)
})

test('2. an older copy that another server has taken as far is noticed by its word', async () => {
  const first = await begin()
  await postgres.halt()
  const copy = await postgres.copy()
  await postgres.restart()
  await first.look()
  const mine = await readFile(file, 'utf8')
  await postgres.halt()
  await postgres.restore(copy)
  await postgres.restart()
  // The other one has half a file: it can tell nothing, and goes on from the database.
  await writeFile(file, mine.slice(0, 20))
  await begin()
  expect(reasons).toEqual([])
  await write()
  await writeFile(file, mine)
  await begin()
  expect(reasons).toEqual([expect.stringMatching(/another past/)])
})

test('2. another database is noticed', async () => {
  await begin()
  const other = await startTestPostgres()
  await pool.end()
  try {
    pool = createPool(other.url, { onError: () => undefined })
    await pool.query('create table server_state (key text primary key, value jsonb not null)')
    await begin()
    expect(reasons).toEqual(['this is another database'])
  } finally {
    await other.stop()
  }
})

test('1. a server that dies between the two halves of a mark notices nothing', async () => {
  await begin()
  const before = await readFile(file, 'utf8')
  await (await begin()).look()
  await writeFile(file, before)
  await begin()
  expect(reasons).toEqual([])
})
