/** No idle tokens (P10): what is paused or over budget makes no model call, counted at the provider. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Loopback, startLoopback } from '../runtime/builtin/loopback-provider.ts'
import { createRuntimes } from '../runtime/registry.ts'
import { createDispatcher, type Dispatcher } from './dispatcher.ts'
import { openTestGateway, type TestGateway, until } from './testing.ts'

let provider: Loopback
let gateway: TestGateway
let dispatcher: Dispatcher
let agent: string
let task: string

beforeEach(async () => {
  provider = await startLoopback('openai')
  gateway = await openTestGateway({
    env: {
      HQ_MODEL_PROVIDER: 'openai',
      HQ_MODEL_BASE_URL: provider.url,
      HQ_MODEL_API_KEY: 'sk-test-abcdef',
      HQ_MODEL: 'gpt-4o',
    },
  })
  dispatcher = createDispatcher(gateway.context, {
    runtimes: createRuntimes(gateway.context, { caps: { retryMs: 1 } }),
  })
  agent = await gateway.agent('Ann')
  task = await gateway.task('Write it', agent)
})

afterEach(async () => {
  await dispatcher.stop()
  await gateway.close()
  await provider.close()
})

const set = (sql: string, params: readonly string[]): Promise<unknown> =>
  gateway.replica.write((tx) => tx.query(sql, params))
const statusIs = (id: string, status: string) => (): Promise<boolean> =>
  gateway
    .one<{ status: string }>('select status from agent_inbox_items where id = $1', [id])
    .then((row) => row.status === status)
const manyPasses = async (): Promise<void> => {
  for (let n = 0; n < 4; n += 1) {
    gateway.advance(600_000)
    await dispatcher.pass()
  }
}

test('a paused agent: zero calls, however long it waits', async () => {
  await set('update agents set pause_requested_at = now() where id = $1', [agent])
  await gateway.item(agent, task)
  await dispatcher.start()
  await manyPasses()
  expect(provider.requests).toHaveLength(0)
})

test('over budget, in money or in tokens: zero calls', async () => {
  const usage = {
    gateway_id: gateway.context.gatewayId,
    agent_id: agent,
    provider: 'openai',
    model: 'gpt-4o',
    input_tokens: 900,
    output_tokens: 100,
  }
  await gateway.insert('agent_usage', {
    ...usage,
    cost_usd: 1,
    occurred_at: new Date(gateway.context.now()).toISOString(),
  })
  const budget = await gateway.insert('agent_budgets', { agent_id: agent, monthly_limit_usd: 1 })
  await gateway.item(agent, task)
  await dispatcher.start()
  await manyPasses()
  await set('update agent_budgets set monthly_limit_usd = null, monthly_limit_tokens = 1000 where id = $1', [budget])
  await manyPasses()
  expect(provider.requests).toHaveLength(0)
})

test('nothing to do: zero calls', async () => {
  await dispatcher.start()
  await manyPasses()
  expect(provider.requests).toHaveLength(0)
})

test('the budget runs out in the middle of a run: the call that did it is the last (W2)', async () => {
  await gateway.insert('agent_budgets', { agent_id: agent, monthly_limit_usd: 0.001 })
  provider.script({
    text: 'Let me look.',
    calls: [{ name: 'task_show', input: { task_id: task } }],
    usage: [1_000, 100],
  })
  const item = await gateway.item(agent, task)
  await dispatcher.start()
  await until(
    'the run was stopped',
    async () => (await gateway.replica.query(`select 1 from agent_runs where status = 'cancelled'`)).length === 1,
  )
  expect(provider.requests).toHaveLength(1)
  expect(
    await gateway.one('select status, attempt_count, error_message from agent_inbox_items where id = $1', [item]),
  ).toEqual({
    status: 'pending',
    attempt_count: 0,
    error_message: 'The monthly budget is used up.',
  })
  expect(await gateway.one('select cost_usd, input_tokens, output_tokens, turns from agent_runs')).toEqual({
    cost_usd: 0.0035,
    input_tokens: 1000,
    output_tokens: 100,
    turns: 1,
  })
  await manyPasses()
  expect(provider.requests).toHaveLength(1)
})

test('a pause while the model speaks: the step ends, and no other begins (W2)', async () => {
  provider.script(async () => {
    await set('update agents set pause_requested_at = now() where id = $1', [agent])
    return { text: 'Let me look.', calls: [{ name: 'comment', input: { task_id: task, body: 'Begun.' } }] }
  })
  const item = await gateway.item(agent, task)
  await dispatcher.start()
  await until(
    'the item is back',
    async () => (await gateway.replica.query(`select 1 from agent_runs where status = 'cancelled'`)).length === 1,
  )
  expect(await statusIs(item, 'pending')()).toBe(true)
  expect(provider.requests).toHaveLength(1)
  expect(await gateway.replica.query(`select body from comments`)).toEqual([{ body: 'Begun.' }])
})

test('a refused key: said plainly, seen at the agent, and the work is not lost', async () => {
  provider.script({ status: 401, body: '{}' })
  const item = await gateway.item(agent, task)
  await dispatcher.start()
  await until('it failed', statusIs(item, 'failed'))
  const { error_message } = await gateway.one<{ error_message: string }>('select error_message from agent_runs')
  expect(error_message).toMatch(/refused the key \(401\)/)
  await until('the agent says why it rests', async () =>
    (
      (await gateway.one<{ gate_detail: string | null }>('select gate_detail from agents where id = $1', [agent]))
        .gate_detail ?? ''
    ).includes('refused the key'),
  )
  provider.script({ text: 'Done.' })
  gateway.advance(31_000)
  await dispatcher.pass()
  await until('it is done', statusIs(item, 'done'))
})
