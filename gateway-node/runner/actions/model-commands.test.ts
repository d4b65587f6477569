import { expect, it, onTestFinished } from 'vitest'
import type { RuntimeRegistry } from '../../service.ts'
import { createTestGateway, newId, type TestGateway } from '../../testing/context.ts'
import { createRunner } from '../runner.ts'

const RUNTIMES: RuntimeRegistry = {
  runtimes: () => ['builtin'],
  models: async () => [{ provider: 'openai', model: 'm-1', demo: false }],
}

async function start(): Promise<TestGateway> {
  const gateway = await createTestGateway()
  const runner = createRunner(gateway.context, RUNTIMES, { sweepMs: 3_600_000 })
  onTestFinished(() => runner.stop())
  await runner.start()
  return gateway
}
const send = async (gateway: TestGateway, action: string, payload: object, agent: string | null = null) =>
  gateway.command(await gateway.addCommand(action, agent, { payload: JSON.stringify(payload) }))

/** The key's row and the connection, as a browser makes them. */
async function connect(
  gateway: TestGateway,
  label: string,
  isDefault: boolean,
): Promise<{ id: string; secret: string }> {
  const [id, secret] = [newId(), newId()]
  const { tenantId, gatewayId } = gateway.context
  await gateway.replica.write(async (tx) => {
    await tx.query(
      `insert into secrets (id, tenant_id, gateway_id, key, name, category) values ($1, $2, $3, $4, $4, 'model')`,
      [secret, tenantId, gatewayId, `KEY_${label.toUpperCase()}`],
    )
    await tx.query(
      `insert into model_connections (id, tenant_id, gateway_id, label, provider, default_model, secret_id, is_default)
       values ($1, $2, $3, $4, 'openai', 'm-1', $5, $6)`,
      [id, tenantId, gatewayId, label, secret, isDefault],
    )
  })
  return { id, secret }
}

it('an agent’s model and thinking are set each by itself; one that the provider does not list is said', async () => {
  const gateway = await start()
  const agent = await gateway.addAgent('wanda')
  expect(await send(gateway, 'set_agent_model', { model: 'openai/m-1' }, agent)).toMatchObject({
    status: 'done',
    result: { model: 'openai/m-1', listed: true },
  })
  expect(await send(gateway, 'set_agent_model', { thinking: 'high' }, agent)).toMatchObject({ status: 'done' })
  expect(await gateway.row('agents', agent)).toMatchObject({ model: 'openai/m-1', thinking: 'high' })
  expect(await send(gateway, 'set_agent_model', { model: 'x-9' }, agent)).toMatchObject({ result: { listed: false } })
  expect(await send(gateway, 'set_agent_model', { model: null }, agent)).toMatchObject({ status: 'done' })
  expect(await gateway.row('agents', agent)).toMatchObject({ model: null, thinking: 'high' })
  expect(await send(gateway, 'set_agent_model', { thinking: 'very' }, agent)).toMatchObject({ status: 'failed' })
})

it('connections are listed without keys, chosen, and removed with their key', async () => {
  const gateway = await start()
  const one = await connect(gateway, 'one', true)
  const two = await connect(gateway, 'two', false)
  expect(await send(gateway, 'auth_set_default', { connection_id: two.id })).toMatchObject({ status: 'done' })
  const listed = await send(gateway, 'auth_list', {})
  expect(listed['result']).toMatchObject({
    connections: [
      { id: two.id, label: 'two', is_default: true, has_key: true },
      { id: one.id, label: 'one', is_default: false, has_key: true },
    ],
  })
  expect(JSON.stringify(listed['result'])).not.toContain(one.secret)
  expect(await send(gateway, 'auth_remove', { connection_id: one.id })).toMatchObject({ status: 'done' })
  expect(await gateway.row('model_connections', one.id)).toMatchObject({ deleted_at: expect.anything() })
  expect(await gateway.row('secrets', one.secret)).toMatchObject({ deleted_at: expect.anything() })
  expect(await gateway.row('secrets', two.secret)).toMatchObject({ deleted_at: null })
  expect(await send(gateway, 'auth_remove', { connection_id: one.id })).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('no such model connection'),
  })
})
