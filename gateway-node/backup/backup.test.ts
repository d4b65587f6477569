/** Backups of a gateway with real workspaces and a real replica, against a server that only keeps files. What comes back is tests/backup.test.ts. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { extractArchive } from '@hq/shared/backup/archive.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { makeIdentity } from '../registration-identity.ts'
import { createTestGateway, type TestGateway } from '../testing/context.ts'
import { createSystemGit } from '../workspaces/system-git.ts'
import { failUnfinished, takeBackup } from './backup.ts'
import { bringBack } from './bring-back.ts'
import {
  ensureRecoveryKey,
  formatRecoveryKey,
  parseRecoveryKey,
  readRecoveryKey,
  recoveryKeyFile,
} from './recovery-key.ts'
import { createBackups, readInterval } from './service.ts'

const DAY = 24 * 60 * 60_000

interface Store {
  readonly files: Map<string, Buffer>
  readonly headers: IncomingMessage['headers'][]
  /** Answers to the next uploads, instead of keeping them. */
  readonly refuse: number[]
  readonly url: string
}

async function startStore(): Promise<Store> {
  const files = new Map<string, Buffer>()
  const headers: IncomingMessage['headers'][] = []
  const refuse: number[] = []
  const server = createServer(async (request, response) => {
    const sha256 = /gateway-backups\/([0-9a-f]{64})$/.exec(request.url ?? '')?.[1]
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const answer = (status: number, body: object): void => void response.writeHead(status).end(JSON.stringify(body))
    if (request.method === 'GET' && sha256)
      return void response.writeHead(files.has(sha256) ? 200 : 404).end(files.get(sha256))
    if (request.method === 'GET')
      return answer(200, {
        backups: [...files.keys()].map((name) => ({
          gateway_id: '00000000-0000-4000-8000-000000000000',
          sha256: name,
          size: 1,
          at: '',
        })),
      })
    if (!sha256) return answer(404, {})
    if (request.method === 'DELETE')
      return answer(files.delete(sha256) ? 200 : 404, { code: 'not_found', message: 'no' })
    headers.push(request.headers)
    const status = refuse.shift()
    if (status) return answer(status, { code: 'busy', message: 'Not now.' })
    files.set(sha256, Buffer.concat(parts))
    answer(201, {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  })
  return { files, headers, refuse, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

async function gatewayAt(url: string): Promise<{ gateway: TestGateway; token: string }> {
  const gateway = await createTestGateway()
  const { gatewayId, tenantId, home } = gateway.context
  // The replica of these tests has no outbox; what a real one has in it is tested with a real server.
  await gateway.replica.query('create schema if not exists sync')
  await gateway.replica.query('create table if not exists sync.entries (seq bigint, note text)')
  await gateway.replica.query('delete from sync.entries')
  const identity = makeIdentity()
  const credentials = { url, gateway_id: gatewayId, tenant_id: tenantId, slug: 'local', ...identity }
  await writeFile(join(home, 'credentials.json'), JSON.stringify(credentials), { mode: 0o600 })
  return { gateway, token: identity.token }
}

const signal = new AbortController().signal
const rows = (gateway: TestGateway) =>
  gateway.replica.query<{
    id: string
    status: string
    sha256: string | null
    error_message: string | null
    reason: string
  }>('select * from backups order by created_at, id')
async function backUp(gateway: TestGateway): Promise<void> {
  const { commit } = await takeBackup(gateway.context, { reason: 'demand', signal })
  await gateway.replica.write(commit)
}

test('it has what the gateway needs, opens with the recovery key, and leaves no plain text behind', async () => {
  const store = await startStore()
  const { gateway, token } = await gatewayAt(store.url)
  const { home } = gateway.context
  await mkdir(join(home, 'openclaw/state/agents/wanda/sessions'), { recursive: true })
  await writeFile(join(home, 'openclaw/state/agents/wanda/sessions/one.jsonl'), '{"a":1}\n')
  await writeFile(join(home, 'agents/wanda.env'), `TOKEN='x'\n`, { mode: 0o600 })
  await gateway.addAgent('wanda')
  await gateway.replica.query(`insert into sync.entries values (1, 'waits')`)
  await backUp(gateway)
  const [row] = await rows(gateway)
  expect(row).toMatchObject({ status: 'done', reason: 'demand', error_message: null })
  const file = store.files.get(row?.sha256 ?? '')
  if (!file) throw new Error('the row names no file')
  expect(createHash('sha256').update(file).digest('hex')).toBe(row?.sha256)
  expect(store.headers[0]?.authorization).toBe(`Bearer ${token}`)
  const key = await readRecoveryKey(home)
  if (!key) throw new Error('there is no recovery key')
  expect((await stat(recoveryKeyFile(home))).mode & 0o777).toBe(0o600)
  expect(JSON.stringify(store.headers)).not.toContain(formatRecoveryKey(key).slice(7, 40))
  const into = join(home, 'opened')
  async function* source(): AsyncGenerator<Buffer> {
    yield file as Buffer
  }
  await extractArchive(source(), { kind: 'gateway', secret: { key } }, into)
  const names = (await readdir(into, { recursive: true })).sort()
  for (const name of [
    'manifest.json',
    'credentials.json',
    'recovery-key',
    'repo.bundle',
    'outbox.jsonl',
    'agents/wanda.env',
  ])
    expect(names).toContain(name)
  expect(names).toContain('openclaw/state/agents/wanda/sessions/one.jsonl')
  expect(await readFile(join(into, 'outbox.jsonl'), 'utf8')).toBe('{"seq": 1, "note": "waits"}\n')
  expect(await readdir(home)).not.toContain('backup')
  expect(JSON.stringify(gateway.log)).not.toContain(formatRecoveryKey(key))
})

test('an agent whose folder and branch are gone gets them back; what is here stays as it is', async () => {
  const store = await startStore()
  const { gateway } = await gatewayAt(store.url)
  const { context } = gateway
  const [wanda, otto] = [await gateway.addAgent('wanda'), await gateway.addAgent('otto')]
  for (const [agentId, slug] of [
    [wanda, 'wanda'],
    [otto, 'otto'],
  ] as const) {
    const owner = { name: 'Ada', preferredName: 'Ada', timezone: 'UTC' }
    const facts = {
      description: '',
      emoji: '',
      team: null,
      workspaceSlug: 'acme',
      template: 'writer',
      domains: [],
      capabilities: [],
    }
    await context.workspaces.createBranch({ agentId, slug, name: slug, owner, ...facts })
    await context.workspaces.createWorktree(slug)
    await writeFile(join(context.workspaces.folder(slug), 'NOTES.md'), `of ${slug}\n`)
  }
  await backUp(gateway)
  await context.workspaces.remove('wanda')
  await writeFile(join(context.workspaces.folder('otto'), 'NOTES.md'), 'newer\n')
  await gateway.replica.write((tx) => tx.query('delete from agent_files where agent_id = $1', [wanda]))
  const notes = (slug: string) => readFile(join(context.workspaces.folder(slug), 'NOTES.md'), 'utf8')
  await expect(notes('wanda')).rejects.toThrow(/ENOENT/)
  const back = await bringBack(context, { sha256: undefined, signal })
  expect(back.restored).toEqual(['wanda'])
  expect([await notes('wanda'), await notes('otto')]).toEqual(['of wanda\n', 'newer\n'])
  const git = createSystemGit()
  const gitdir = join(context.home, 'repo.git')
  expect(await git.run(['show', `${back.archive}/otto:NOTES.md`], { cwd: gitdir })).toBe('of otto\n')
  await git.run(['fsck', '--full', '--strict'], { cwd: gitdir })
  expect((await bringBack(context, { sha256: undefined, signal })).restored).toEqual([])
  await expect(bringBack(context, { sha256: 'b'.repeat(64), signal })).rejects.toThrow(/no such backup/)
  expect(await readdir(context.home)).not.toContain('bring-back')
})

test('three are kept, none older than a week but the newest; rows of dropped ones say so', async () => {
  const store = await startStore()
  const { gateway } = await gatewayAt(store.url)
  for (let n = 0; n < 5; n++) {
    await backUp(gateway)
    gateway.advance(60_000)
  }
  expect((await rows(gateway)).map(({ status }) => status)).toEqual(['removed', 'removed', 'done', 'done', 'done'])
  expect(store.files.size).toBe(3)
  gateway.advance(8 * DAY)
  await backUp(gateway)
  expect((await rows(gateway)).map(({ status }) => status)).toEqual([...Array(5).fill('removed'), 'done'])
  expect(store.files.size).toBe(1)
})

test('one that fails says why and leaves the others; one that never ended is told to have failed', async () => {
  const store = await startStore()
  const { gateway } = await gatewayAt(store.url)
  await backUp(gateway)
  store.refuse.push(503)
  await expect(backUp(gateway)).rejects.toThrow(/could not do it now: Not now/)
  store.refuse.push(413)
  await expect(backUp(gateway)).rejects.toThrow(/refused: Not now/)
  const stopped = AbortSignal.abort(new Error('stop'))
  await expect(takeBackup(gateway.context, { reason: 'demand', signal: stopped })).rejects.toThrow()
  await gateway.replica.write((tx) =>
    tx.query(
      `insert into backups (id, tenant_id, gateway_id, reason, status) values ($1, $2, $3, 'schedule', 'running')`,
      [gateway.context.newId(), gateway.context.tenantId, gateway.context.gatewayId],
    ),
  )
  await failUnfinished(gateway.context)
  expect((await rows(gateway)).map(({ status }) => status)).toEqual(['done', 'failed', 'failed', 'failed', 'failed'])
  expect((await rows(gateway)).slice(1).every(({ error_message }) => error_message)).toBe(true)
  expect(store.files.size).toBe(1)
  expect(await readdir(gateway.context.home)).not.toContain('backup')
})

test('at a stop one more is made, where that is switched on, and a server that is away does not hold it up', async () => {
  const store = await startStore()
  const { gateway } = await gatewayAt(store.url)
  const stopWith = async (env: Record<string, string>): Promise<void> => {
    const service = createBackups({ ...gateway.context, env })
    await service.start()
    await service.stop()
    await service.stop()
  }
  await stopWith({})
  expect(await rows(gateway)).toEqual([])
  await stopWith({ HQ_BACKUP_ON_STOP: 'on' })
  expect(await rows(gateway)).toMatchObject([{ status: 'done', reason: 'shutdown' }])
  store.refuse.push(503)
  await stopWith({ HQ_BACKUP_ON_STOP: 'on' })
  expect((await rows(gateway)).map(({ status }) => status)).toEqual(['done', 'failed'])
})

test('by itself: when the newest is older than the interval, and not before', async () => {
  const store = await startStore()
  const { gateway } = await gatewayAt(store.url)
  const online = { ...gateway.replica.status(), connection: 'online' as const }
  let looks = 0
  const status = () => {
    looks++
    return online
  }
  const replica = Object.assign(Object.create(gateway.replica), { status }) as TestGateway['replica']
  const service = createBackups(
    { ...gateway.context, replica, env: { HQ_BACKUP_EVERY: '6h' } },
    { firstMs: 5, lookMs: 5 },
  )
  await service.start()
  onTestFinished(() => service.stop())
  const done = async (count: number): Promise<void> =>
    vi.waitFor(
      async () => {
        expect(
          (await rows(gateway)).filter(({ status, reason }) => status === 'done' && reason === 'schedule').length,
        ).toBe(count)
      },
      { timeout: 20_000, interval: 20 },
    )
  await done(1)
  gateway.advance(5 * 60 * 60_000)
  const before = looks
  await vi.waitFor(() => expect(looks).toBeGreaterThan(before + 5), { timeout: 20_000 })
  await done(1)
  gateway.advance(2 * 60 * 60_000)
  await done(2)
})

test('intervals and recovery keys are read, and what is none is said to be none', async () => {
  expect(['90m', '6h', '1d', 'off', undefined, ' 2 H '].map(readInterval)).toEqual([
    5_400_000,
    21_600_000,
    86_400_000,
    undefined,
    86_400_000,
    7_200_000,
  ])
  for (const text of ['0h', '1w', 'soon', '-1d']) expect(() => readInterval(text)).toThrow(/HQ_BACKUP_EVERY/)
  const key = randomBytes(32)
  expect(parseRecoveryKey(` ${formatRecoveryKey(key)}\n`).equals(key)).toBe(true)
  const text = formatRecoveryKey(key)
  const slip = text.slice(0, 12) + (text[12] === 'A' ? 'B' : 'A') + text.slice(13)
  for (const wrong of ['', 'hqrec1-', slip, text.slice(0, -1)])
    expect(() => parseRecoveryKey(wrong)).toThrow(/no recovery key/)
  const { gateway } = await gatewayAt('http://127.0.0.1:1')
  const { home } = gateway.context
  for (let round = 0; round < 10; round++) {
    await rm(join(home, 'recovery-key'), { force: true })
    const keys = await Promise.all(Array.from({ length: 8 }, () => ensureRecoveryKey(home)))
    expect(new Set(keys.map(formatRecoveryKey)).size).toBe(1)
  }
  expect((await readdir(home)).filter((name) => name.startsWith('recovery-key'))).toEqual(['recovery-key'])
})
