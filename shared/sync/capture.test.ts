/** The triggers of migrations/0002_replica.sql: what a local transaction leaves in the outbox. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { Replica } from './contract.ts'
import { textToHlc } from './hlc.ts'
import { createFakeServer } from './testing/fake-server.ts'
import { addTask, killedCopy, openTestReplica, PERSON, TENANT, type TestReplica } from './testing/harness.ts'

// Databases are opened and thrown away in each test; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

let now = 1_800_000_000_000
const server = createFakeServer({ tenantId: TENANT })
let replica: TestReplica

beforeAll(async () => {
  server.faults.online = false
  replica = await openTestReplica(server, { now: () => now })
})
afterAll(async () => {
  await replica.close()
  server.close()
})
beforeEach(() => {
  now += 1_000
})

const last = async (of: Replica = replica) => (await of.outbox()).at(-1)
const seqs = async () => (await replica.outbox()).map(({ seq }) => seq)

test('an insert is one patch with everything that differs from null, and nothing that only the server writes (C3)', async () => {
  const id = await addTask(replica, 'hello', { due_date: '2027-01-01T00:00:00Z' })
  const entry = await last()
  expect(entry).toMatchObject({ state: 'pending', actor: { type: 'human', id: PERSON }, runId: null })
  expect(entry?.patches).toHaveLength(1)
  expect(entry?.patches[0]).toMatchObject({ table: 'tasks', id, op: 'insert', base: {} })
  const set = entry?.patches[0]?.set ?? {}
  expect(set).toMatchObject({
    id,
    tenant_id: TENANT,
    title: 'hello',
    status: 'todo',
    tags: [],
    due_date: '2027-01-01T00:00:00+00:00',
    sort_order: '0',
  })
  expect(Object.keys(set)).not.toContain('updated_at')
  expect(Object.keys(set)).not.toContain('description')
})

test('an update names the changed columns only, null included, with what they were', async () => {
  const id = await addTask(replica, 'a', { description: 'text', due_date: '2027-01-01T00:00:00Z' })
  await replica.write((tx) =>
    tx.query(`update tasks set title = 'b', description = null, priority = 'medium' where id = $1`, [id]),
  )
  expect((await last())?.patches).toEqual([
    {
      table: 'tasks',
      id,
      op: 'update',
      set: { title: 'b', description: null },
      base: { title: 'a', description: 'text' },
    },
  ])
})

test('updated_at moves locally and is not sent (C3)', async () => {
  const id = await addTask(replica, 'a')
  const before = await replica.query<{ updated_at: string }>('select updated_at from tasks where id = $1', [id])
  await replica.write((tx) => tx.query(`update tasks set title = 'b' where id = $1`, [id]))
  const after = await replica.query<{ updated_at: string }>('select updated_at from tasks where id = $1', [id])
  expect(String(after[0]?.updated_at) > String(before[0]?.updated_at)).toBe(true)
  expect(Object.keys((await last())?.patches[0]?.set ?? {})).toEqual(['title'])
})

test('C2: insert and update in one transaction are one insert', async () => {
  const id = randomUUID()
  await replica.write(async (tx) => {
    await tx.query(`insert into tasks (id, tenant_id, title, description) values ($1, $2, 'a', 'gone')`, [id, TENANT])
    await tx.query(`update tasks set title = 'b', description = null where id = $1`, [id])
  })
  const patches = (await last())?.patches
  expect(patches).toHaveLength(1)
  expect(patches?.[0]).toMatchObject({ op: 'insert', set: { title: 'b' }, base: {} })
  expect(Object.keys(patches?.[0]?.set ?? {})).not.toContain('description')
})

test('C2: two updates are one with the first base; a column that comes back is not in it', async () => {
  const id = await addTask(replica, 'a', { priority: 'low' })
  await replica.write(async (tx) => {
    await tx.query(`update tasks set title = 'b', priority = 'high' where id = $1`, [id])
    await tx.query(`update tasks set title = 'c', priority = 'low' where id = $1`, [id])
  })
  expect((await last())?.patches).toEqual([
    { table: 'tasks', id, op: 'update', set: { title: 'c' }, base: { title: 'a' } },
  ])
})

test('C2: what nets to nothing leaves no mutation and takes no number', async () => {
  const id = await addTask(replica, 'a')
  const before = await seqs()
  const written = await replica.write(async (tx) => {
    await tx.query(`update tasks set title = 'b' where id = $1`, [id])
    await tx.query(`update tasks set title = 'a' where id = $1`, [id])
    const other = randomUUID()
    await tx.query(`insert into tasks (id, tenant_id, title) values ($1, $2, 'never')`, [other, TENANT])
    await tx.query('delete from tasks where id = $1', [other])
  })
  expect(written.seq).toBeUndefined()
  expect(await seqs()).toEqual(before)
  await addTask(replica, 'next')
  expect((await last())?.seq).toBe((before.at(-1) ?? 0) + 1)
  expect(await replica.query(`select from tasks where title = 'never'`)).toEqual([])
})

test('deleting marks the row', async () => {
  const id = await addTask(replica, 'a')
  await replica.write((tx) => tx.query('delete from tasks where id = $1', [id]))
  const patch = (await last())?.patches[0]
  expect(patch).toMatchObject({ op: 'update', base: { deleted_at: null } })
  expect(patch?.set['deleted_at']).toEqual(expect.any(String))
  expect(await replica.query('select from tasks where id = $1 and deleted_at is not null', [id])).toHaveLength(1)
})

test('C1: numbers have no gap after a rollback, and nothing of it is recorded', async () => {
  const before = await seqs()
  const failing = replica.write(async (tx) => {
    await tx.query(`insert into tasks (id, tenant_id, title) values ($1, $2, 'lost')`, [randomUUID(), TENANT])
    throw new Error('changed my mind')
  })
  await expect(failing).rejects.toThrow('changed my mind')
  await expect(replica.write((tx) => tx.query('select no_such_column'))).rejects.toThrow('no_such_column')
  expect(await seqs()).toEqual(before)
  await addTask(replica, 'kept')
  expect(await seqs()).toEqual([...before, (before.at(-1) ?? 0) + 1])
})

test('a swallowed SQL error does not commit half a transaction in silence', async () => {
  const before = await seqs()
  const swallowed = replica.write(async (tx) => {
    await tx.query(`insert into tasks (id, tenant_id, title) values ($1, $2, 'half')`, [randomUUID(), TENANT])
    await tx.query('select no_such_column').catch(() => undefined)
  })
  await expect(swallowed).rejects.toThrow('aborted')
  expect(await seqs()).toEqual(before)
})

test('actor and run come with the mutation', async () => {
  const actor = { type: 'agent', id: randomUUID() } as const
  const runId = randomUUID()
  await replica.write(
    (tx) => tx.query(`insert into tasks (id, tenant_id, title) values ($1, $2, 'x')`, [randomUUID(), TENANT]),
    { actor, runId },
  )
  expect(await last()).toMatchObject({ actor, runId })
})

test('plain SQL outside of write is recorded and announced too', async () => {
  const seen: string[][] = []
  const stop = replica.onChange((changes) => seen.push([...changes.keys()]))
  const id = randomUUID()
  await replica.query(`insert into tasks (id, tenant_id, title) values ($1, $2, 'plain')`, [id, TENANT])
  expect((await last())?.patches[0]).toMatchObject({ id, op: 'insert' })
  expect(seen).toEqual([['tasks']])
  stop()
})

test('an insert that meets its row is captured as the update that it is', async () => {
  const id = await addTask(replica, 'a')
  const upsert = `insert into tasks (id, tenant_id, title) values ($1, $2, 'b') on conflict (id) do update set title = excluded.title`
  await replica.write((tx) => tx.query(upsert, [id, TENANT]))
  expect((await last())?.patches).toEqual([
    { table: 'tasks', id, op: 'update', set: { title: 'b' }, base: { title: 'a' } },
  ])
})

test('C4: a change too large to be sent is refused when it is written, and the outbox is not blocked', async () => {
  const before = await seqs()
  await expect(addTask(replica, 'x', { description: 'y'.repeat(2_200_000) })).rejects.toThrow(
    /too large to be sent: 1 rows/,
  )
  const many = replica.write((tx) =>
    tx.query(
      `insert into tasks (id, tenant_id, title) select gen_random_uuid(), $1, 'many' from generate_series(1, 2001)`,
      [TENANT],
    ),
  )
  await expect(many).rejects.toThrow(/2001 rows/)
  await expect(
    replica.query(
      `insert into tasks (id, tenant_id, title) select gen_random_uuid(), $1, 'many' from generate_series(1, 2001)`,
      [TENANT],
    ),
  ).rejects.toThrow(/2001 rows/)
  expect(await seqs()).toEqual(before)
  expect(await replica.query(`select from tasks where title = 'many'`)).toEqual([])
})

test('ids do not change, and synced tables are not truncated', async () => {
  const id = await addTask(replica, 'a')
  await expect(
    replica.write((tx) => tx.query('update tasks set id = $2 where id = $1', [id, randomUUID()])),
  ).rejects.toThrow('cannot be changed')
  await expect(replica.query('truncate tasks')).rejects.toThrow('cannot be truncated')
})

test('C5: the clock goes on over a restart, also when the machine’s clock went back', async () => {
  await addTask(replica, 'before')
  const before = await hlcs(replica)
  const again = await openTestReplica(server, { db: await killedCopy(replica.db), now: () => now - 3_600_000 })
  try {
    await addTask(again, 'after')
    const after = await hlcs(again)
    expect(after).toHaveLength(before.length + 1)
    expect([...after].sort()).toEqual(after)
    expect(textToHlc(after.at(-1) ?? '')?.ms).toBe(textToHlc(before.at(-1) ?? '')?.ms)
  } finally {
    await again.close()
  }
})

const hlcs = async (of: Replica): Promise<string[]> =>
  (await of.query<{ hlc: string }>('select hlc from sync.outbox order by seq')).map(({ hlc }) => hlc)
