/** The replica as a whole: overlay, settling, refusals, change notices, crash points of the write path. */
import { randomUUID } from 'node:crypto'
import { afterEach, expect, test, vi } from 'vitest'
import type { Changes } from './contract.ts'
import { type FoldablePatch, fold, type Values as RowImage } from './core/overlay.ts'
import { exportOutbox, importOutbox } from './outbox.ts'
import { createFakeServer, type FakeServer } from './testing/fake-server.ts'
import {
  addTask,
  killedCopy,
  mortal,
  openDatabase,
  openTestReplica,
  settled,
  TENANT,
  type TestReplica,
  titles,
  until,
} from './testing/harness.ts'

// Databases are opened and thrown away in each test; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const TABLES = ['tasks', 'contacts'] as const
const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})
const newServer = (): FakeServer => {
  const server = createFakeServer({ tenantId: TENANT })
  open.push(server)
  return server
}
const newReplica = async (
  server: FakeServer,
  options: Parameters<typeof openTestReplica>[1] = {},
): Promise<TestReplica> => {
  const replica = await openTestReplica(server, { tables: [...TABLES], ...options })
  open.unshift(replica)
  await until(() => replica.status().initial.done || !server.faults.online, 'the first load')
  return replica
}
const holdPushes = (server: FakeServer): void => {
  server.faults.fault = ({ path }) => (path === '/v1/mutations' ? { kind: 'drop' } : undefined)
}
const release = (server: FakeServer): void => {
  server.faults.fault = () => undefined
  server.reconnect()
}
const setTitle = (replica: TestReplica, id: string, title: string) =>
  replica.write((tx) => tx.query('update tasks set title = $2 where id = $1', [id, title]))
const taskOf = async (replica: TestReplica, id: string) =>
  (await replica.query<Record<string, unknown>>('select * from tasks where id = $1', [id]))[0]
const leftovers = (replica: TestReplica) =>
  replica.query(
    'select (select count(*)::int from sync.outbox) as outbox, (select count(*)::int from sync.patches) as patches, (select count(*)::int from sync.pending_base) as bases',
  )

test('P1: everything works without a server, and arrives when there is one', async () => {
  const server = newServer()
  server.faults.online = false
  const replica = await newReplica(server)
  await addTask(replica, 'offline')
  expect(await titles(replica)).toEqual(['offline'])
  expect(replica.status()).toMatchObject({ pending: 1, connection: 'offline' })
  expect(replica.status().oldestPendingAt).toEqual(expect.any(String))
  server.faults.online = true
  await settled(replica)
  expect(server.rows('tasks').map((row) => row['title'])).toEqual(['offline'])
  expect(replica.status().oldestPendingAt).toBeNull()
  expect(await leftovers(replica)).toEqual([{ outbox: 0, patches: 0, bases: 0 }])
})

test('overlay: what the server changes meanwhile goes under the pending change, other columns show at once', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  const id = server.put('tasks', { id: randomUUID(), title: 'a', description: 'old' })
  await until(() => taskOf(replica, id))
  holdPushes(server)
  await setTitle(replica, id, 'mine')
  server.put('tasks', { id, title: 'theirs', description: 'new' })
  await until(async () => (await taskOf(replica, id))?.['description'] === 'new')
  expect(await taskOf(replica, id)).toMatchObject({ title: 'mine', description: 'new' })
  expect((await replica.query<{ state: string }>('select state from sync.row_states'))[0]?.state).toBe('pending')
  release(server)
  await settled(replica)
  expect(await taskOf(replica, id)).toMatchObject({ title: server.row('tasks', id)?.['title'] })
})

test('overlay: a row with a pending update that the server deletes for good disappears; one with a pending insert stays', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  const id = server.put('tasks', { id: randomUUID(), title: 'a' })
  await until(() => taskOf(replica, id))
  holdPushes(server)
  await setTitle(replica, id, 'mine')
  const inserted = await addTask(replica, 'new here')
  server.remove('tasks', id)
  await until(async () => !(await taskOf(replica, id)))
  expect(await titles(replica)).toEqual(['new here'])
  release(server)
  await settled(replica)
  expect(await taskOf(replica, inserted)).toMatchObject({ title: 'new here' })
  expect(await leftovers(replica)).toEqual([{ outbox: 0, patches: 0, bases: 0 }])
})

test('overlay equals fold(base, pending) of fold.ts after every step', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  const id = server.put('tasks', { id: randomUUID(), title: 'a', sort_order: '1.5' })
  await until(() => taskOf(replica, id))
  holdPushes(server)
  const check = async (): Promise<void> => {
    const [row] = await replica.query<{ row: RowImage }>(
      `select to_jsonb(t) || jsonb_build_object('sort_order', sort_order::text) as row from tasks t where id = $1`,
      [id],
    )
    const [base] = await replica.query<{ row: RowImage | null }>(
      'select "row" from sync.pending_base where row_id = $1',
      [id],
    )
    const patches = await replica.query<FoldablePatch>(
      'select table_name as table, op, set, base, local from sync.patches where row_id = $1 order by seq',
      [id],
    )
    expect(row?.row).toEqual(fold(base?.row ?? undefined, patches))
  }
  await setTitle(replica, id, 'b')
  await check()
  server.put('tasks', { id, title: 'x', priority: 'high', sort_order: '2.5' })
  await until(async () => (await taskOf(replica, id))?.['priority'] === 'high')
  await check()
  await replica.write((tx) => tx.query('update tasks set sort_order = 9, priority = $2 where id = $1', [id, 'low']))
  await check()
  server.put('tasks', { id, priority: 'urgent', description: 'd' })
  await until(async () => (await taskOf(replica, id))?.['description'] === 'd')
  await check()
  await replica.write((tx) => tx.query('delete from tasks where id = $1', [id]))
  await check()
})

test('E3: a mutation without any effect on the server settles too', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  const id = server.put('tasks', { id: randomUUID(), title: 'a' })
  await until(() => taskOf(replica, id))
  holdPushes(server)
  await setTitle(replica, id, 'mine')
  server.remove('tasks', id)
  await until(async () => !(await taskOf(replica, id)))
  release(server)
  await settled(replica)
  expect(await leftovers(replica)).toEqual([{ outbox: 0, patches: 0, bases: 0 }])
})

test('E4: a shape that lags behind the acknowledgement is asked, and the change never flickers back', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  const id = server.put('tasks', { id: randomUUID(), title: 'a' })
  await until(() => taskOf(replica, id))
  const seen = new Set<unknown>()
  replica.onChange(() => void taskOf(replica, id).then((row) => seen.add(row?.['title'])))
  // The shape of the tasks answers late: the acknowledgement is here long before the effect.
  server.faults.delay = ({ table }) => (table === 'tasks' ? 120 : 0)
  await setTitle(replica, id, 'b')
  await settled(replica)
  await until(() => seen.size > 0)
  expect([...seen]).toEqual(['b'])
})

test('P5: a refusal undoes exactly its change, stays with its reason, and can be retried with other values', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  const id = server.put('tasks', { id: randomUUID(), title: 'a', description: 'd' })
  await until(() => taskOf(replica, id))
  server.faults.reject = (mutation) =>
    mutation.patches.some(({ set }) => set['title'] === 'bad')
      ? { code: 'invalid', message: 'A title must be good.' }
      : undefined
  holdPushes(server)
  await setTitle(replica, id, 'bad')
  await replica.write((tx) => tx.query(`update tasks set description = 'fine' where id = $1`, [id]))
  release(server)
  await until(() => replica.status().rejected === 1 && replica.status().pending === 0, 'the refusal')
  expect(await taskOf(replica, id)).toMatchObject({ title: 'a', description: 'fine' })
  const [entry] = await replica.outbox()
  expect(entry).toMatchObject({ state: 'rejected', rejection: { code: 'invalid', message: 'A title must be good.' } })
  expect(await replica.query('select state, code, message from sync.row_states')).toEqual([
    { state: 'rejected', code: 'invalid', message: 'A title must be good.' },
  ])
  await replica.retry(entry?.seq ?? 0, { tasks: { [id]: { title: 'good' } } })
  await settled(replica)
  expect(await taskOf(replica, id)).toMatchObject({ title: 'good', description: 'fine' })
  expect(server.row('tasks', id)?.['title']).toBe('good')
  expect(await replica.outbox()).toEqual([])
  expect(replica.status().rejected).toBe(0)
})

test('P5, O9: of a set, what was added and removed is shown over what others made of it, and is what is retried', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  const id = server.put('tasks', { id: randomUUID(), title: 'a', tags: '{a,b}' })
  const tags = async () =>
    (await replica.query<{ tags: string[] }>('select tags from tasks where id = $1', [id]))[0]?.tags
  await until(() => taskOf(replica, id))
  let refuse = true
  server.faults.reject = () => (refuse ? { code: 'invalid', message: 'Not now.' } : undefined)
  holdPushes(server)
  await replica.write((tx) => tx.query('update tasks set tags = $2 where id = $1', [id, ['b', 'mine']]))
  server.put('tasks', { id, title: 'theirs', tags: '{a,b,theirs}' })
  await until(async () => (await taskOf(replica, id))?.['title'] === 'theirs')
  expect(await tags()).toEqual(['b', 'theirs', 'mine'])
  release(server)
  await until(() => replica.status().rejected === 1 && replica.status().pending === 0, 'the refusal')
  expect(await tags()).toEqual(['a', 'b', 'theirs'])
  refuse = false
  await replica.retry((await replica.outbox())[0]?.seq ?? 0)
  await settled(replica)
  expect(await tags()).toEqual(['b', 'theirs', 'mine'])
})

test('P5: a refused insert vanishes, survives a restart as a refusal, can be retried as it is, or discarded', async () => {
  const server = newServer()
  const first = await newReplica(server)
  server.faults.reject = () => ({ code: 'forbidden', message: 'Viewers do not write.' })
  const one = await addTask(first, 'one')
  const two = await addTask(first, 'two')
  await until(() => first.status().rejected === 2)
  expect(await titles(first)).toEqual([])
  const replica = await newReplica(server, { db: await killedCopy(first.db) })
  expect(replica.status()).toMatchObject({ rejected: 2, pending: 0 })
  server.faults.reject = () => undefined
  const entries = await replica.outbox()
  const seqOf = (id: string) => entries.find(({ patches }) => patches[0]?.id === id)?.seq ?? 0
  await replica.retry(seqOf(one))
  await settled(replica)
  expect(await titles(replica)).toEqual(['one'])
  await replica.discard(seqOf(two))
  expect(await replica.outbox()).toEqual([])
  await expect(replica.discard(seqOf(two))).rejects.toThrow('not in the outbox')
  holdPushes(server)
  const { seq } = await setTitle(replica, one, 'later')
  await expect(replica.discard(seq ?? 0)).rejects.toThrow('only a rejected one')
  await expect(replica.retry(seq ?? 0)).rejects.toThrow('only a rejected one')
})

test('L1: listeners hear of each committed change once, with exactly its rows', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  const heard: Record<string, string[] | 'many'>[] = []
  replica.onChange((changes: Changes) => {
    heard.push(Object.fromEntries([...changes].map(([table, ids]) => [table, ids === 'many' ? ids : [...ids].sort()])))
  })
  const ids = [randomUUID(), randomUUID()].sort()
  holdPushes(server)
  await replica.write(async (tx) => {
    for (const id of ids) await tx.query(`insert into tasks (id, tenant_id, title) values ($1, $2, 'x')`, [id, TENANT])
  })
  expect(heard.splice(0)).toEqual([{ tasks: ids }])
  await replica.write((tx) => tx.query('select 1'))
  await replica.write((tx) => tx.query('update tasks set title = title'))
  expect(heard.splice(0)).toEqual([])
  const remote = server.put('contacts', { id: randomUUID(), name: 'C' })
  await until(() => heard.length > 0)
  expect(heard.splice(0)).toEqual([{ contacts: [remote] }])
  server.faults.reject = () => ({ code: 'invalid', message: 'no' })
  release(server)
  await until(() => replica.status().rejected === 1)
  expect(heard.filter((changes) => changes['tasks'])).toEqual([{ tasks: ids }])
})

test('L1: a listener that throws disturbs nobody', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  const heard: unknown[] = []
  replica.onChange(() => {
    throw new Error('bug in a screen')
  })
  replica.onChange((changes) => heard.push(changes))
  await addTask(replica, 'a')
  expect(heard).toHaveLength(1)
  await settled(replica)
})

test('writeAll is one transaction and returns the rows of each statement', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  const id = randomUUID()
  const written = await replica.writeAll([
    { sql: `insert into tasks (id, tenant_id, title) values ($1, $2, 'a') returning title`, params: [id, TENANT] },
    { sql: 'select count(*)::int as n from tasks' },
  ])
  expect(written.result).toEqual([[{ title: 'a' }], [{ n: 1 }]])
  expect(written.seq).toBe(1)
  await expect(
    replica.writeAll([{ sql: 'delete from tasks where id = $1', params: [id] }, { sql: 'nonsense' }]),
  ).rejects.toThrow()
  expect((await taskOf(replica, id))?.['deleted_at']).toBeNull()
})

test('P2: whatever the moment of a crash, an acknowledged write is there afterwards and reaches the server once', async () => {
  for (let statements = 1; statements < 14; statements += 2) {
    const server = newServer()
    const database = mortal(await openDatabase())
    const first = await openTestReplica(server, { db: database.db, tables: [...TABLES] })
    await until(() => first.status().initial.done)
    database.arm(statements)
    const acknowledged: string[] = []
    for (const title of ['a', 'b', 'c']) {
      try {
        await addTask(first, title)
        acknowledged.push(title)
      } catch (error) {
        expect(String(error)).toContain('killed')
      }
    }
    const copy = await killedCopy(first.db)
    await first.close().catch(() => undefined)
    const second = await newReplica(server, { db: copy })
    await settled(second)
    const present = server.rows('tasks').map((row) => row['title'] ?? '')
    expect(present, `after a crash at statement ${statements}`).toEqual(expect.arrayContaining(acknowledged))
    expect(new Set(present).size).toBe(present.length)
    expect(await titles(second)).toEqual([...present].sort())
    const seqs = server.applied.map(({ seq }) => seq)
    expect(seqs).toEqual([...new Set(seqs)])
    await second.close()
    open.shift()
  }
})

test('P2: settling survives a crash between the acknowledgement and the settling', async () => {
  const server = newServer()
  const database = mortal(await openDatabase())
  const first = await openTestReplica(server, { db: database.db, tables: [...TABLES] })
  await until(() => first.status().initial.done)
  // The effect stays away, the acknowledgement comes.
  server.faults.fault = ({ table }) => (table === 'tasks' ? { kind: 'drop' } : undefined)
  await addTask(first, 'a')
  await until(async () => (await first.query('select from sync.replica where ack_seq = 1')).length === 1)
  const copy = await killedCopy(first.db)
  await first.close()
  const second = await newReplica(server, { db: copy })
  expect(await titles(second)).toEqual(['a'])
  release(server)
  await settled(second)
  expect(await leftovers(second)).toEqual([{ outbox: 0, patches: 0, bases: 0 }])
})

test('X1: what was pending in a lost database is written again in a new one, once and in order', async () => {
  const server = newServer()
  server.faults.online = false
  const lost = await newReplica(server)
  const id = await addTask(lost, 'a', { tags: ['x', 'y"z'] })
  await setTitle(lost, id, 'b')
  const lines = await exportOutbox(lost.db)
  await lost.close()
  server.faults.online = true
  const fresh = await newReplica(server)
  expect(await importOutbox(fresh, `${lines}\n${lines}\n`)).toEqual({ imported: 2, failed: [] })
  await settled(fresh)
  expect(server.rows('tasks')).toMatchObject([{ id, title: 'b', tags: '{"x","y\\"z"}' }])
  expect(server.applied.map(({ patches }) => patches[0]?.op)).toEqual(['insert', 'update'])
})

test('a database of another person or workspace is refused', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  const copy = await killedCopy(replica.db)
  await expect(
    openTestReplica(server, { db: copy, identity: { kind: 'browser', tenantId: TENANT, ownerId: randomUUID() } }),
  ).rejects.toThrow('belongs to another person')
  await copy.close()
})

test('a copied database gets an identity of its own, and what was pending is numbered anew', async () => {
  const server = newServer()
  const original = await newReplica(server, { guard: 'one' })
  await addTask(original, 'before')
  await settled(original)
  holdPushes(server)
  await addTask(original, 'pending')
  const clone = await newReplica(server, { db: await killedCopy(original.db), guard: 'two' })
  expect(clone.identity.replicaId).not.toBe(original.identity.replicaId)
  expect((await clone.outbox()).map(({ seq }) => seq)).toEqual([1])
  await addTask(clone, 'of the clone')
  release(server)
  await settled(original)
  await settled(clone)
  expect(await titles(original)).toEqual(['before', 'of the clone', 'pending'])
  expect(await titles(clone)).toEqual(await titles(original))
})
