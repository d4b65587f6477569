/** The policy of an agent's tools in a whole run: dispatcher, rows and answers are real, the model is a script. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createDispatcher, type Dispatcher } from '../dispatcher/dispatcher.ts'
import { openTestGateway, scriptedRuntime, type TestGateway, until } from '../dispatcher/testing.ts'
import { createRuntimes } from './registry.ts'
import type { RunHooks, ToolOutput } from './runtime.ts'

let gateway: TestGateway
let dispatcher: Dispatcher | undefined
let agent: string
let item: string
let task: string

beforeEach(async () => {
  gateway = await openTestGateway({ env: { HQ_AGENT_WEB: 'on', HQ_AGENT_EXEC: 'on' } })
})
afterEach(async () => {
  await dispatcher?.stop()
  dispatcher = undefined
  await gateway.close()
})

interface Did {
  offered: string[]
  said: ToolOutput | undefined
  error: unknown
}

/** Wakes an agent whose only act is to call `my_tasks` (or `meanwhile` first). */
async function wake(
  policy: unknown,
  before: (hooks: RunHooks) => Promise<void> = async () => undefined,
  maxRunsAtOnce = 2,
): Promise<Did> {
  const did: Did = { offered: [], said: undefined, error: undefined }
  const runtime = scriptedRuntime(async (_, hooks) => {
    did.offered = hooks.tools.map(({ name }) => name)
    await before(hooks)
    try {
      did.said = await hooks.tools.find(({ name }) => name === 'my_tasks')?.run({})
    } catch (error) {
      did.error = error
      throw error
    }
    return undefined
  })
  agent = await gateway.agent('Ada', { tool_policy: JSON.stringify(policy) as never })
  task = await gateway.task('Write', agent)
  item = await gateway.item(agent, task)
  dispatcher = createDispatcher(gateway.context, {
    runtimes: createRuntimes(gateway.context, { runtimes: [runtime] }),
    leaseMs: 300,
    maxRunsAtOnce,
  })
  await dispatcher.start()
  return did
}

interface Asked {
  id: string
  status: string
  [column: string]: unknown
}
const questions = () => gateway.replica.query<Asked>('select * from approvals order by created_at')
async function asked(): Promise<Asked> {
  await until('a question', async () => (await questions()).length > 0)
  return (await questions())[0] as Asked
}
const answer = (id: string, status: string, note: string | null = null) =>
  gateway.replica.write((tx) =>
    tx.query('update approvals set status = $2, note = $3 where id = $1', [id, status, note]),
  )
const setPolicy = (policy: unknown) =>
  gateway.replica.write((tx) =>
    tx.query('update agents set tool_policy = $2 where id = $1', [agent, JSON.stringify(policy)]),
  )
const itemIs = (status: string) =>
  until(
    `item is ${status}`,
    async () =>
      (await gateway.one<{ status: string }>('select status from agent_inbox_items where id = $1', [item])).status ===
      status,
  )

test('what is denied is not offered; the rest is, and works without a question (K1)', async () => {
  const did = await wake({ tools: { web_fetch: 'deny', comment: 'deny' } })
  await itemIs('done')
  expect(did.offered).toContain('my_tasks')
  expect(did.offered).not.toContain('web_fetch')
  expect(did.offered).not.toContain('comment')
  expect(did.said?.ok).toBe(true)
  expect(await questions()).toEqual([])
})

test('what must be asked waits for a person, while the lease is renewed, and is done when allowed (K2, K4)', async () => {
  const did = await wake({ tools: { my_tasks: 'ask' } })
  const question = await asked()
  expect(question).toMatchObject({
    agent_id: agent,
    task_id: task,
    kind: 'tool',
    subject: 'my_tasks',
    status: 'pending',
  })
  expect(question['run_id']).toEqual(expect.any(String))
  const lease = async () =>
    (await gateway.one<{ leased_until: string }>('select leased_until from agent_inbox_items where id = $1', [item]))
      .leased_until
  const first = await lease()
  await until('a renewed lease', async () => (await lease()) > first)
  expect(did.said).toBeUndefined()
  await answer(question.id, 'allowed')
  await itemIs('done')
  expect(did.said).toMatchObject({ ok: true, waitedMs: expect.any(Number) })
  expect((await questions())[0]?.['applied_at']).toEqual(expect.any(String))
})

test('a refusal is an answer that the model reads, with what the person said (K3)', async () => {
  const did = await wake({ tools: { my_tasks: 'ask' } })
  await answer((await asked()).id, 'denied', 'Not on a Friday.')
  await itemIs('done')
  expect(did.said?.ok).toBe(false)
  expect(did.said?.text).toMatch(/refused this.*Not on a Friday\..*Do not try the same/)
})

test('a person changes the policy during the run: the next call goes by it (K1)', async () => {
  let go: () => void = () => undefined
  const waits = new Promise<void>((resolve) => {
    go = resolve
  })
  const did = await wake({}, () => waits)
  await until('the tools', () => did.offered.length > 0)
  await setPolicy({ tools: { my_tasks: 'deny' } })
  go()
  await itemIs('done')
  expect(did.said).toMatchObject({ ok: false, text: expect.stringContaining('switched off for you') })
})

test('a run that is paused while it waits stops waiting; the question is withdrawn, the work goes back (K2)', async () => {
  const did = await wake({ tools: { my_tasks: 'ask' } })
  await asked()
  await gateway.replica.write((tx) => tx.query('update agents set pause_requested_at = now() where id = $1', [agent]))
  await itemIs('pending')
  expect(did.error).toMatchObject({ name: 'RunStopped' })
  expect(await questions()).toMatchObject([{ status: 'cancelled' }])
})

test('while a run waits for an answer others work, and its agent says why nothing happens', async () => {
  await wake({ tools: { my_tasks: 'ask' } }, undefined, 1)
  await asked()
  const gate = async (id: string): Promise<string> =>
    String(
      (await gateway.one<{ gate_detail: unknown }>('select gate_detail from agents where id = $1', [id])).gate_detail,
    )
  await until('it says that it waits', async () => (await gate(agent)).includes('waits for a person’s answer'))
  const other = await gateway.agent('Bob')
  const theirs = await gateway.item(other, await gateway.task('Read', other))
  await until(
    'the other is done',
    async () =>
      (await gateway.one<{ status: string }>('select status from agent_inbox_items where id = $1', [theirs])).status ===
      'done',
  )
  await answer((await asked()).id, 'allowed')
  await itemIs('done')
})

test('a gateway that stops withdraws what its runs have asked', async () => {
  await wake({ tools: { my_tasks: 'ask' } })
  await asked()
  await dispatcher?.stop()
  expect(await questions()).toMatchObject([{ status: 'cancelled' }])
  await itemIs('pending')
})

test('commands are offered only where the agent has a folder, the owner’s switch is on, and the policy says so', async () => {
  const did = await wake({ tools: { exec: 'allow' } })
  await itemIs('done')
  // This agent has no worktree here.
  expect(did.offered).not.toContain('exec')
})
