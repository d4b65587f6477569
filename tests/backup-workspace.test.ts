/**
 * A whole workspace, backed up while it is written to, and restored in another, empty install: every table row by row, sign-in, gateways' files; replicas of the
 * old one go on with the new one, and nothing is doubled.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { exportDatabase, fingerprintOf } from '@hq/sync-server/backup/tables.ts'
import { backupWorkspace, restoreWorkspace } from '@hq/sync-server/backup/workspace.ts'
import { hashToken, newId } from '@hq/sync-server/database/ids.ts'
import { DEMO_EMAIL, fillDemo } from '@hq/sync-server/demo/fill.ts'
import { type RunningServer, startServer } from '@hq/sync-server/server.ts'
import { startTestPostgres, type TestPostgres } from '@hq/sync-server/shapes/testing/postgres.ts'
import { type Caller, newGatewayIdentity } from '@hq/sync-server/testing/workspace.ts'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Live, openLive, until } from './support/replica.ts'

const PASSWORD = 'a-good-password-1'
const PASSPHRASE = 'correct horse battery staple'

interface Install {
  readonly postgres: TestPostgres
  readonly home: string
  readonly pool: pg.Pool
}

let ends: (() => Promise<unknown>)[]
let first: Install
let second: Install
let file: string

beforeEach(async () => {
  ends = []
  first = await install()
  second = await install()
  file = join(first.home, 'workspace.hqbackup')
})
afterEach(async () => {
  for (const end of ends.reverse()) await end()
})

async function install(): Promise<Install> {
  const postgres = await startTestPostgres()
  ends.push(() => postgres.stop())
  const home = await mkdtemp(join(tmpdir(), 'hq-install-'))
  ends.push(() => rm(home, { recursive: true, force: true }))
  const pool = new pg.Pool({ connectionString: postgres.url, max: 3, options: '-c TimeZone=UTC' })
  pool.on('error', () => undefined)
  ends.push(() => pool.end())
  return { postgres, home, pool }
}

async function serve({ postgres, home }: Install, port = 0): Promise<RunningServer> {
  const server = await startServer({ databaseUrl: postgres.url, home, port, appFolder: home })
  ends.push(() => server.stop())
  return server
}

async function signIn(url: string): Promise<Caller> {
  const answer = await fetch(`${url}/api/auth/sign-in/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: DEMO_EMAIL, password: PASSWORD }),
  })
  expect(answer.status).toBe(200)
  const cookie = answer.headers.getSetCookie().map((line) => line.split(';')[0])
  return callerOf(url, { cookie: cookie.join('; ') })
}

async function callerOf(url: string, headers: Record<string, string>): Promise<Caller> {
  const session = (await (await fetch(`${url}/v1/session`, { headers })).json()) as Pick<Caller, 'principal'>
  expect(session.principal).not.toBeNull()
  return { headers, principal: session.principal }
}

async function filled(server: RunningServer): Promise<{ gateway: Caller; blob: string }> {
  const [gatewayId, identity] = [newId(), newGatewayIdentity()]
  await first.pool.query(
    `insert into gateways (id, tenant_id, gateway_id, slug, label, public_key, status) values ($1, $2, $1, 'one', 'One', $3, 'ready')`,
    [gatewayId, server.tenantId, identity.register.public_key],
  )
  await first.pool.query(
    'insert into gateway_credentials (id, gateway_id, tenant_id, token_hash) values ($1, $2, $3, $4)',
    [newId(), gatewayId, server.tenantId, identity.register.bearer_hash],
  )
  await fillDemo(first.pool, { tenantId: server.tenantId, gatewayId, password: PASSWORD, now: Date.now() })
  // What a careless copy would change: no value, the word null, quotes, line ends, other scripts, small times, large numbers.
  const odd = {
    none: null,
    text: 'null',
    quotes: `"'\\`,
    lines: 'a\r\nb\u2028c\t',
    other: 'žluťoučký 🦊 𝕳',
  }
  const exact = JSON.stringify(odd).replace('{', '{"number":12345678901234567890.123,')
  await first.pool.query(
    `insert into tasks (id, tenant_id, title, description, created_at) values ($1, $2, $3, $4, '2026-01-02 03:04:05.678901+00')`,
    [newId(), server.tenantId, odd.quotes, odd.lines + odd.other],
  )
  await first.pool.query('update gateways set meta = $1::jsonb', [exact])
  await first.pool.query(
    `insert into auth_verification (id, identifier, value, "expiresAt") values ('1', '', 'null', 'infinity')`,
  )
  const gateway = await callerOf(server.url, { authorization: `Bearer ${identity.token}` })
  const content = randomBytes(100_000)
  const blob = createHash('sha256').update(content).digest('hex')
  const put = await fetch(`${server.url}/v1/blobs/gateway-backups/${blob}`, {
    method: 'PUT',
    headers: { ...gateway.headers, 'x-hq-restore-hash': hashToken('x') },
    body: content,
  })
  expect(put.status).toBe(201)
  return { gateway, blob }
}

const tablesOf = async (pool: pg.Pool): Promise<string[]> =>
  (
    await pool.query<{ name: string }>(
      `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE' order by 1`,
    )
  ).rows.map(({ name }) => name)
const marks = async (pool: pg.Pool): Promise<Record<string, string>> => {
  const found: Record<string, string> = {}
  for (const name of await tablesOf(pool)) found[name] = await fingerprintOf(pool, name)
  return found
}
const TASKS = 'select id, title, description from tasks order by id'

test('every table row by row, in an empty install only; a damaged file and a wrong passphrase change nothing', async () => {
  const server = await serve(first)
  const { gateway, blob } = await filled(server)
  await backupWorkspace({ ...first, file, passphrase: PASSPHRASE }, { version: 'test', now: Date.now() })
  const before = await marks(first.pool)

  const bytes = await readFile(file)
  for (const text of [
    DEMO_EMAIL,
    'tables/people',
    (await readFile(join(first.home, 'server/auth-secret'), 'utf8')).trim(),
  ])
    expect(bytes.includes(text)).toBe(false)
  const into = { ...second, passphrase: PASSPHRASE }
  const broken = join(second.home, 'broken')
  await writeFile(broken, bytes.subarray(0, bytes.length - 1))
  await expect(restoreWorkspace({ ...into, file: broken })).rejects.toMatchObject({ code: 'damaged' })
  await expect(restoreWorkspace({ ...into, file, passphrase: 'something else' })).rejects.toMatchObject({
    code: 'wrong_key',
  })
  expect(await tablesOf(second.pool)).toEqual([])
  await expect(restoreWorkspace({ ...first, file, passphrase: PASSPHRASE })).rejects.toThrow(/HQ is running/)

  const { rows } = await restoreWorkspace({ ...into, file })
  expect(rows).toBeGreaterThan(500)
  const after = await marks(second.pool)
  // The epoch is another one, and migrations have a time of their own.
  const same = ({ server_state: _state, _migrations, ...others }: Record<string, string>) => others
  expect(same(after)).toEqual(same(before))
  await expect(restoreWorkspace({ ...into, file })).rejects.toMatchObject({ code: 'refused' })
  expect(await marks(second.pool)).toEqual(after)

  const restored = await serve(second)
  await signIn(restored.url)
  const answer = await fetch(`${restored.url}/v1/blobs/gateway-backups/${blob}`, { headers: gateway.headers })
  expect(
    createHash('sha256')
      .update(await answer.bytes())
      .digest('hex'),
  ).toBe(blob)
})

test('all tables are of one moment, whatever is written while they are read', async () => {
  const server = await serve(first)
  await filled(server)
  const texts: string[] = []
  for await (const { name, content } of exportDatabase(first.pool)) {
    // The first piece has been read: the moment is over.
    if (texts.length === 0)
      await first.pool.query(`insert into tasks (id, tenant_id, title) values ($1, $2, 'made meanwhile')`, [
        newId(),
        server.tenantId,
      ])
    texts.push(`${name} ${String(content)}`)
  }
  expect(texts.some((text) => text.startsWith('tables/tasks/'))).toBe(true)
  expect(texts.filter((text) => text.includes('made meanwhile'))).toEqual([])
})

test('backed up while replicas write: they go on with the restored one, and nothing is doubled', async () => {
  const server = await serve(first)
  const { gateway } = await filled(server)
  const lives: Live[] = []
  for (const caller of [await signIn(server.url), gateway]) {
    const live = await openLive(server.url, caller)
    lives.push(live)
    ends.push(() => live.close())
  }
  const made: string[] = []
  let writing = true
  const writers = lives.map(async (live, number) => {
    for (let n = 0; writing; n++) {
      made.push(await live.addTask(`of ${number}, ${n}`))
      await sleep(20)
    }
  })
  await until(lives[0] as Live, 'both write', () => made.length > 40)
  const { size } = await backupWorkspace(
    { ...first, file, passphrase: PASSPHRASE },
    { version: 'test', now: Date.now() },
  )
  expect(size).toBeGreaterThan(1000)
  const count = made.length
  await until(lives[0] as Live, 'more is written', () => made.length > count + 40)
  await server.stop()
  // The link is gone; both work on.
  const offline = made.length
  await until(lives[0] as Live, 'more is written offline', () => made.length > offline + 40)
  writing = false
  await Promise.all(writers)
  // The last word of each, which the old install never heard.
  const last = await Promise.all(lives.map((live, number) => live.addTask(`last of ${number}`)))

  await restoreWorkspace({ ...second, file, passphrase: PASSPHRASE })
  await serve(second, server.port)
  for (const live of lives) {
    await until(live, 'the replica has what the restored server has', async () => {
      if (live.replica.status().pending > 0) return false
      const { rows } = await second.pool.query(TASKS)
      return JSON.stringify(await live.rows(TASKS)) === JSON.stringify(rows)
    })
  }
  const { rows } = await second.pool.query<{ entity_id: string; n: number }>(
    `select entity_id, count(*)::int as n from audit_log where entity_id = any($1) and action = 'created' group by 1`,
    [[...made, ...last]],
  )
  expect(rows.filter(({ n }) => n !== 1)).toEqual([])
  const kept = new Set(rows.map(({ entity_id }) => entity_id))
  for (const id of last) expect(kept.has(id)).toBe(true)
  for (const live of lives) expect(live.replica.status().rejected).toBe(0)
})
