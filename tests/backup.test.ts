/**
 * A gateway is lost with its machine and comes back from its backup under another host name: the same gateway, with its agents, their files and secrets, and with what
 * waited to be sent, once. The former process, should it still run, is nobody from then on.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { addSecret } from '@hq/client/src/features/secrets/set-secret.ts'
import { formatRecoveryKey, parseRecoveryKey } from '@hq/gateway-node/backup/recovery-key.ts'
import { readEnvFile } from '@hq/gateway-node/secrets/env-file.ts'
import { writeArchive } from '@hq/shared/backup/archive.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { insert } from '@hq/sync-server/testing/workspace.ts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openLive } from './support/replica.ts'
import {
  type Gateway,
  gatewayIn,
  isEnded,
  provision,
  type Row,
  type System,
  startSystem,
  taskPatch,
} from './support/system.ts'

const run = promisify(execFile)
const RESTORE = fileURLToPath(new URL('../gateway-node/backup/main.ts', import.meta.url))
const HQ = fileURLToPath(new URL('../gateway-node/cli/hq.ts', import.meta.url))
const PLAIN = 'PLAINTEXT-a-secret-of-wanda-71c0'

let system: System
let folder: string
let gateways: Gateway[]

beforeEach(async () => {
  system = await startSystem()
  folder = await mkdtemp(join(tmpdir(), 'hq-backup-'))
  gateways = []
})
afterEach(async () => {
  await Promise.all(gateways.map((gateway) => gateway.kill()))
  await system?.stop()
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

const base = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent' }

async function recoveryKeyOf(gateway: Gateway): Promise<string> {
  const { stdout } = await run(process.execPath, [HQ, 'backup', 'key'], {
    env: { ...base, HQ_GATEWAY_HOME: gateway.home },
  })
  expect(stdout).toMatch(/^hqrec1-\S+\n$/)
  return stdout.trim()
}

async function backUp(gateway: Gateway): Promise<Row> {
  const command = newId()
  const { tenantId } = system
  await system
    .writer()
    .apply([insert('agent_commands', { tenant_id: tenantId, gateway_id: gateway.id, action: 'backup' }, command)])
  const row = await system.rowWhen('agent_commands', command, isEnded)
  expect(row['error_message']).toBeNull()
  const id = (row['result'] as Row)['backup_id']
  return system.rowWhen('backups', String(id), ({ status }) => status === 'done')
}

/** The restore command, as a person types it. What it said. */
async function restore(home: string, key: string, file?: string): Promise<{ code: number; said: string }> {
  const keyFile = join(folder, 'key')
  await writeFile(keyFile, key, { mode: 0o600 })
  const env = { ...base, HQ_GATEWAY_HOME: home, HQ_RECOVERY_KEY_FILE: keyFile, HQ_SERVER_URL: system.server.url }
  return run(process.execPath, [RESTORE, ...(file ? [file] : [])], { env }).then(
    ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      said: error.stdout + error.stderr,
    }),
  )
}

function startAt(home: string, slug = 'elsewhere'): Gateway {
  const gateway = gatewayIn(home, slug, { HQ_SERVER_URL: system.server.url, HQ_HOSTNAME: 'another-machine' })
  gateways.push(gateway)
  return gateway
}

async function works(agent: string, title: string): Promise<void> {
  const task = newId()
  await system.writer().apply([taskPatch(system, title, agent, task)])
  await system.when(`${title}: the agent delivers`, async () => {
    const rows = await system.rows(`select id from entity_links where owner_id = $1 and review_status = 'submitted'`, [
      task,
    ])
    return rows.length > 0
  })
}

async function secretFor(gateway: Gateway, agent: string): Promise<void> {
  const person = await openLive(system.server.url, system.owner)
  try {
    const [row] = await person.rows<{ public_key: string }>('select public_key from gateways where id = $1', [
      gateway.id,
    ])
    const secret = {
      id: newId(),
      tenant_id: system.tenantId,
      gateway_id: gateway.id,
      agent_id: agent,
      category: 'user' as const,
      key: 'GITHUB_TOKEN',
      name: 'GitHub',
      note: null,
      created_by: system.owner.principal.person_id,
    }
    await person.replica.writeAll(await addSecret(secret, newId(), row?.public_key ?? '', PLAIN))
    await system.rowWhen('secrets', secret.id, ({ sync_status }) => sync_status === 'active')
  } finally {
    await person.close()
  }
}

const git = async (gitdir: string, ...args: string[]): Promise<string> =>
  (await run('git', ['--git-dir', gitdir, ...args])).stdout.trim()

test('destroyed and restored elsewhere: agents work on, files and secrets are there, what waited is sent once', async () => {
  const proxy = await system.proxy()
  const one = await system.gateway('one', { url: proxy.url })
  const agent = await provision(system, one, 'wanda')
  await secretFor(one, agent)
  await works(agent, 'Before')
  await writeFile(join(one.home, 'agents/wanda/NOTES.md'), 'written, and not committed\n')
  const key = await recoveryKeyOf(one)
  const row = await backUp(one)
  expect(row).toMatchObject({ reason: 'demand', key_id: expect.stringMatching(/^[0-9a-f]{16}$/) })
  expect(row['contents']).toMatchObject({ agents: 1 })
  const refs = (gateway: string) => git(join(gateway, 'repo.git'), 'for-each-ref')
  const before = await refs(one.home)
  expect(before).toMatch(/refs\/heads\/\S+\/wanda$/m)

  // Neither the key nor anything of what is in a backup is at the server, in a row, or in what the gateway said.
  const blob = join(system.server.home, 'server/blobs/gateway-backups', one.id, String(row['sha256']))
  const bytes = await readFile(blob, 'latin1')
  for (const text of [PLAIN, key, 'repo.bundle', 'credentials.json']) expect(bytes).not.toContain(text)
  expect(one.text()).not.toContain(key)
  const rows =
    JSON.stringify(await system.rows('select * from backups')) +
    JSON.stringify(await system.rows('select * from agent_commands'))
  expect(rows).not.toContain(key.slice(7, 50))

  await one.kill()
  const credentials = JSON.parse(await readFile(join(one.home, 'credentials.json'), 'utf8')) as { token: string }
  await rm(one.home, { recursive: true, force: true })
  const home = join(folder, 'restored')
  const { code, said } = await restore(home, key)
  expect(said).toContain('This machine is the gateway “one”')
  expect(code).toBe(0)
  expect(said).not.toContain(key)
  expect(await readFile(join(home, 'agents/wanda/NOTES.md'), 'utf8')).toBe('written, and not committed\n')
  await git(join(home, 'repo.git'), 'fsck', '--full', '--strict')
  expect(await refs(home)).toBe(before)
  expect(await readEnvFile(home, 'wanda')).toEqual(new Map([['GITHUB_TOKEN', PLAIN]]))
  for (const name of ['agents/wanda.env', 'credentials.json', 'recovery-key'])
    expect((await stat(join(home, name))).mode & 0o777, name).toBe(0o600)
  expect(await readdir(home)).not.toContain('restoring')

  const restored = startAt(home)
  await restored.start()
  expect(restored.id).toBe(String(row['gateway_id']))
  await works(agent, 'After')
  await system.rowWhen('gateways', restored.id, ({ meta }) => (meta as Row)['hostname'] === 'another-machine')
  // Still from its own file, whatever the rows say.
  expect((await readEnvFile(home, 'wanda')).get('GITHUB_TOKEN')).toBe(PLAIN)
  expect(await system.rows(`select id from secrets where sync_status <> 'active'`)).toEqual([])
  expect((await system.rows('select id from gateways where deleted_at is null')).length).toBe(1)
  const session = await system.request({ headers: { authorization: `Bearer ${credentials.token}` } }, '/v1/session')
  expect(((await session.json()) as { principal: unknown }).principal).toBeNull()
  // And it can be backed up again, with the same key.
  expect((await backUp(restored))['key_id']).toBe(row['key_id'])
})

/** Tasks that this gateway has said to have written. */
const acknowledged = (gateway: Gateway): string[] =>
  gateway.process.lines.flatMap((line) => (line.message === 'acknowledged' ? (line['made'] as string[]) : []))

const created = async (ids: readonly string[]): Promise<Map<string, number>> => {
  const rows = await system.rows<{ entity_id: string; n: number }>(
    `select entity_id, count(*)::int as n from audit_log where entity_id = any($1) and action = 'created' group by 1`,
    [ids],
  )
  return new Map(rows.map(({ entity_id, n }) => [entity_id, n]))
}

test('a former process that still runs is nobody from then on, and nothing of it counts twice', async () => {
  const one = await system.gateway('one', { env: { HQ_TEST_WRITER: 'former' } })
  await system.when('it writes', async () => acknowledged(one).length > 30)
  const key = await recoveryKeyOf(one)
  await backUp(one)
  const home = join(folder, 'restored')
  expect((await restore(home, key)).code).toBe(0)
  const restored = startAt(home)
  await restored.start()
  await one.process.line((line) => line['connection'] === 'unauthorized', 'that it is nobody any more')
  // It goes on by itself, and reaches nobody.
  const before = acknowledged(one).length
  await system.when('the former one writes on', async () => acknowledged(one).length > before + 10)
  const late = acknowledged(one).slice(before)
  const agent = await provision(system, restored, 'wanda')
  await works(agent, 'After')
  expect((await created(late)).size).toBe(0)
  expect([...(await created(acknowledged(one))).values()].filter((n) => n !== 1)).toEqual([])
})

test('what waited when the backup was made is sent once; a damaged file and another key touch nothing', async () => {
  const one = await system.gateway('one', { env: { HQ_TEST_WRITER: 'waiting' } })
  const key = await recoveryKeyOf(one)
  await system.when('it writes', async () => acknowledged(one).length > 30)
  const settled = newId()
  await system.writer().apply([taskPatch(system, 'settled', null, settled)])
  await system.server.kill()
  const before = acknowledged(one).length
  await system.when('it writes while the server is away', async () => acknowledged(one).length > before + 30)
  await one.kill()
  const ids = acknowledged(one)

  // The same files as the gateway's own backup takes, without a server to send them to.
  const file = join(folder, 'one.hqbackup')
  const outbox = await readFile(join(one.home, 'replica.outbox.jsonl'), 'utf8')
  const whole = outbox.slice(0, outbox.lastIndexOf('\n') + 1)
  const lines = whole.split('\n').slice(0, -1)
  expect(lines.length).toBeGreaterThan(20)
  // One that the server has had since, and that somebody has changed again: making it once more would undo that.
  const [had] = await system.rows<{ mutation_id: string }>(
    'select mutation_id from taken_mutations order by seq desc limit 1',
  )
  const stale = { table: 'tasks', id: settled, op: 'update', set: { title: 'stale' }, base: {}, local: {} }
  const own = lines.findIndex((line) => line.includes(had?.mutation_id ?? 'none'))
  if (own !== -1) lines.splice(own, 1)
  lines.unshift(
    JSON.stringify({ ...(JSON.parse(lines[0] ?? '') as object), mutation_id: had?.mutation_id, patches: [stale] }),
  )
  const credentials = await readFile(join(one.home, 'credentials.json'), 'utf8')
  const { gateway_id, tenant_id, url } = JSON.parse(credentials) as Record<string, string>
  const facts = { hostname: 'lost', version: 'test', agents: [], troubles: [] }
  const manifest = { format: 1, at: new Date().toISOString(), gateway_id, tenant_id, slug: 'one', url, ...facts }
  await git(join(one.home, 'repo.git'), 'bundle', 'create', '--quiet', join(folder, 'repo.bundle'), '--all')
  await writeArchive(
    file,
    [
      { name: 'manifest.json', content: JSON.stringify(manifest) },
      { name: 'repo.bundle', content: await readFile(join(folder, 'repo.bundle')) },
      { name: 'credentials.json', content: credentials },
      { name: 'recovery-key', content: `${key}\n` },
      { name: 'outbox.jsonl', content: lines.map((line) => `${line}\n`).join('') },
    ],
    { kind: 'gateway', secret: { key: parseRecoveryKey(key) }, at: manifest.at },
  )
  await system.server.start()

  // A damaged file, and another key, touch nothing.
  const home = join(folder, 'restored')
  const bytes = await readFile(file)
  await writeFile(join(folder, 'cut.hqbackup'), bytes.subarray(0, bytes.length - 1))
  const cut = await restore(home, key, join(folder, 'cut.hqbackup'))
  expect(cut).toMatchObject({ code: 2, said: expect.stringContaining('damaged') })
  const other = await restore(home, formatRecoveryKey(randomBytes(32)), file)
  expect(other).toMatchObject({ code: 2, said: expect.stringContaining('another key') })
  expect(await readdir(home)).toEqual(['restoring'])
  expect(await readdir(join(home, 'restoring'))).toEqual([])
  const session = await system.request(
    { headers: { authorization: `Bearer ${(JSON.parse(credentials) as { token: string }).token}` } },
    '/v1/session',
  )
  expect(((await session.json()) as { principal: unknown }).principal).not.toBeNull()

  const { code, said } = await restore(home, key, file)
  expect(said).toMatch(/changes are sent when it starts/)
  expect(code).toBe(0)
  const restored = startAt(home)
  await restored.start()
  const counted = async (): Promise<boolean> => (await created(ids)).size === ids.length
  await system.when('all that it said to have written is there', counted)
  expect([...(await created(ids)).values()].filter((n) => n !== 1)).toEqual([])
  await system.when('nothing waits any more', async () =>
    (await restored.written()).every(({ table }) => table === 'gateways'),
  )
  expect(await system.rows('select title from tasks where id = $1', [settled])).toEqual([{ title: 'settled' }])
  await restored.end()
  // Not into a folder that is a gateway.
  expect(await restore(home, key, file)).toMatchObject({
    code: 2,
    said: expect.stringContaining('is a gateway already'),
  })

  // Its credentials have ended with the first time, and the server has no backup of this key: only an admin could help.
  const again = await restore(join(folder, 'again'), key, file)
  expect(again).toMatchObject({ code: 2, said: expect.stringContaining('refused') })
})

test('stopped in order, it leaves one more backup and says so before it goes', async () => {
  const one = await system.gateway('one', { env: { HQ_BACKUP_ON_STOP: 'on' } })
  await provision(system, one, 'wanda')
  await one.end()
  const rows = await system.rows<Row>('select status, reason, contents, error_message from backups')
  expect(rows).toMatchObject([{ status: 'done', reason: 'shutdown', error_message: null, contents: { agents: 1 } }])
})

test('an agent whose folder is gone gets it back by a command', async () => {
  const one = await system.gateway('one')
  await provision(system, one, 'wanda')
  await writeFile(join(one.home, 'agents/wanda/NOTES.md'), 'once written\n')
  await backUp(one)
  await one.kill()
  for (const name of ['agents/wanda', 'agents/wanda.json', 'repo.git'])
    await rm(join(one.home, name), { recursive: true })
  await one.start()
  const command = newId()
  const row = { tenant_id: system.tenantId, gateway_id: one.id, action: 'restore' }
  await system.writer().apply([insert('agent_commands', row, command)])
  const ended = await system.rowWhen('agent_commands', command, isEnded)
  expect(ended).toMatchObject({ status: 'done', error_message: null, result: { restored: ['wanda'] } })
  expect(await readFile(join(one.home, 'agents/wanda/NOTES.md'), 'utf8')).toBe('once written\n')
})
