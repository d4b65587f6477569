/** The pusher (push.ts): order, repeats, what each refusal of the server leads to. */
import { afterEach, expect, test, vi } from 'vitest'
import { LIMITS } from './protocol.ts'
import { createFakeServer, type FakeServer } from './testing/fake-server.ts'
import {
  addTask,
  killedCopy,
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
const start = async (): Promise<{ server: FakeServer; replica: TestReplica }> => {
  const server = createFakeServer({ tenantId: TENANT })
  open.push(server)
  const replica = await openTestReplica(server, { tables: ['tasks'] })
  open.unshift(replica)
  await until(() => replica.status().initial.done)
  return { server, replica }
}
const pushes = (server: FakeServer) => server.requests.filter(({ path }) => path === '/v1/mutations').length

test('W1: an answer lost after the commit leads to a repeat that the server recognises', async () => {
  const { server, replica } = await start()
  let lose = 2
  server.faults.fault = ({ path }) => (path === '/v1/mutations' && lose-- > 0 ? { kind: 'lose' } : undefined)
  await addTask(replica, 'a')
  await addTask(replica, 'b')
  await settled(replica)
  expect(server.applied.map(({ seq }) => seq)).toEqual([1, 2])
})

test('W1: a long outbox goes in batches within the limits, in order', async () => {
  const { server, replica } = await start()
  server.faults.fault = ({ path }) => (path === '/v1/mutations' ? { kind: 'drop' } : undefined)
  for (let index = 0; index < 450; index++) await addTask(replica, `t${index}`)
  server.faults.fault = () => undefined
  server.reconnect()
  const before = pushes(server)
  await settled(replica)
  expect(server.applied.map(({ seq }) => seq)).toEqual(Array.from({ length: 450 }, (_, index) => index + 1))
  expect(pushes(server) - before).toBeLessThanOrEqual(Math.ceil(450 / LIMITS.mutationsPerPush) + 2)
})

test('W1: large mutations share no push that would be too large', async () => {
  const { server, replica } = await start()
  const sizes: number[] = []

  const fetch = server.fetch
  server.faults.online = false
  for (let index = 0; index < 5; index++) await addTask(replica, `t${index}`, { description: 'x'.repeat(1_500_000) })
  const db = await killedCopy(replica.db)
  await replica.close()
  server.faults.online = true
  const watched = await openTestReplica(server, {
    db,
    tables: ['tasks'],
    environment: {
      now: Date.now,
      randomUuid: () => crypto.randomUUID(),
      log: () => undefined,
      fetch: (input, init) => {
        if (init?.body) sizes.push(String(init.body).length)
        return fetch(input, init)
      },
    },
  })
  open.unshift(watched)
  await settled(watched)
  expect(server.rows('tasks')).toHaveLength(5)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(LIMITS.pushBytes)
})

test('W2: `accepted` after the answer, gone only after the read path', async () => {
  const { server, replica } = await start()
  server.faults.fault = ({ table }) => (table === 'client_progress' ? { kind: 'drop' } : undefined)
  // Breaks the running long poll of client_progress, so that the acknowledgement cannot come.
  server.faults.online = false
  server.faults.online = true
  await addTask(replica, 'a')
  await until(async () => (await replica.outbox())[0]?.state === 'accepted')
  expect(replica.status().pending).toBe(1)
  server.faults.fault = () => undefined
  await settled(replica)
})

test('W3: a server that is behind gets what it misses once more', async () => {
  const { server, replica } = await start()
  server.faults.fault = ({ table }) => (table === 'client_progress' ? { kind: 'drop' } : undefined)
  server.faults.online = false
  server.faults.online = true
  await addTask(replica, 'a')
  await addTask(replica, 'b')
  await until(async () => (await replica.outbox()).every(({ state }) => state === 'accepted'))
  server.setLastSeq(replica.identity.replicaId, 0)
  await addTask(replica, 'c')
  await until(() => server.applied.length >= 5, 'the repeat of all three')
  expect(server.applied.slice(-3).map(({ seq }) => seq)).toEqual([1, 2, 3])
  server.faults.fault = () => undefined
  await settled(replica)
})

test('W3: a server that knows more of us than we ever made means that we are a copy: new identity, and nothing is taken for a repeat', async () => {
  const { server, replica } = await start()
  await addTask(replica, 'before')
  await settled(replica)
  const copy = await killedCopy(replica.db)
  await addTask(replica, 'of the original')
  await addTask(replica, 'and another')
  await settled(replica)
  const clone = await openTestReplica(server, { db: copy, tables: ['tasks'] })
  open.unshift(clone)
  await addTask(clone, 'of the copy')
  await until(() => clone.identity.replicaId !== replica.identity.replicaId, 'a new identity')
  await addTask(clone, 'one more')
  await settled(clone)
  await addTask(replica, 'still here')
  await settled(replica)
  const expected = ['and another', 'before', 'of the copy', 'of the original', 'one more', 'still here']
  await until(async () => (await titles(clone)).length === 6 && (await titles(replica)).length === 6)
  expect(await titles(clone)).toEqual(expected)
  expect(await titles(replica)).toEqual(expected)
})

test('W3: a server restored from a backup, which expects what has long been settled here, gets a new identity', async () => {
  const { server, replica } = await start()
  const before = replica.identity.replicaId
  for (const title of ['a', 'b', 'c']) await addTask(replica, title)
  await settled(replica)
  server.setLastSeq(before, 1)
  await addTask(replica, 'd')
  await until(() => replica.identity.replicaId !== before, 'a new identity')
  await settled(replica)
  expect(server.applied.at(-1)).toMatchObject({ seq: 1 })
  expect(server.rows('tasks')).toHaveLength(4)
})

test('W4: without rights or with the wrong schema the outbox is parked with the reason, and nothing is lost', async () => {
  const { server, replica } = await start()
  for (const [status, code] of [
    [403, 'revoked'],
    [426, 'schema_too_old'],
  ] as const) {
    server.faults.fault = ({ path }) => (path === '/v1/mutations' ? { kind: 'status', status, code } : undefined)
    await addTask(replica, code)
    await until(() => replica.status().parked === code)
    expect(replica.status().pending).toBe(1)
    server.faults.fault = () => undefined
    server.reconnect()
    await settled(replica)
    expect(replica.status().parked).toBeNull()
  }
  expect(server.rows('tasks')).toHaveLength(2)
})
