/**
 * A model connection that a person makes, whole system: the key is sealed in the person's replica, an agent's next run uses it, a new key and a revoked one count at
 * once, and what does not work is said. The provider is on the loopback.
 */
import { addConnection, removeConnection, replaceKey } from '@hq/client/src/features/models/connection.ts'
import { revokeSecret } from '@hq/client/src/features/secrets/set-secret.ts'
import { type Loopback, startLoopback } from '@hq/gateway-node/runtime/builtin/loopback-provider.ts'
import type { Row as TableRow } from '@hq/shared/schema/tables.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Live, openLive } from './support/replica.ts'
import {
  commandPatch,
  type Gateway,
  provision,
  type Row,
  type System,
  startSystem,
  taskPatch,
} from './support/system.ts'

const FIRST = 'sk-first-PLAINTEXT-77aa01'
const SECOND = 'sk-second-PLAINTEXT-c4d9e2'

let system: System
let provider: Loopback
let gateway: Gateway
let person: Live
let agent: string

beforeAll(async () => {
  provider = await startLoopback('openai')
  system = await startSystem()
  gateway = await system.gateway('one')
  agent = await provision(system, gateway, 'wanda')
  person = await openLive(system.server.url, system.owner)
})
afterAll(async () => {
  await person?.close()
  await system?.stop()
  await provider?.close()
})

const connection = async (id: string): Promise<Row | undefined> =>
  (await system.rows('select * from model_connections where id = $1', [id]))[0]
const state = (id: string, status: string): Promise<Row> =>
  system.rowWhen('model_connections', id, (row) => row['status'] === status)

/** The end of the first run of a new task. */
async function runOf(title: string): Promise<Row> {
  const task = newId()
  await system.writer().apply([taskPatch(system, title, agent, task)])
  return system.when(`${title} was tried`, async () => {
    const [run] = await system.rows("select * from agent_runs where task_id = $1 and status <> 'running'", [task])
    return run
  })
}

async function make(key: string, label = 'Local', model = 'm-1'): Promise<{ id: string; secret: string }> {
  const [row] = await person.rows<{ public_key: string }>('select public_key from gateways where id = $1', [gateway.id])
  const ids = { connection: newId(), secret: newId(), sealed: newId() }
  const statements = await addConnection(
    { provider: 'openai', label, baseUrl: provider.url, model, key },
    {
      tenantId: system.tenantId,
      gatewayId: gateway.id,
      publicKey: row?.public_key ?? '',
      personId: system.owner.principal.person_id,
    },
    ids,
  )
  await person.replica.writeAll(statements)
  return { id: ids.connection, secret: ids.secret }
}

const authorizations = (): (string | undefined)[] => provider.requests.map(({ headers }) => headers.authorization)

test('made by a person: tried, used by the next run, with its key; a new key counts with the next run; no plain text anywhere', async () => {
  provider.script({ text: 'Nothing to do here.' })
  const before = await runOf('Before')
  expect(before).toMatchObject({ demo: true })
  expect(provider.requests).toHaveLength(0)

  const made = await make(FIRST)
  expect(await state(made.id, 'ok')).toMatchObject({ status_detail: '2 models' })
  const first = await runOf('With the first key')
  expect(first).toMatchObject({ demo: false, provider: 'openai', model: 'm-1' })
  expect(new Set(authorizations())).toEqual(new Set([`Bearer ${FIRST}`]))

  const [secret] = await person.rows<TableRow<'secrets'>>('select * from secrets where id = $1', [made.secret])
  const [row] = await person.rows<{ public_key: string }>('select public_key from gateways where id = $1', [gateway.id])
  if (!secret || !row) throw new Error('the rows have not arrived')
  await person.replica.writeAll(await replaceKey(secret, newId(), row.public_key, SECOND))
  await system.rowWhen('secrets', made.secret, (each) => each['synced_version'] === 2)
  const count = provider.requests.length
  await runOf('With the second key')
  expect(new Set(authorizations().slice(count))).toEqual(new Set([`Bearer ${SECOND}`]))

  for (const value of [FIRST, SECOND]) {
    expect(gateway.text()).not.toContain(value)
    for (const table of [
      'secrets',
      'sealed_secrets',
      'model_connections',
      'gateways',
      'agent_runs',
      'agent_run_events',
      'audit_log',
    ])
      expect(await system.rows(`select id from ${table} t where t::text like $1`, [`%${value}%`]), table).toEqual([])
  }

  // Revoked: said, and never taken for the demo model.
  await person.replica.writeAll(revokeSecret(made.secret))
  await system.rowWhen('secrets', made.secret, (each) => each['sync_status'] === 'revoked')
  const revoked = await runOf('Without a key')
  expect(revoked).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('The key of the model connection “Local”'),
  })
  expect(await state(made.id, 'failed')).toMatchObject({ status_detail: expect.stringContaining('Set it again') })

  await person.replica.writeAll(removeConnection({ id: made.id, secret_id: made.secret }))
  await system.rowWhen('model_connections', made.id, (each) => each['deleted_at'] !== null)
})

test('a model that the provider does not have, and a provider that is away, are said when somebody asks', async () => {
  const made = await make(FIRST, 'Odd', 'no-such-model')
  expect(await state(made.id, 'failed')).toMatchObject({ status_detail: expect.stringContaining('no-such-model') })
  await provider.close()
  const command = newId()
  await system.writer().apply([commandPatch(system, gateway, agent, 'list_models', command)])
  await system.rowWhen('agent_commands', command, (row) => row['status'] === 'done')
  const now = await connection(made.id)
  expect(now).toMatchObject({ status: 'failed' })
  expect(String(now?.['status_detail'])).not.toContain('no-such-model')
})
