/** Backups over real HTTP: whole or not there, and only for those whose they are. */
import { createHash, randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBlobs } from '../blobs/blobs.ts'
import { hashToken, newId, newToken } from '../database/ids.ts'
import {
  type Caller,
  type Gateway,
  insert,
  newGatewayIdentity,
  startWorkspace,
  type Workspace,
} from '../testing/workspace.ts'

let workspace: Workspace
let one: Gateway
let two: Gateway

beforeAll(async () => {
  workspace = await startWorkspace()
  one = await workspace.gateway('one')
  two = await workspace.gateway('two')
})
afterAll(() => workspace?.stop())

const ROOT = '/v1/blobs/gateway-backups'
const shaOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex')
const recoveryToken = (): string => `hqrk_${newToken()}`
const bearer = (token: string): Caller => ({ headers: { authorization: `Bearer ${token}` }, principal: one.principal })
const put = (caller: Caller | undefined, sha256: string, content: Uint8Array<ArrayBuffer>, key = recoveryToken()) =>
  workspace.request(caller, `${ROOT}/${sha256}`, {
    method: 'PUT',
    body: new Blob([content]),
    headers: { 'x-hq-restore-hash': hashToken(key), 'content-type': 'application/octet-stream' },
  })
const get = (caller: Caller | undefined, sha256: string) => workspace.request(caller, `${ROOT}/${sha256}`)
const folder = (gateway: Gateway) => join(workspace.home, 'server/blobs/gateway-backups', gateway.principal.gateway_id)

test('a file comes back as it went in, also one that is larger than a request may be', async () => {
  const content = randomBytes(40 * 1024 * 1024)
  const sha256 = shaOf(content)
  expect((await put(one, sha256, content)).status).toBe(201)
  expect((await put(one, sha256, content)).status).toBe(201)
  const answer = await get(one, sha256)
  expect(shaOf(await answer.bytes())).toBe(sha256)
  const list = (await (await workspace.request(one, ROOT)).json()) as { backups: unknown[] }
  expect(list.backups).toMatchObject([{ sha256, size: content.length, gateway_id: one.principal.gateway_id }])
  expect((await workspace.request(one, `${ROOT}/${sha256}`, { method: 'DELETE' })).status).toBe(200)
  expect((await get(one, sha256)).status).toBe(404)
  expect(await readdir(folder(one))).toEqual([])
})

test('a content that is not what its name says leaves nothing', async () => {
  const [content, other] = [randomBytes(100_000), randomBytes(1_000)]
  const answer = await put(one, shaOf(other), content)
  expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([422, 'wrong_hash'])
  expect(await readdir(folder(one))).toEqual([])
})

test('another gateway, people below admin and strangers are told that it does not exist', async () => {
  const content = randomBytes(1_000)
  const sha256 = shaOf(content)
  const key = recoveryToken()
  expect((await put(one, sha256, content, key)).status).toBe(201)
  const [admin, member] = [await workspace.join('admin'), await workspace.join('member')]
  const strangers = [two, member, undefined, bearer(recoveryToken()), bearer('hqgw_nobody')]
  for (const caller of strangers) {
    expect((await get(caller, sha256)).status).toBe(404)
    expect((await workspace.request(caller, `${ROOT}/${sha256}`, { method: 'DELETE' })).status).toBe(404)
  }
  for (const caller of [admin, member, bearer(key)])
    expect((await put(caller, shaOf(Buffer.from('x')), Buffer.from('x'))).status).toBe(404)
  for (const caller of [one, admin, bearer(key)]) expect((await get(caller, sha256)).status).toBe(200)
  expect((await (await workspace.request(bearer(key), ROOT)).json()) as object).toMatchObject({ backups: [{ sha256 }] })
  // Two gateways with the same content have a file each.
  expect((await put(two, sha256, content)).status).toBe(201)
  expect((await workspace.request(two, `${ROOT}/${sha256}`, { method: 'DELETE' })).status).toBe(200)
  expect((await get(one, sha256)).status).toBe(200)
})

test.each(['..%2f..%2fauth-secret', 'x'.repeat(64), `${'a'.repeat(64)}.json`, 'A'.repeat(64)])(
  'no name but a SHA-256 reaches the disk: %s',
  async (name) => {
    expect((await get(one, name)).status).toBe(404)
    expect((await put(one, name, Buffer.from('x'))).status).toBe(404)
  },
)

test('one file too many and one byte too many are refused, and leave nothing', async () => {
  const blobs = createBlobs(join(workspace.home, 'small'), { bytes: 10, perGateway: 2 })
  const id = newId()
  const send = (text: string) =>
    blobs.put(id, shaOf(Buffer.from(text)), shaOf(Buffer.from('key')), new Blob([text]).stream())
  await expect(send('12345678901')).rejects.toMatchObject({ status: 413 })
  await send('1234567890')
  await send('two')
  await expect(send('three')).rejects.toMatchObject({ status: 409 })
  expect((await blobs.list(id)).map(({ size }) => size).sort()).toEqual([10, 3])
  expect((await readdir(join(workspace.home, 'small/gateway-backups', id))).length).toBe(4)
})

test('of what waited in a backup, the server says what it has had since; refused is not had', async () => {
  const gateway = await workspace.gateway('three')
  const writer = workspace.writer(gateway)
  const task = (title: string | null) => insert('tasks', { tenant_id: workspace.tenantId, title })
  const sent = [writer.mutation({ patches: [task('sent')] }), writer.mutation({ patches: [task(null)] })]
  const { body } = await writer.send(sent)
  expect(body.results?.map(({ outcome }) => outcome)).toEqual(['applied', 'rejected'])
  const [had, refused] = sent.map((mutation) => String(mutation['mutation_id']))
  const foreign = workspace.writer(workspace.owner).mutation({ patches: [task('of somebody else')] })
  await workspace.writer(workspace.owner).send([foreign])
  const answer = await workspace.request(gateway, '/v1/gateways/takeover', {
    method: 'POST',
    body: JSON.stringify({
      bearer_hash: newGatewayIdentity().register.bearer_hash,
      mutations: [had, refused, newId(), foreign['mutation_id']],
    }),
  })
  expect(((await answer.json()) as { taken: string[] }).taken).toEqual([had])
})

test('who holds the recovery key takes the gateway’s place: the former one is nobody from then on', async () => {
  const key = recoveryToken()
  const content = randomBytes(100)
  await put(two, shaOf(content), content, key)
  const identity = newGatewayIdentity()
  const ask = (caller: Caller) =>
    workspace.request(caller, '/v1/gateways/takeover', {
      method: 'POST',
      body: JSON.stringify({ bearer_hash: identity.register.bearer_hash, mutations: [newId()] }),
    })
  const session = async (caller: Caller) =>
    ((await (await workspace.request(caller, '/v1/session')).json()) as { principal: unknown }).principal
  expect((await ask(bearer(recoveryToken()))).status).toBe(404)
  expect((await ask(await workspace.join('admin'))).status).toBe(404)
  expect(await session(two)).toMatchObject({ kind: 'gateway' })
  for (const _twice of [1, 2]) {
    const answer = await ask(bearer(key))
    expect(await answer.json()).toEqual({ gateway_id: two.principal.gateway_id, slug: 'two', taken: [] })
  }
  expect(await session(two)).toBeNull()
  expect(await session(bearer(identity.token))).toMatchObject({ gateway_id: two.principal.gateway_id })
  await workspace.request(workspace.owner, `/v1/gateways/${two.principal.gateway_id}`, { method: 'DELETE' })
  expect((await ask(bearer(key))).status).toBe(410)
})
