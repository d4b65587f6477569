/**
 * Access that ends while a replica is connected: by an admin, by signing out, by SQL, by time. Within seconds it gets no more rows, and what it wrote
 * meanwhile is parked, never dropped; let in again, it goes on.
 */
import { newId } from '@hq/sync-server/database/ids.ts'
import {
  type Caller,
  insert,
  remove,
  startWorkspace,
  update,
  type Workspace,
} from '@hq/sync-server/testing/workspace.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { within } from './support/browser.ts'
import { type Live, openLive, until } from './support/replica.ts'

/** Of the promise "within a minute" this much is what an announced change may take, on a busy machine. */
const SOON_MS = 10_000
let workspace: Workspace
const lives: Live[] = []

beforeAll(async () => {
  workspace = await startWorkspace()
})
afterEach(async () => {
  for (const live of lives.splice(0)) await live.close()
})
afterAll(() => workspace?.stop())

const open = async (caller: Caller): Promise<Live> => {
  const live = await openLive(workspace.url, caller)
  lives.push(live)
  return live
}
const has = async (live: Live, id: string): Promise<boolean> => (await live.ids('tasks')).includes(id)
/** A task made by the owner that everybody with access gets. */
const publish = async (): Promise<string> => {
  const id = newId()
  await workspace.writer(workspace.owner).apply([insert('tasks', { title: 'News' }, id)])
  return id
}
/** The live replica has lost its access; a neighbour proves that what comes afterwards goes round. */
const isOut = async (live: Live, neighbour: Live): Promise<void> => {
  const id = await publish()
  await until(neighbour, 'the neighbour has it', () => has(neighbour, id))
  const written = await live.addTask('written while out')
  const more = await publish()
  await until(neighbour, 'the neighbour has that too', () => has(neighbour, more))
  expect(await has(live, id)).toBe(false)
  expect(await has(live, more)).toBe(false)
  expect(await workspace.rows('select 1 from tasks where id = $1', [written])).toEqual([])
  // Parked, not dropped.
  expect(live.replica.status().pending).toBeGreaterThan(0)
  expect((await live.replica.outbox()).some(({ patches }) => patches.some((patch) => patch.id === written))).toBe(true)
}
const status = async (caller: Caller, replica: string): Promise<number> =>
  (await workspace.request(caller, `/v1/shape?table=tasks&offset=-1&replica_id=${replica}`)).status
const isParked = ({ replica }: Live): boolean => {
  const { connection, parked } = replica.status()
  return connection === 'unauthorized' || parked !== null
}

test('a removed person: out at once; put back, what waited arrives once', async () => {
  const leaver = await workspace.join('member')
  const [live, neighbour] = [await open(leaver), await open(workspace.owner)]
  const { person_id } = leaver.principal
  const admin = workspace.writer(workspace.owner)
  await admin.apply([remove('people', person_id)])
  await until(live, 'it hears that it is out', () => live.replica.status().connection !== 'online', SOON_MS)
  await isOut(live, neighbour)
  expect(await status(leaver, live.replica.identity.replicaId)).toBe(401)
  await until(live, 'it says so', () => isParked(live), SOON_MS)
  await workspace.rows('update people set deleted_at = null where id = $1', [person_id])
  await until(live, 'what waited has arrived', () => live.replica.status().pending === 0)
  const [count] = await workspace.rows(`select count(*)::int as n from tasks where title = 'written while out'`)
  expect(count).toEqual({ n: 1 })
})

test('a revoked device, by SQL behind the server’s back: its held requests are answered 403, the person’s other device stays', async () => {
  const person = await workspace.join('member')
  const [live, other] = [await open(person), await open(person)]
  const { replicaId } = live.replica.identity
  await workspace.rows('update replicas set revoked_at = now() where id = $1', [replicaId])
  await until(live, 'it is told', () => live.refused.some((line) => line.startsWith('403')), SOON_MS)
  await isOut(live, other)
  await until(live, 'it says so', () => live.replica.status().parked === 'revoked', SOON_MS)
  expect(await status(person, replicaId)).toBe(403)
  expect(other.refused).toEqual([])
  const waiting = live.replica.status().pending
  expect(waiting).toBeGreaterThan(0)
  await workspace.rows('update replicas set revoked_at = null where id = $1', [replicaId])
  await until(live, 'what waited has arrived', () => live.replica.status().pending === 0)
  const news = await publish()
  await until(live, 'rows come again', () => has(live, news))
})

test('over plain HTTP a held request ends with the refusal too, not with rows', async () => {
  const person = await workspace.join('member')
  const replica = newId()
  const ask = (more: string): Promise<Response> =>
    workspace.request(person, `/v1/shape?table=tasks&replica_id=${replica}&${more}`)
  for (const [how, sql, expected] of [
    ['the device', 'update replicas set revoked_at = now() where id = $1', 403],
    ['the session', `delete from auth_session where "userId" = (select user_id from people where id = $1)`, 401],
  ] as const) {
    const { headers } = await ask('offset=now')
    const at = `offset=${headers.get('electric-offset')}&handle=${headers.get('electric-handle')}&live=true`
    const held = [ask(at), ask(`${at}&live_sse=true`)]
    const stream = await within(SOON_MS, 'the stream begins', held[1] as Promise<Response>)
    expect(stream.status).toBe(200)
    await workspace.rows(sql, [how === 'the device' ? replica : person.principal.person_id])
    expect((await within(SOON_MS, `${how} is out`, held[0] as Promise<Response>)).status).toBe(expected)
    await publish()
    const text = await within(
      SOON_MS,
      'the stream breaks off',
      stream.text().catch((error: unknown) => String(error)),
    )
    expect(text).not.toContain('News')
    await workspace.rows('update replicas set revoked_at = null where id = $1', [replica])
    await expect.poll(() => status(person, replica)).toBe(how === 'the device' ? 200 : 401)
  }
})

test('a member who becomes a viewer: from then on its changes are refused, also over a socket that was open before', async () => {
  const person = await workspace.join('member')
  const live = await open(person)
  await live.addTask('as a member')
  await until(live, 'it is settled', () => live.replica.status().pending === 0)
  const writer = workspace.writer(workspace.owner)
  await writer.apply([update('people', person.principal.person_id, { role: 'member' }, { role: 'viewer' })])
  const id = await live.addTask('as a viewer')
  await until(live, 'it is refused', () => live.replica.status().rejected === 1, SOON_MS)
  expect(await workspace.rows('select 1 from tasks where id = $1', [id])).toEqual([])
  expect((await live.replica.outbox())[0]?.rejection?.code).toBe('forbidden')
  // What a viewer may see still comes.
  const news = await publish()
  await until(live, 'rows still come', () => has(live, news))
})

test('signing out, and a session that an admin of the database shortens, end the socket within seconds', async () => {
  const neighbour = await open(workspace.owner)
  for (const end of [
    (person: Caller) => workspace.request(person, '/api/auth/sign-out', { method: 'POST', body: '{}' }),
    (person: Caller & { principal: { person_id?: string } }) =>
      workspace.rows(
        `update auth_session set "expiresAt" = now() - interval '1 second' where "userId" = (select user_id from people where id = $1)`,
        [person.principal.person_id],
      ),
  ]) {
    const person = await workspace.join('member')
    const live = await open(person)
    await end(person)
    await until(live, 'it is out', () => live.replica.status().connection === 'unauthorized', SOON_MS)
    await isOut(live, neighbour)
  }
})

test('a session that runs out by time alone ends within a minute', async () => {
  const person = await workspace.join('member')
  const live = await open(person)
  await workspace.rows(
    `alter table auth_session disable trigger access_shortened;
     update auth_session set "expiresAt" = now() + interval '1 second' where "userId" = '${(await workspace.rows<{ user_id: string }>('select user_id from people where id = $1', [person.principal.person_id]))[0]?.user_id}';
     alter table auth_session enable trigger access_shortened`,
  )
  await until(live, 'it is out', () => live.replica.status().connection === 'unauthorized', 60_000)
})

test('a retired gateway: its replica is out, what it wrote is kept', async () => {
  const gateway = await workspace.gateway()
  const [live, neighbour] = [await open(gateway), await open(workspace.owner)]
  await workspace.rows('update gateway_credentials set revoked_at = now() where gateway_id = $1', [
    gateway.principal.gateway_id,
  ])
  await until(live, 'it is out', () => live.replica.status().connection === 'unauthorized', SOON_MS)
  await isOut(live, neighbour)
})
