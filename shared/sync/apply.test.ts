/** The read path's rules R1–R7 (apply.ts, shape.ts) against the real protocol's semantics, on real PGlite. */
import { randomUUID } from 'node:crypto'
import { afterEach, expect, test, vi } from 'vitest'
import { c, table } from '../schema/columns.ts'
import { createApplier, type TextRow } from './apply.ts'
import { attachTable } from './attach.ts'
import type { Changes } from './contract.ts'
import { createFakeServer, type FakeServer, toText } from './testing/fake-server.ts'
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
  const replica = await openTestReplica(server, options)
  open.unshift(replica)
  return replica
}
const task = (title: string, more: TextRow = {}) => ({ id: randomUUID(), title, ...more })
const loaded = (replica: TestReplica) => until(() => replica.status().initial.done, 'the first load')
const storedOffset = async (replica: TestReplica, name = 'tasks') =>
  (await replica.query<{ offset: string }>('select "offset" from sync.shapes where table_name = $1', [name]))[0]?.offset

test('R1: what is stored is the position of the last message applied, not the end that the answer names', async () => {
  const server = newServer()
  const replica = await newReplica(server, { tables: ['tasks', 'comments'] })
  await loaded(replica)
  expect(await storedOffset(replica)).toBe('0_inf')
  server.put('tasks', task('one'))
  // Raises the end of the log, and so every later up-to-date, but is no message of the tasks.
  server.put('contacts', { id: randomUUID(), name: 'C' })
  await until(async () => (await titles(replica)).length === 1)
  const [row] = await replica.query<{ offset: string; position: number }>(
    `select "offset", position from sync.shapes where table_name = 'tasks'`,
  )
  expect(row?.offset).toBe('1010_0')
})

test('R1: a snapshot that is cut off in the middle counts for nothing; the next start begins again', async () => {
  const server = newServer()
  server.faults.chunkRows = 2
  server.putMany(
    'tasks',
    ['a', 'b', 'c', 'd', 'e'].map((title) => task(title)),
  )
  server.faults.fault = ({ offset, table: name }) =>
    name === 'tasks' && offset === '0_0' ? { kind: 'status', status: 503 } : undefined
  const first = await newReplica(server, { tables: ['tasks'] })
  await until(async () => (await titles(first)).length === 2)
  expect(await storedOffset(first)).toBeUndefined()
  expect(first.status().initial.done).toBe(false)
  const copy = await killedCopy(first.db)
  server.remove('tasks', server.rows('tasks')[0]?.['id'] ?? '')
  server.faults.fault = () => undefined
  const second = await newReplica(server, { db: copy, tables: ['tasks'] })
  await loaded(second)
  // 'a' was loaded by the first attempt and deleted meanwhile: it must not stay as a ghost.
  expect(await titles(second)).toEqual(['b', 'c', 'd', 'e'])
})

test('R2, A1: the same messages twice give the same rows, and no change is announced for them', async () => {
  const server = newServer()
  const replica = await newReplica(server, { tables: ['tasks'] })
  await loaded(replica)
  const id = server.put('tasks', task('one'))
  await until(async () => (await titles(replica)).length === 1)
  const seen: Changes[] = []
  const applier = createApplier(replica.db, (changes) => seen.push(changes))
  const row = server.row('tasks', id) ?? {}
  await applier.apply({ table: 'tasks', upserts: [row], deletes: [randomUUID()] })
  expect(seen).toEqual([new Map()])
  expect(await titles(replica)).toEqual(['one'])
})

test('R3: a batch that cannot be applied stops the stream, which starts again from the stored position; other shapes go on', async () => {
  const server = newServer()
  server.faults.longPollMs = 20
  const replica = await newReplica(server, { tables: ['tasks', 'contacts'] })
  await loaded(replica)
  let broken = true
  const asked = server.requests.length
  server.faults.fault = ({ table: name }) =>
    broken && name === 'tasks'
      ? {
          kind: 'body',
          body: '[{"key":"k","value":{"id":"not a uuid"},"headers":{"operation":"insert","lsn":"9999","op_position":0}}]',
        }
      : undefined
  await until(() => server.requests.slice(asked).some(({ table: name }) => name === 'tasks'))
  server.put('tasks', task('one'))
  server.put('contacts', { id: randomUUID(), name: 'C' })
  await until(() => replica.logged.some((line) => line.includes('Stream of tasks starts again: applying failed')))
  await until(async () => (await replica.query('select from contacts')).length === 1)
  expect(await storedOffset(replica)).toBe('0_inf')
  broken = false
  await until(async () => (await titles(replica)).length === 1)
})

test('R4: no status ends a stream for good', async () => {
  const server = newServer()
  const replica = await newReplica(server, { tables: ['tasks'] })
  await loaded(replica)
  for (const status of [400, 401, 404, 429, 500, 503]) {
    let answered = 0
    server.faults.fault = () => (answered++ < 2 ? { kind: 'status', status } : undefined)
    server.put('tasks', task(`after ${status}`))
    await until(
      async () => (await titles(replica)).includes(`after ${status}`),
      `the stream to recover from ${status}`,
      25_000,
    )
  }
})

test('R4: 401 shows as unauthorized and ends by itself', async () => {
  const server = newServer()
  const replica = await newReplica(server, { tables: ['tasks'] })
  await loaded(replica)
  server.faults.fault = () => ({ kind: 'status', status: 401 })
  await addTask(replica, 'mine')
  await until(() => replica.status().connection === 'unauthorized')
  expect(replica.status().pending).toBe(1)
  server.faults.fault = () => undefined
  await until(() => replica.status().connection === 'online' && replica.status().pending === 0, 'a new session', 20_000)
})

test('R5: whatever the server sends is taken, in any order, also twice the same unique value', async () => {
  const server = newServer()
  const replica = await newReplica(server, { tables: ['comments', 'streams'] })
  await loaded(replica)
  server.put('comments', {
    id: randomUUID(),
    body: 'x',
    entity_type: 'task',
    entity_id: randomUUID(),
    actor_type: 'human',
  })
  server.putMany('streams', [
    { id: randomUUID(), name: 'same' },
    { id: randomUUID(), name: 'same' },
  ])
  await until(async () => (await replica.query('select from streams')).length === 2)
  await until(async () => (await replica.query('select from comments')).length === 1)
})

test('R6: a refetch swaps once: never empty, never half, vanished rows gone, pending changes kept', async () => {
  const server = newServer()
  server.putMany(
    'tasks',
    ['a', 'b', 'c'].map((title) => task(title)),
  )
  const replica = await newReplica(server, { tables: ['tasks', 'client_progress', 'mutation_results'] })
  await loaded(replica)
  server.faults.fault = ({ path }) => (path === '/v1/mutations' ? { kind: 'drop' } : undefined)
  const [a, b] = server.rows('tasks')
  const mine = await addTask(replica, 'mine')
  await replica.write((tx) => tx.query(`update tasks set title = 'a, edited' where id = $1`, [a?.['id'] ?? '']))
  const counts = new Set<number>()
  const stop = replica.onChange(() => void replica.query('select from tasks').then((rows) => counts.add(rows.length)))

  server.faults.chunkRows = 1
  server.remove('tasks', b?.['id'] ?? '')
  await until(async () => (await titles(replica)).length === 3)
  const watching = setInterval(() => void replica.query('select from tasks').then((rows) => counts.add(rows.length)), 1)
  counts.clear()
  server.rotate('tasks')
  server.put('tasks', task('d'))
  await until(async () => (await titles(replica)).includes('d'))
  clearInterval(watching)
  stop()
  expect(await titles(replica)).toEqual(['a, edited', 'c', 'd', 'mine'])
  expect([...counts].every((count) => count === 3 || count === 4)).toBe(true)
  expect((await replica.query('select title from tasks where id = $1', [mine]))[0]).toEqual({ title: 'mine' })
  server.faults.fault = () => undefined
  await settled(replica)
  expect(server.row('tasks', a?.['id'] ?? '')?.['title']).toBe('a, edited')
})

test('R6: a row that vanished with the refetch stays while it has a pending insert, and goes when that is refused', async () => {
  const server = newServer()
  server.faults.reject = () => ({ code: 'invalid', message: 'no' })
  const replica = await newReplica(server, { tables: ['tasks', 'client_progress', 'mutation_results'] })
  await loaded(replica)
  server.faults.fault = ({ path }) => (path === '/v1/mutations' ? { kind: 'drop' } : undefined)
  await addTask(replica, 'mine')
  server.rotate('tasks')
  server.put('tasks', task('other'))
  await until(async () => (await titles(replica)).length === 2)
  server.faults.fault = () => undefined
  await until(() => replica.status().rejected === 1)
  expect(await titles(replica)).toEqual(['other'])
})

const everyType = table(
  'every_type',
  {
    group: 'core',
    visibility: { browser: 'tenant', gateway: 'tenant' },
    write: { browser: 'member', gateway: 'tenant' },
  },
  {
    a_uuid: c.uuid().null(),
    a_text: c.text().null(),
    a_bool: c.bool().null(),
    an_int: c.int().null(),
    a_bigint: c.bigint().null(),
    a_numeric: c.numeric().null(),
    a_float: c.float().null(),
    a_date: c.date().null(),
    a_time: c.time().null(),
    a_json: c.json().null(),
    texts: c.texts().null(),
    bytes: c.bytes().null(),
  },
)

const VALUES: Record<string, string[]> = {
  a_uuid: ['0197f000-0000-7000-8000-0000000000ff'],
  a_text: ['', 'a\r\nb\rc', '\\N', `"quoted" 'twice' \\ back`, '\t,{}', 'NULL', '😀 ü \u2028'],
  a_bool: ['true', 'false'],
  an_int: ['2147483647', '-2147483648'],
  a_bigint: ['9223372036854775807', '-9007199254740993', '9007199254740993'],
  a_numeric: ['123456789012345678901234567890.123456789', '1.50', 'NaN', 'Infinity'],
  a_float: ['NaN', 'Infinity', '-Infinity', '0.1', '1e-300', '1.7976931348623157e+308'],
  a_date: ['2025-02-28', '0001-01-01', 'infinity'],
  a_time: ['2025-02-28 23:59:59.123456+00', '1970-01-01 00:00:00+00', 'infinity'],
  a_json: ['{"a": [1, "\\r\\n\\"\\\\N", null, 12345678901234567890.5]}', '[]', '"text"', '"\\\\N"'],
  texts: ['{}', '{a,NULL,"NULL"}', '{"with \\"quotes\\"","a,b","{}","\\\\\\\\N",""}', '{"a\r\nb"}'],
  bytes: ['\\x', '\\x000a0dff5c4e'],
}

test('R7: every type survives the way from the server to the table, and the way from a local write to the server and back', async () => {
  const db = await openDatabase()
  try {
    const columns = Object.entries(everyType.columns)
    const list = columns.map(([name, { spec }]) => `"${name}" ${spec.type}${spec.primaryKey ? ' primary key' : ''}`)
    await db.exec(`create table every_type (${list.join(', ')}); ${attachTable(everyType)}`)
    await db.query(`insert into sync.replica (replica_id, tenant_id, kind, owner_id) values ($1, $2, 'browser', $2)`, [
      randomUUID(),
      TENANT,
    ])
    const applier = createApplier(db, () => undefined)
    const print = async (id: string): Promise<TextRow> => {
      const texts = columns.map(([name]) => `"${name}"::text`)
      return (await db.query<TextRow>(`select ${texts.join(', ')} from every_type where id = $1`, [id])).rows[0] ?? {}
    }
    for (const [column, values] of Object.entries(VALUES)) {
      for (const value of [...values, null]) {
        const id = randomUUID()
        const row: TextRow = {
          id,
          tenant_id: TENANT,
          created_at: '2025-01-01 00:00:00+00',
          updated_at: '2025-01-01 00:00:00+00',
          deleted_at: null,
          [column]: value,
        }
        await applier.apply({ table: 'every_type' as 'tasks', upserts: [row], deletes: [] })
        expect((await print(id))[column], `${column} ${value}: applied`).toBe(value)

        // A local write of the same value to a new row: patch, JSON on the wire, the server's text, and through apply again.
        const copy = randomUUID()
        await db.query(
          `insert into every_type (id, tenant_id, created_at, updated_at, "${column}") select $1, tenant_id, created_at, updated_at, "${column}" from every_type where id = $2`,
          [copy, id],
        )
        const { rows } = await db.query<{ set: string; base: string }>(
          'select set::text from sync.patches where row_id = $1',
          [copy],
        )
        const set = JSON.parse(rows[0]?.set ?? '{}') as Record<string, unknown>
        const type = columns.find(([name]) => name === column)?.[1].spec.type ?? 'text'
        // A JSON number beyond 2^53 is the one thing that JavaScript's parser rounds; Postgres on the server reads it whole.
        const sent = type === 'jsonb' ? value : toText(set[column], type)
        await db.query('select sync.fold_every_type(array[$1::uuid])', [copy])
        expect((await print(copy))[column], `${column} ${value}: folded`).toBe(value)
        await applier.apply({
          table: 'every_type' as 'tasks',
          upserts: [{ ...row, id: copy, [column]: sent }],
          deletes: [],
        })
        const base = await db.query<{ same: boolean }>(
          `select b."row" -> '${column}' is not distinct from (select to_jsonb(t) -> '${column}' from every_type t where id = $1)
             or (b."row" ->> '${column}') is not distinct from (select "${column}"::text from every_type t where id = $1) as same
           from sync.pending_base b where row_id = $1`,
          [copy],
        )
        expect(base.rows[0]?.same, `${column} ${value}: echoed as ${sent}`).toBe(true)
      }
    }
  } finally {
    await db.close()
  }
})

test('R7: the fast way of the first load keeps every character too', async () => {
  const server = newServer()
  const nasty = [...(VALUES['a_text'] ?? []), 'tab\there', '\\', '\\.', 'end\\', '\\t', '{"json"}']
  server.putMany(
    'tasks',
    Array.from({ length: 80 }, (_, index) =>
      task(`t${index}`, {
        description: nasty[index % nasty.length] ?? null,
        tags: VALUES['texts']?.[index % 4] ?? '{}',
        sort_order: index === 7 ? 'NaN' : '0.1',
      }),
    ),
  )
  const replica = await newReplica(server, { tables: ['tasks'] })
  await loaded(replica)
  const rows = await replica.query<TextRow>(
    'select id, title, description, tags::text as tags, sort_order::text as sort_order from tasks',
  )
  expect(rows).toHaveLength(80)
  for (const row of rows) expect(server.row('tasks', row['id'] ?? '')).toMatchObject(row)
})

test('a first load over rows that are here already, or pending, does without the fast way', async () => {
  const server = newServer()
  server.faults.online = false
  const replica = await newReplica(server, { tables: ['tasks'] })
  const mine = await addTask(replica, 'mine')
  server.putMany('tasks', [
    { id: mine, title: 'theirs' },
    ...Array.from({ length: 70 }, (_, index) => task(`t${index}`)),
  ])
  server.faults.online = true
  await settled(replica)
  expect(await titles(replica)).toHaveLength(71)
})

test('D1: no row is lost when a shape stops between hearing of a transaction and applying it', async () => {
  // pglite-sync stored a position behind which rows of another shape were still only in memory. Every statement of the apply path is a crash point here.
  for (const statements of [0, 1, 2, 4, 7]) {
    const server = newServer()
    const database = mortal(await openDatabase())
    const first = await openTestReplica(server, { db: database.db, tables: ['tasks', 'contacts'] })
    await loaded(first)
    server.faults.chunkRows = 1
    database.arm(statements)
    for (let index = 0; index < 4; index++) {
      server.put('tasks', task(`task ${index}`))
      server.put('contacts', { id: randomUUID(), name: `contact ${index}` })
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    await until(() => database.statements() > statements || statements > 8, 'the crash', 2_000).catch(() => undefined)
    const copy = await killedCopy(first.db)
    await first.close().catch(() => undefined)
    const second = await newReplica(server, { db: copy, tables: ['tasks', 'contacts'] })
    await until(async () => (await titles(second)).length === 4, `all tasks after a crash at statement ${statements}`)
    await until(
      async () => (await second.query('select from contacts')).length === 4,
      `all contacts after a crash at statement ${statements}`,
    )
  }
})

test('D2: the echo of an own insert does not take the other rows of its transaction with it', async () => {
  const server = newServer()
  const replica = await newReplica(server)
  await loaded(replica)
  const mine = await addTask(replica, 'mine')
  await settled(replica)
  server.putMany('tasks', [{ id: mine, title: 'mine, changed' }, task('other')])
  await until(async () => (await titles(replica)).length === 2)
  expect(await titles(replica)).toEqual(['mine, changed', 'other'])
})

test('D3: standing still writes nothing', async () => {
  const server = newServer()
  server.faults.longPollMs = 20
  const database = mortal(await openDatabase())
  const replica = await newReplica(server, { db: database.db })
  await loaded(replica)
  await new Promise((resolve) => setTimeout(resolve, 400))
  database.arm(Number.POSITIVE_INFINITY)
  const requests = server.requests.length
  await until(() => server.requests.length > requests + 60)
  expect(database.statements()).toBe(0)
})

test('positions of the wrong kind in an answer (an up-to-date alone, an empty chunk before it) lose nothing', async () => {
  const server = newServer()
  server.faults.upToDateWithSnapshot = false
  server.putMany(
    'tasks',
    ['a', 'b', 'c'].map((title) => task(title)),
  )
  const replica = await newReplica(server, { tables: ['tasks'] })
  await loaded(replica)
  expect(await titles(replica)).toEqual(['a', 'b', 'c'])
  server.put('tasks', task('d'))
  await until(async () => (await titles(replica)).length === 4)
})
