/**
 * Signing in at a model provider, whole system: begun and finished by a person's replica, done by a real gateway, used by an agent, renewed. The provider is on the loopback
 * and checks PKCE. What is secret of it is in the gateway's own file and nowhere else.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { addConnection } from '@hq/client/src/features/models/connection.ts'
import { beginSignIn, pasteSignIn, renewSignIn } from '@hq/client/src/features/models/sign-in.ts'
import { type LoopbackOauth, startLoopbackOauth } from '@hq/gateway-node/oauth/loopback-oauth.ts'
import { type Loopback, startLoopback } from '@hq/gateway-node/runtime/builtin/loopback-provider.ts'
import { WAITING_FOR_SIGN_IN } from '@hq/shared/domain/oauth-settings.ts'
import type { Row as TableRow } from '@hq/shared/schema/tables.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { insert } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from './support/browser.ts'
import { type Live, openLive } from './support/replica.ts'
import { type Gateway, isEnded, provision, type Row, type System, startSystem, taskPatch } from './support/system.ts'

let system: System
let provider: Loopback
let oauth: LoopbackOauth
let gateway: Gateway
let person: Live
let agent: string
let personId: string

beforeAll(async () => {
  provider = await startLoopback('openai')
  oauth = await startLoopbackOauth()
  system = await startSystem()
  gateway = await system.gateway('one')
  agent = await provision(system, gateway, 'wanda')
  person = await openLive(system.server.url, system.owner)
  personId = system.owner.principal.person_id
})
afterAll(async () => {
  await person?.close()
  await system?.stop()
  await provider?.close()
  await oauth?.close()
})

type Connection = TableRow<'model_connections'>

/** As the person's replica has it, once it is so. */
const seen = (id: string, is: (row: Connection) => boolean): Promise<Connection> =>
  eventually('the connection on the person’s replica', async () => {
    const [row] = await person.rows<Connection>('select * from model_connections where id = $1', [id])
    return row && is(row) ? row : undefined
  })
const ended = (id: string): Promise<Row> =>
  eventually('the end of the command', async () => {
    const [row] = await person.rows<Row>('select * from agent_commands where id = $1', [id])
    return row && isEnded(row) ? row : undefined
  })
const publicKey = async (): Promise<string> => {
  const [row] = await person.rows<{ public_key: string }>('select public_key from gateways where id = $1', [gateway.id])
  return row?.public_key ?? ''
}

async function connect(label: string): Promise<Connection> {
  const ids = { connection: newId(), secret: newId(), sealed: newId() }
  const place = { tenantId: system.tenantId, gatewayId: gateway.id, publicKey: await publicKey(), personId }
  const input = {
    provider: 'openai' as const,
    label,
    baseUrl: provider.url,
    model: 'm-1',
    key: '',
    oauth: oauth.settings,
  }
  await person.replica.writeAll(await addConnection(input, place, ids))
  return seen(ids.connection, () => true)
}

async function begin(connection: Connection, flow: 'paste' | 'device'): Promise<Row> {
  const command = newId()
  await person.replica.writeAll(beginSignIn(connection, flow, command, personId))
  const row = await ended(command)
  expect(row).toMatchObject({ status: 'done', error_message: null })
  return row['result'] as Row
}

async function runOf(title: string): Promise<Row> {
  const task = newId()
  await system.writer().apply([taskPatch(system, title, agent, task)])
  return system.when(`${title} was tried`, async () => {
    const [run] = await system.rows("select * from agent_runs where task_id = $1 and status <> 'running'", [task])
    return run
  })
}
const bearers = (from = 0): string[] => [
  ...new Set(provider.requests.slice(from).map(({ headers }) => (headers.authorization ?? '').replace('Bearer ', ''))),
]

/** Where any of these stands, the gateway's own folder `oauth` aside. */
async function places(values: readonly string[]): Promise<{ found: string[]; looked: string[] }> {
  const found: string[] = []
  const looked: string[] = []
  const look = (where: string, text: string): void => {
    looked.push(where)
    if (values.some((value) => text.includes(value))) found.push(where)
  }
  const lookBelow = async (folder: string): Promise<void> => {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name)
      if (entry.isFile() && entry.parentPath !== join(gateway.home, 'oauth'))
        look(path, await readFile(path, 'latin1').catch(() => ''))
    }
  }
  for (const folder of [system.server.home, gateway.home]) await lookBelow(folder)
  look('output of the gateway', gateway.text())
  const tables = await system.rows<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`,
  )
  for (const { name } of tables)
    look(`table ${name}`, JSON.stringify(await system.rows(`select to_jsonb(t) as row from "${name}" t`)))
  const [data] = await system.rows<{ folder: string }>(
    `select setting as folder from pg_settings where name = 'data_directory'`,
  )
  await system.rows('checkpoint')
  await lookBelow(data?.folder ?? '')
  for (const name of ['model_connections', 'agent_commands', 'command_output', 'agent_run_events', 'sealed_secrets'])
    look(`replica ${name}`, JSON.stringify(await person.rows(`select * from ${name}`)))
  look('outbox', JSON.stringify(await person.replica.outbox()))
  return { found, looked }
}

test('by paste, then by device code: an agent calls the model with the token, it is renewed, and no secret is anywhere else', async () => {
  provider.script({ text: 'Nothing to do here.' })
  const made = await connect('Claw')
  // Nobody has signed in: said, and never taken for the demo model.
  expect(await runOf('Too early')).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('Nobody has signed in yet'),
  })

  const link = String((await begin(made, 'paste'))['authorize_url'])
  await seen(made.id, (row) => row.status_detail === WAITING_FOR_SIGN_IN)
  const back = await oauth.approve(link)
  const ids = { command: newId(), secret: newId(), sealed: newId() }
  await person.replica.writeAll(await pasteSignIn(made, null, back, await publicKey(), ids, personId))
  expect(await ended(ids.command)).toMatchObject({ status: 'done', payload: { sealed_id: ids.sealed } })
  await seen(made.id, (row) => row.status === 'ok')
  expect(await runOf('With the token')).toMatchObject({ demo: false, model: 'm-1' })
  const [token = ''] = bearers()
  expect(bearers()).toHaveLength(1)
  expect(oauth.isValid(token)).toBe(true)

  const renewal = newId()
  await person.replica.writeAll(renewSignIn(made, renewal, personId))
  expect(await ended(renewal)).toMatchObject({ status: 'done', result: { expires_at: expect.any(String) } })
  const count = provider.requests.length
  await runOf('With the renewed token')
  expect(bearers(count)).toHaveLength(1)
  expect(bearers(count)).not.toEqual([token])
  expect(oauth.isValid(bearers(count)[0] ?? '')).toBe(true)

  const other = await connect('By code')
  const shown = await begin(other, 'device')
  expect(shown).toMatchObject({ user_code: 'WDJB-MJHT', verification_url: expect.stringContaining('/activate') })
  oauth.decide('approve')
  await seen(other.id, (row) => row.status === 'ok')
  const before = provider.requests.length
  await runOf('With the token of the device')
  expect(oauth.isValid(bearers(before)[0] ?? '')).toBe(true)

  // A second paste replaces the first one's value; what was pasted is gone from the server either way.
  expect(await system.rows(`select id from sealed_secrets where sealed <> ''`)).toEqual([])
  await eventually('an empty outbox', async () => (await person.replica.outbox()).length === 0 || undefined)
  const verifiers = oauth.asked.flatMap(({ form }) => form['code_verifier'] ?? [])
  expect(verifiers).toHaveLength(1)
  const { found, looked } = await places([...oauth.secrets, ...verifiers])
  expect(found).toEqual([])
  for (const where of ['table agent_commands', 'table audit_log', 'table agent_run_events', 'output of the gateway'])
    expect(looked).toContain(where)
  expect(looked.some((path) => path.includes('pg_wal'))).toBe(true)
  expect((await readdir(join(gateway.home, 'oauth'))).length).toBe(2)
})

test('a renewal that is refused: people are asked to sign in again, and agents say why they wait; removing it removes the tokens', async () => {
  const [made] = await person.rows<Connection>(
    'select * from model_connections where deleted_at is null and is_default order by created_at desc, id desc limit 1',
  )
  if (!made) throw new Error('there is no connection')
  oauth.revoke()
  const renewal = newId()
  await person.replica.writeAll(renewSignIn(made, renewal, personId))
  expect(await ended(renewal)).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('Sign in again'),
  })
  await seen(made.id, (row) => row.status === 'failed' && (row.status_detail ?? '').includes('Sign in again'))
  expect(await runOf('After the refusal')).toMatchObject({
    status: 'failed',
    error_message: expect.stringMatching(/can’t be used: Sign in again/),
  })
  const gone = newId()
  await system
    .writer()
    .apply([
      insert(
        'agent_commands',
        { gateway_id: gateway.id, action: 'auth_remove', payload: { connection_id: made.id } },
        gone,
      ),
    ])
  expect(await ended(gone)).toMatchObject({ status: 'done' })
  await seen(made.id, (row) => row.deleted_at !== null)
  await system.when('the tokens are gone', async () =>
    (await readdir(join(gateway.home, 'oauth'))).includes(`${made.id}.json`) ? undefined : true,
  )
})
