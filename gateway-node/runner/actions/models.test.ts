/** Commands about runtimes and models: installed on demand, chosen, and no key in any of them. */
import { expect, onTestFinished, test } from 'vitest'
import type { GatewayContext, ManagedRuntime, RuntimeRegistry } from '../../service.ts'
import { createTestGateway, newId, noModels } from '../../testing/context.ts'
import { createRunner } from '../runner.ts'

async function start(context: GatewayContext, runtimes: RuntimeRegistry = noModels): Promise<void> {
  const runner = createRunner(context, runtimes, { sweepMs: 3_600_000 })
  onTestFinished(() => runner.stop())
  await runner.start()
}

function claw(more: Partial<ManagedRuntime> = {}): RuntimeRegistry {
  let installed = false
  const managed: ManagedRuntime = {
    install: async (tell) => {
      tell('fetching\n')
      installed = true
    },
    restart: async () => undefined,
    state: () => ({ version: '1.2.3', state: 'stopped', installed }),
    ...more,
  }
  return { ...noModels, managed: (name) => (name === 'openclaw' ? managed : undefined) }
}

test('install_runtime: progress, version; a failure is a sentence; a runtime that is none', async () => {
  const gateway = await createTestGateway()
  await start(gateway.context, claw())
  expect(await gateway.command(await gateway.addCommand('install_runtime', null))).toMatchObject({
    status: 'done',
    result: { runtime: 'openclaw', version: '1.2.3' },
  })
  const other = await gateway.command(
    await gateway.addCommand('install_runtime', null, { payload: { runtime: 'hermes' } }),
  )
  expect(other).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('“hermes” is nothing that this gateway installs'),
  })
  const broken = await createTestGateway()
  await start(broken.context, claw({ install: () => Promise.reject(new Error('npm was not found on this machine.')) }))
  expect(await broken.command(await broken.addCommand('install_runtime', null))).toMatchObject({
    status: 'failed',
    error_message: 'npm was not found on this machine.',
  })
})

test('restart_runtime', async () => {
  let restarts = 0
  const gateway = await createTestGateway()
  await start(gateway.context, claw({ restart: async () => void restarts++ }))
  expect(await gateway.command(await gateway.addCommand('restart_runtime', null))).toMatchObject({ status: 'done' })
  expect(restarts).toBe(1)
  const builtin = await gateway.command(
    await gateway.addCommand('restart_runtime', null, { payload: { runtime: 'builtin' } }),
  )
  expect(builtin).toMatchObject({ status: 'failed' })
})

test('set_agent_model sets what is named, keeps the rest, and refuses nothing and nonsense', async () => {
  const gateway = await createTestGateway()
  await start(gateway.context)
  const agent = await gateway.addAgent('wanda')
  const set = async (payload: Record<string, unknown>) =>
    gateway.command(await gateway.addCommand('set_agent_model', agent, { payload }))
  expect(await set({ model: 'big', thinking: 'high' })).toMatchObject({
    status: 'done',
    result: { model: 'big', thinking: 'high' },
  })
  expect(await gateway.row('agents', agent)).toMatchObject({ model: 'big', thinking: 'high' })
  expect(await set({ model: null })).toMatchObject({ status: 'done' })
  expect(await gateway.row('agents', agent)).toMatchObject({ model: null, thinking: 'high' })
  expect(await set({})).toMatchObject({ status: 'failed' })
  expect(await set({ thinking: 'much' })).toMatchObject({ status: 'failed' })
})

test('auth_list and auth_set_default; a key in a command is refused with the way that is safe', async () => {
  const gateway = await createTestGateway()
  await start(gateway.context)
  const { gatewayId, tenantId } = gateway.context
  const [one, two] = [newId(), newId()]
  for (const [id, label] of [
    [one, 'One'],
    [two, 'Two'],
  ])
    await gateway.replica.write((tx) =>
      tx.query(
        `insert into model_connections (id, tenant_id, gateway_id, label, provider) values ($1, $2, $3, $4, 'openai')`,
        [id ?? '', tenantId, gatewayId, label ?? ''],
      ),
    )
  const choose = async (connection_id: string) =>
    gateway.command(await gateway.addCommand('auth_set_default', null, { payload: { connection_id } }))
  expect(await choose(one)).toMatchObject({ status: 'done', result: { label: 'One' } })
  const listed = await gateway.command(await gateway.addCommand('auth_list', null))
  expect(listed['result']).toMatchObject({
    connections: expect.arrayContaining([
      expect.objectContaining({ label: 'One', is_default: true, has_key: false }),
      expect.objectContaining({ label: 'Two', is_default: false }),
    ]),
  })
  expect(await choose(newId())).toMatchObject({ status: 'failed' })
  const refused = await gateway.command(
    await gateway.addCommand('auth_set_api_key', null, { payload: { api_key: 'sk-x' } }),
  )
  expect(refused).toMatchObject({ status: 'failed', error_message: expect.stringContaining('under Models') })
})
