/**
 * A command that an agent may run only when a person has allowed it, as real processes: asked by a gateway, answered while it is cut off, withdrawn when it was killed.
 */
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Loopback, type Say, startLoopback } from '@hq/gateway-node/runtime/builtin/loopback-provider.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { update, type Writer } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Network } from './support/proxy.ts'
import { type Gateway, provision, type Row, type System, startSystem, taskPatch } from './support/system.ts'

type Body = Record<string, unknown>
const COMMAND = 'echo made here > made.txt; echo printed by the command; env'

/** Runs the command, then says what came of it. */
function worker(body: Body): Say {
  const messages = body['messages'] as { role: string; content: unknown }[]
  const answer = messages.findLast(({ role }) => role === 'tool')
  return answer
    ? { text: `It said: ${JSON.stringify(answer.content).slice(0, 400)}` }
    : { calls: [{ name: 'exec', input: { command: COMMAND } }] }
}

let system: System
let model: Loopback
let network: Network
let gateway: Gateway
let writer: Writer
let agent: string

beforeAll(async () => {
  system = await startSystem()
  model = await startLoopback('openai')
  network = await system.proxy()
  writer = system.writer()
  gateway = await system.gateway('one', {
    url: network.url,
    env: {
      HQ_MODEL_PROVIDER: 'openai',
      HQ_MODEL_BASE_URL: model.url,
      HQ_MODEL_API_KEY: 'sk-secret-of-the-test-provider',
      HQ_MODEL: 'gpt-4o-mini',
      HQ_AGENT_EXEC: 'on',
    },
  })
  agent = await provision(system, gateway, 'ann', writer)
  model.script(worker)
})
afterAll(async () => {
  await system?.stop()
  await model?.close()
})

const setPolicy = async (policy: Row): Promise<void> => {
  const [row] = await system.rows<Row>('select tool_policy from agents where id = $1', [agent])
  await writer.apply([update('agents', agent, { tool_policy: row?.['tool_policy'] }, { tool_policy: policy })])
}
async function assign(title: string): Promise<string> {
  const task = newId()
  await writer.apply([taskPatch(system, title, agent, task)])
  const [item] = await system.rows<{ id: string }>('select id from agent_inbox_items where task_id = $1', [task])
  return item?.id ?? ''
}
const itemIs = (id: string, status: string): Promise<Row> =>
  system.rowWhen('agent_inbox_items', id, (row) => row['status'] === status)
const question = (): Promise<Row> =>
  system.when('a question', async () => (await system.rows<Row>(`select * from approvals where status = 'pending'`))[0])
const answer = (id: string, status: 'allowed' | 'denied', note: string | null = null) =>
  writer.apply([
    update(
      'approvals',
      id,
      { status: 'pending', decided_by: null, decided_at: null, note: null },
      { status, note, decided_by: system.owner.principal.person_id, decided_at: new Date().toISOString() },
    ),
  ])
const offered = (): string[] =>
  ((model.requests.at(-1)?.body['tools'] ?? []) as { function: { name: string } }[]).map(
    ({ function: { name } }) => name,
  )
const summaryOf = async (item: string): Promise<string> =>
  String(
    (
      await system.rows<Row>(
        'select summary from agent_runs where inbox_item_id = $1 order by started_at desc limit 1',
        [item],
      )
    )[0]?.['summary'],
  )

test('nobody has said anything: no command is offered', async () => {
  const item = await assign('first')
  await itemIs(item, 'done')
  expect(offered()).not.toContain('exec')
  expect(await summaryOf(item)).toContain('There is no tool')
  expect(await system.rows('select 1 from approvals')).toEqual([])
})

test('asked; answered while the gateway is cut off; run and committed when it hears of it', async () => {
  await setPolicy({ tools: { exec: 'ask' } })
  const item = await assign('second')
  const asked = await question()
  expect(asked).toMatchObject({ agent_id: agent, kind: 'exec', subject: 'exec', gateway_id: gateway.id })
  expect(asked['detail']).toMatchObject({ command: COMMAND, folder: '.' })
  expect(asked['title']).toContain('echo made here')
  network.cut()
  await answer(String(asked['id']), 'allowed')
  await expect(readFile(join(gateway.home, 'agents/ann/made.txt'))).rejects.toThrow(/ENOENT/)
  network.heal()
  await itemIs(item, 'done')
  const summary = await summaryOf(item)
  expect(summary).toContain('printed by the command')
  expect(summary).not.toContain('sk-secret')
  expect(model.requests.some(({ body }) => JSON.stringify(body).includes('sk-secret'))).toBe(false)
  const folder = join(gateway.home, 'agents/ann')
  const log = execFileSync('git', ['log', '--format=%an', '--', 'made.txt'], { cwd: folder, encoding: 'utf8' })
  expect(log).toBe('Ann\n')
  await system.rowWhen('approvals', String(asked['id']), (row) => row['applied_at'] !== null)
  const [file] = await system.rows<Row>(`select content from agent_files where path = 'made.txt'`)
  expect(file).toEqual({ content: 'made here\n' })
})

test('killed while it waits: the question is withdrawn, the work asks anew; a refusal is read by the model', async () => {
  const item = await assign('third')
  const first = await question()
  await gateway.kill()
  await gateway.start()
  await system.rowWhen('approvals', String(first['id']), (row) => row['status'] === 'cancelled')
  const again = await system.when('it asks anew', async () => {
    // The work rests after a try that was broken off.
    gateway.skipMinute()
    await new Promise((resolve) => setTimeout(resolve, 500))
    return (await system.rows<Row>(`select * from approvals where status = 'pending'`))[0]
  })
  expect(again['id']).not.toBe(first['id'])
  await answer(String(again['id']), 'denied', 'Not before the review.')
  await itemIs(item, 'done')
  expect(await summaryOf(item)).toContain('Not before the review.')
})

test('answered and killed, neither knowing of the other: the answer is kept and does nothing, the work asks anew', async () => {
  const item = await assign('between')
  const first = await question()
  network.cut()
  await answer(String(first['id']), 'allowed', 'Go.')
  await gateway.kill()
  // Without the server it takes the question for an open one, and withdraws it.
  await gateway.start()
  network.heal()
  const settled = await system.rowWhen('approvals', String(first['id']), (row) => row['error_message'] !== null)
  expect(settled).toMatchObject({ status: 'allowed', note: 'Go.', applied_at: null })
  expect(settled['error_message']).toContain('nothing was done')
  const again = await system.when('it asks anew', async () => {
    gateway.skipMinute()
    await new Promise((resolve) => setTimeout(resolve, 500))
    return (await system.rows<Row>(`select * from approvals where status = 'pending'`))[0]
  })
  await answer(String(again['id']), 'denied')
  await itemIs(item, 'done')
  expect(await summaryOf(item)).toContain('A person refused this')
})

test('allowed for good: no question more', async () => {
  await setPolicy({ tools: { exec: 'allow' } })
  const before = (await system.rows('select 1 from approvals')).length
  const item = await assign('fourth')
  await itemIs(item, 'done')
  expect(await summaryOf(item)).toContain('printed by the command')
  expect(await system.rows('select 1 from approvals')).toHaveLength(before)
})
