/**
 * A secret on its way from a person's replica to an agent, in the running system: its plain text is in the agent's file and nowhere else. Not in the database,
 * its files and log, the server's folder, a replica, an answer, a log, an event, nor in the arguments of any process.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { addSecret, type NewSecret, replaceSecret, revokeSecret } from '@hq/client/src/features/secrets/set-secret.ts'
import { readEnvFile } from '@hq/gateway-node/secrets/env-file.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { insert } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from './support/browser.ts'
import { type Live, openLive } from './support/replica.ts'
import { type Gateway, provision, type Row, type System, startSystem } from './support/system.ts'

const FIRST = 'PLAINTEXT-first-0b9f4c1d77'
const SECOND = 'PLAINTEXT-second-5e2a8810c3'

let system: System
let one: Gateway
let two: Gateway
let person: Live
let agent: string

beforeAll(async () => {
  system = await startSystem()
  one = await system.gateway('one')
  two = await system.gateway('two')
  agent = await provision(system, one, 'wanda')
  person = await openLive(system.server.url, system.owner)
})
afterAll(async () => {
  await person?.close()
  await system?.stop()
})

const fileOf = (gateway: Gateway): Promise<Map<string, string>> => readEnvFile(gateway.home, 'wanda')
const publicKey = async (gateway: Gateway): Promise<string> => {
  const [row] = await person.rows<{ public_key: string }>('select public_key from gateways where id = $1', [gateway.id])
  return row?.public_key ?? ''
}

/** Every file below a folder, as bytes. */
async function* filesUnder(folder: string): AsyncGenerator<[string, string]> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const text = await readFile(path, 'latin1').catch(() => '')
    yield [path, text]
  }
}

/** Where any of these stands, the agent's own file aside. */
async function places(values: readonly string[]): Promise<{ found: string[]; looked: string[] }> {
  const found: string[] = []
  const looked: string[] = []
  const look = (where: string, text: string): void => {
    looked.push(where)
    if (values.some((value) => text.includes(value))) found.push(where)
  }
  for (const folder of [system.server.home, one.home, two.home])
    for await (const [path, text] of filesUnder(folder)) if (!path.endsWith('wanda.env')) look(path, text)
  look('output of one', one.text())
  look('output of two', two.text())
  const tables = await system.rows<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`,
  )
  for (const { name } of tables) {
    const rows = await system.rows<Row>(`select to_jsonb(t)::text as text from "${name}" t`)
    look(`table ${name}`, rows.map(({ text }) => String(text)).join('\n'))
  }
  const [data] = await system.rows<{ folder: string }>(
    `select setting as folder from pg_settings where name = 'data_directory'`,
  )
  await system.rows('checkpoint')
  for await (const [path, text] of filesUnder(data?.folder ?? '')) look(path, text)
  for (const name of ['secrets', 'audit_log', 'agent_run_events', 'command_output', 'sealed_secrets'])
    look(`replica ${name}`, JSON.stringify(await person.rows(`select * from ${name}`)))
  look('outbox', JSON.stringify(await person.replica.outbox()))
  for (const pid of await readdir('/proc').catch(() => []))
    if (/^\d+$/.test(pid)) look(`argv ${pid}`, await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => ''))
  return { found, looked }
}

test('set, replaced and revoked by a person: the agent’s file follows, and the plain text is nowhere else', async () => {
  const secret: NewSecret = {
    id: newId(),
    tenant_id: system.tenantId,
    gateway_id: one.id,
    agent_id: agent,
    category: 'user',
    key: 'GITHUB_TOKEN',
    name: 'GitHub',
    note: null,
    created_by: system.owner.principal.person_id,
  }
  const key = await publicKey(one)
  await person.replica.writeAll(await addSecret(secret, newId(), key, FIRST))
  expect((await person.rows('select * from sealed_secrets')).length).toBeLessThanOrEqual(1)
  const became = (is: (row: Row) => boolean): Promise<Row> =>
    eventually('the state of the secret on the person’s replica', async () => {
      const [row] = await person.rows<Row>('select * from secrets where id = $1', [secret.id])
      return row && is(row) ? row : undefined
    })
  await became((row) => row['sync_status'] === 'active' && row['synced_version'] === 1)
  expect(await fileOf(one)).toEqual(new Map([['GITHUB_TOKEN', FIRST]]))

  await person.replica.writeAll(await replaceSecret({ ...secret, version: 1 }, newId(), key, SECOND))
  await became((row) => row['synced_version'] === 2)
  expect(await fileOf(one)).toEqual(new Map([['GITHUB_TOKEN', SECOND]]))

  // Settled, the person's replica has no ciphertext either; the other gateway never had any.
  await eventually('an empty outbox', async () => (await person.replica.outbox()).length === 0 || undefined)
  expect(await person.rows('select * from sealed_secrets')).toEqual([])
  expect((await fileOf(two)).size).toBe(0)
  const { found, looked } = await places([FIRST, SECOND])
  expect(found).toEqual([])
  for (const where of ['table sealed_secrets', 'table audit_log', 'output of one', 'outbox', `argv ${process.pid}`])
    expect(looked).toContain(where)
  expect(looked.some((path) => path.includes('pg_wal'))).toBe(true)
  expect(looked.some((path) => path.startsWith(join(one.home, 'replica')))).toBe(true)
  // The search itself finds what is there.
  const sealed = (await places(['hq.v1.'])).found
  for (const where of ['table sealed_secrets', join(one.home, 'replica'), 'pg_wal'])
    expect(
      sealed.some((path) => path.includes(where)),
      where,
    ).toBe(true)

  await person.replica.writeAll(revokeSecret(secret.id))
  await became((row) => row['sync_status'] === 'revoked')
  expect((await fileOf(one)).size).toBe(0)
  const left = await system.rows(`select id from sealed_secrets where secret_id = $1 and sealed <> ''`, [secret.id])
  expect(left).toEqual([])
})

test('what is not sealed is refused, and nobody but its gateway reads a sealed value', async () => {
  const refused = await system.writer().push([
    insert('sealed_secrets', {
      tenant_id: system.tenantId,
      gateway_id: one.id,
      secret_id: newId(),
      version: 1,
      sealed: FIRST,
      public_key: 'x',
    }),
  ])
  expect(JSON.stringify(refused)).toContain('not sealed')
  const answer = await system.request(
    system.owner,
    `/v1/shape?table=sealed_secrets&replica=full&replica_id=${newId()}&offset=-1`,
  )
  expect(answer.status).toBeGreaterThanOrEqual(400)
  expect(await system.rows(`select id from sealed_secrets where sealed like 'PLAINTEXT%'`)).toEqual([])
})
