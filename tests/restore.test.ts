/**
 * A server whose Postgres dies, or comes back as it was before: what real replicas have of it. Work that waited is pushed, once; everybody ends with
 * what the authority has.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SessionResponse } from '@hq/shared/sync/protocol.ts'
import type { Person } from '@hq/sync-server/testing/workspace.ts'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Live, openLive, until } from './support/replica.ts'
import { type Row, type System, startSystem } from './support/system.ts'

let system: System
let member: Person
let lives: Live[]

beforeEach(async () => {
  system = await startSystem()
  member = await system.join('member', 'Mia Member')
  lives = []
})
afterEach(async () => {
  for (const live of lives) await live.close()
  await system?.stop()
})

const open = async (person: Person): Promise<Live> => {
  const live = await openLive(system.server.url, person)
  lives.push(live)
  return live
}
const session = async (): Promise<SessionResponse> =>
  (await (await system.request(system.owner, '/v1/session')).json()) as SessionResponse
const TASKS = 'select id, title, description, priority, deleted_at is null as kept from tasks order by id'
/** Everybody has the same tasks as the authority, and nothing waits but `rejected` refusals. */
const converged = async (rejected: ReadonlyMap<Live, number> = new Map()): Promise<void> => {
  for (const live of lives) {
    await until(live, 'the replica has what the authority has', async () => {
      const { pending, rejected: refused } = live.replica.status()
      if (pending > 0 || refused !== (rejected.get(live) ?? 0)) return false
      const held = new Set(
        (await live.rows<{ row_id: string }>('select row_id from sync.row_states')).map(({ row_id }) => row_id),
      )
      const free = (rows: Row[]): string => JSON.stringify(rows.filter(({ id }) => !held.has(String(id))))
      return free(await live.rows(TASKS)) === free(await system.rows(TASKS))
    })
  }
}
const once = async (ids: readonly string[]): Promise<void> => {
  const made = await system.rows<{ entity_id: string; n: number }>(
    `select entity_id, count(*)::int as n from audit_log where entity_id = any($1) and action = 'created' group by 1`,
    [ids],
  )
  expect(made.map(({ n }) => n)).toEqual(Array(ids.length).fill(1))
}

test('Postgres is killed while replicas write: what was written is there, once, and nobody fetches anew', async () => {
  const [ann, mia] = [await open(system.owner), await open(member)]
  const ids: string[] = []
  let writing = true
  const write = async (live: Live, name: string): Promise<void> => {
    for (let n = 0; writing; n++) {
      ids.push(await live.addTask(`${name} ${n}`))
      await sleep(10)
    }
  }
  const writers = [write(ann, 'ann'), write(mia, 'mia')]
  for (let kill = 0; kill < 3; kill++) {
    const before = ids.length
    await until(ann, 'more is written', () => ids.length > before + 20)
    await system.server.postgres.kill()
    await until(ann, 'more is written', () => ids.length > before + 40)
    await system.server.postgres.restart()
  }
  writing = false
  await Promise.all(writers)
  await converged()
  await once(ids)
  for (const live of lives) {
    expect(live.connections).not.toContain('unauthorized')
    expect(live.answers.get(409)).toBeUndefined()
    // A database that is gone for a moment is "try again", nothing else.
    expect(live.refused.filter((line) => !line.startsWith('503'))).toEqual([])
  }
})

test('an older copy of the database: noticed, fetched anew, what waited is pushed once, and everybody converges', async () => {
  const { server } = system
  const [ann, mia] = [await open(system.owner), await open(member)]
  const kept = [await ann.addTask('kept of ann'), await mia.addTask('kept of mia')] as const
  await converged()
  const { epoch } = (await session()).server

  await server.kill()
  await server.postgres.halt()
  const copy = await server.postgres.copy()
  await server.postgres.restart()
  await server.start()
  await converged()
  expect((await session()).server.epoch).toBe(epoch)

  // What the copy does not have, some of it seen by everybody.
  const lost = [await ann.addTask('lost of ann'), await mia.addTask('lost of mia')] as const
  const set = (live: Live, id: string, title: string) =>
    live.replica.write((tx) => tx.query('update tasks set title = $2 where id = $1', [id, title]))
  await set(mia, kept[0], 'renamed, then lost')
  await converged()
  const [{ lsn } = { lsn: '' }] = await system.rows<{ lsn: string }>('select pg_current_wal_lsn()::text as lsn')

  await server.kill()
  const waiting: string[] = []
  for (let n = 0; n < 12; n++) waiting.push(await ann.addTask(`waiting of ann ${n}`))
  for (let n = 0; n < 300; n++) waiting.push(await mia.addTask(`waiting of mia ${n}`))
  await set(ann, kept[1], 'renamed offline')
  await set(ann, lost[1], 'nobody has it any more')
  await server.postgres.halt()
  await server.postgres.restore(copy)
  // The restored database goes on before the server sees it, until it is as far as the lost one was.
  await server.postgres.aside(async (url) => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    for (;;) {
      const { rows } = await client.query<{ further: boolean }>(`select pg_current_wal_lsn() > $1::pg_lsn as further`, [
        lsn,
      ])
      if (rows[0]?.further) break
      await client.query(
        `insert into tasks (id, tenant_id, title) select uuidv7(), $1, 'by SQL ' || n from generate_series(1, 50) n`,
        [system.tenantId],
      )
    }
    await client.end()
  })
  await server.postgres.restart()
  await server.start()

  await converged(new Map([[ann, 1]]))
  expect((await session()).server.epoch).not.toBe(epoch)
  await once(waiting)
  expect(await system.rows('select 1 from tasks where id = any($1)', [lost])).toEqual([])
  expect(await system.rows('select title from tasks where id = any($1) order by title', [kept])).toEqual([
    { title: 'kept of ann' },
    { title: 'renamed offline' },
  ])
  // What was changed of a task that is gone waits for a person, with the reason.
  expect((await ann.replica.outbox()).map(({ rejection }) => rejection?.code)).toEqual(['missing_row'])
  // From here on all is as ever.
  const next = [await ann.addTask('next of ann'), await mia.addTask('next of mia')]
  await converged(new Map([[ann, 1]]))
  await once(next)
  for (const live of lives) expect(live.refused.filter((line) => !/^50[23]/.test(line))).toEqual([])
})
