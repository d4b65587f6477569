import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { GatewayContext } from '../service.ts'
import { createTestGateway, newId, noModels, type TestGateway } from '../testing/context.ts'
import { type Action, ActionError, defineAction, type Job } from './action.ts'
import { LEASE_MS } from './commands.ts'
import { createRunner } from './runner.ts'

/** A `list_models` that does as the test says. */
const acting = (run: (job: Job) => Promise<unknown>, more: Partial<Action> = {}): Action =>
  defineAction({
    name: 'list_models',
    agent: 'none',
    payload: z.looseObject({}),
    steps: [
      { key: 'one', label: 'One' },
      { key: 'two', label: 'Two' },
      { key: 'three', label: 'Three' },
    ],
    run: async (job) => {
      await run(job)
      return {}
    },
    ...more,
  })

/** A runner whose sweep never comes by itself: what the tests see is the replica's notices. */
async function startRunner(gateway: TestGateway, actions: Action[], context: GatewayContext = gateway.context) {
  const runner = createRunner(context, noModels, { actions, sweepMs: 3_600_000 })
  onTestFinished(() => runner.stop())
  await runner.start()
  return runner
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

const never = (): Promise<never> => new Promise(() => undefined)

const isRunning = (row: Record<string, unknown>): boolean => row['status'] === 'running'

describe('a command', () => {
  it('is run by a change notice alone, with its steps, output and result (R1, J2)', async () => {
    const gateway = await createTestGateway()
    const action = acting(async ({ step, output }) => {
      step('one')
      output('hello ')
      step('two', 'with detail')
      output('world\n')
      output('oops', 'stderr')
    })
    await startRunner(gateway, [action])
    const row = await gateway.command(await gateway.addCommand('list_models', null))
    expect(row).toMatchObject({
      status: 'done',
      attempt_count: 1,
      exit_code: 0,
      error_message: null,
      lease_owner: null,
    })
    expect(row['progress']).toMatchObject({
      steps: [
        { key: 'one', state: 'done' },
        { key: 'two', state: 'done', detail: 'with detail' },
        { key: 'three', state: 'skipped' },
      ],
    })
    const output = await gateway.replica.query('select seq, stream, text from command_output order by seq')
    expect(output).toEqual([
      { seq: 1, stream: 'stdout', text: 'hello world\n' },
      { seq: 2, stream: 'stderr', text: 'oops' },
    ])
  })

  it('shows its steps while it runs (J1)', async () => {
    const gateway = await createTestGateway()
    const action = acting(async ({ step, signal }) => {
      step('one')
      await untilAborted(signal)
    })
    await startRunner(gateway, [action])
    const id = await gateway.addCommand('list_models', null)
    const row = await gateway.command(id, (found) => JSON.stringify(found['progress']).includes('running'))
    expect(row).toMatchObject({ status: 'running', progress: { steps: [{ state: 'running' }, {}, {}] } })
  })

  it('that was there before the runner is run at its start', async () => {
    const gateway = await createTestGateway()
    const id = await gateway.addCommand('list_models', null)
    await startRunner(gateway, [acting(async () => undefined)])
    expect(await gateway.command(id)).toMatchObject({ status: 'done' })
  })

  it('that fails says why, and the next one runs (R5)', async () => {
    const gateway = await createTestGateway()
    let first = true
    const action = acting(async ({ step }) => {
      step('one')
      if (!first) return
      first = false
      throw new ActionError('No model answered. Start Ollama, then ask again.')
    })
    await startRunner(gateway, [action])
    const [a, b] = [await gateway.addCommand('list_models', null), await gateway.addCommand('list_models', null)]
    expect(await gateway.command(a)).toMatchObject({
      status: 'failed',
      exit_code: 1,
      error_message: 'No model answered. Start Ollama, then ask again.',
      progress: { steps: [{ state: 'failed' }, { state: 'skipped' }, { state: 'skipped' }] },
    })
    expect(await gateway.command(b)).toMatchObject({ status: 'done' })
  })

  it('whose end cannot be written as meant still ends', async () => {
    const gateway = await createTestGateway()
    const action = acting(async () => undefined, {
      run: async () => ({ commit: async (tx) => void (await tx.query('select * from no_such_table')) }),
    })
    await startRunner(gateway, [action])
    const row = await gateway.command(await gateway.addCommand('list_models', null))
    expect(row).toMatchObject({ status: 'failed', error_message: expect.stringContaining('no_such_table') })
  })

  it.each([
    ['of an unknown action', 'auth_refresh', {}, /can't do "auth_refresh"/],
    ['with a wrong payload', 'list_models', { payload: JSON.stringify({ provider: 7 }) }, /payload .* provider/],
  ])('%s fails clearly (R5)', async (_what, action, more, message) => {
    const gateway = await createTestGateway()
    await startRunner(gateway, [
      acting(async () => undefined, { payload: z.object({ provider: z.string().optional() }) }),
    ])
    const row = await gateway.command(await gateway.addCommand(action, null, more))
    expect(row).toMatchObject({ status: 'failed', error_message: expect.stringMatching(message), attempt_count: 0 })
  })

  it('waits for its agent, which may arrive after it (R3), but not for ever', async () => {
    const gateway = await createTestGateway()
    await startRunner(gateway, [acting(async () => undefined, { agent: 'living' })])
    const agentId = newId()
    const id = await gateway.addCommand('list_models', agentId)
    const lost = await gateway.addCommand('list_models', newId())
    await gateway.addAgent('wanda', { id: agentId })
    expect(await gateway.command(id)).toMatchObject({ status: 'done' })
    expect(await gateway.row('agent_commands', lost)).toMatchObject({ status: 'pending' })
    gateway.advance(61_000)
    await gateway.addCommand('list_models', agentId)
    expect(await gateway.command(lost)).toMatchObject({
      status: 'failed',
      error_message: expect.stringMatching(/never arrived/),
    })
  })

  it("of a deleted agent, or of another gateway's, is refused", async () => {
    const gateway = await createTestGateway()
    await startRunner(gateway, [acting(async () => undefined, { agent: 'living' })])
    const deleted = await gateway.addAgent('dead-one', { deleted_at: new Date() })
    const moved = await gateway.addAgent('moved', { gateway_id: newId() })
    expect(await gateway.command(await gateway.addCommand('list_models', deleted))).toMatchObject({
      status: 'failed',
      error_message: expect.stringContaining('has been deleted'),
    })
    expect(await gateway.command(await gateway.addCommand('list_models', moved))).toMatchObject({
      status: 'failed',
      error_message: expect.stringContaining('another gateway'),
    })
  })
})

describe('side by side', () => {
  it('agents work, but one does one thing at a time and in order (R2)', async () => {
    const gateway = await createTestGateway()
    const events: string[] = []
    const live = new Map<string, number>()
    let most = 0
    const action = acting(
      async ({ agent, command }) => {
        const slug = agent?.slug ?? ''
        live.set(slug, (live.get(slug) ?? 0) + 1)
        most = Math.max(
          most,
          [...live.values()].reduce((sum, count) => sum + count, 0),
        )
        expect(live.get(slug)).toBe(1)
        events.push(`${slug} ${String(command.payload['n'])}`)
        await sleep(5)
        live.set(slug, 0)
      },
      { agent: 'living' },
    )
    const slugs = ['ann', 'bob', 'cyd', 'dan', 'eve']
    const agents = await Promise.all(slugs.map((slug) => gateway.addAgent(slug)))
    const ids: string[] = []
    for (let n = 0; n < 4; n++) {
      for (const agent of agents)
        ids.push(await gateway.addCommand('list_models', agent, { payload: JSON.stringify({ n }) }))
    }
    await startRunner(gateway, [action])
    for (const id of ids) expect(await gateway.command(id)).toMatchObject({ status: 'done', attempt_count: 1 })
    for (const slug of slugs) {
      expect(events.filter((event) => event.startsWith(slug))).toEqual([0, 1, 2, 3].map((n) => `${slug} ${n}`))
    }
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(3)
  })

  it("another gateway's rows stay as they are (Q1)", async () => {
    const gateway = await createTestGateway()
    const other = newId()
    const foreign = [
      await gateway.addCommand('list_models', null, { gateway_id: other }),
      await gateway.addCommand('list_models', null, { gateway_id: other, cancel_requested_at: new Date() }),
      await gateway.addCommand('list_models', null, {
        gateway_id: other,
        status: 'running',
        leased_until: new Date(0),
        lease_owner: 'x',
        attempt_count: 9,
      }),
      await gateway.addCommand('list_models', null, { gateway_id: other, status: 'leased', attempt_count: 9 }),
    ]
    const before = await Promise.all(foreign.map((id) => gateway.row('agent_commands', id)))
    await startRunner(gateway, [acting(async () => undefined)])
    await gateway.command(await gateway.addCommand('list_models', null))
    expect(await Promise.all(foreign.map((id) => gateway.row('agent_commands', id)))).toEqual(before)
  })
})

describe('cancel (R4)', () => {
  it('ends a waiting command at once, also when all places are taken', async () => {
    const gateway = await createTestGateway()
    const begun: string[] = []
    const action = acting(async ({ command, signal }) => {
      begun.push(command.id)
      await untilAborted(signal)
    })
    await startRunner(gateway, [action])
    const busy = await gateway.addCommand('list_models', null)
    await gateway.command(busy, isRunning)
    const id = await gateway.addCommand('list_models', null)
    await requestCancel(gateway, id)
    expect(await gateway.command(id)).toMatchObject({ status: 'cancelled', attempt_count: 0 })
    expect(begun).toEqual([busy])
  })

  it('aborts a running one, takes back what it did, and says so', async () => {
    const gateway = await createTestGateway()
    const undone: string[] = []
    const action = acting(({ signal }) => untilAborted(signal), {
      undo: async ({ command }) => void undone.push(command.id),
    })
    await startRunner(gateway, [action])
    const id = await gateway.addCommand('list_models', null)
    await gateway.command(id, isRunning)
    await requestCancel(gateway, id)
    expect(await gateway.command(id)).toMatchObject({ status: 'cancelled', error_message: 'Cancelled.' })
    expect(undone).toEqual([id])
  })

  it('that comes when the work is already done changes nothing', async () => {
    const gateway = await createTestGateway()
    let finish: () => void = () => undefined
    const action = acting(
      () =>
        new Promise<void>((resolve) => {
          finish = resolve
        }),
    )
    await startRunner(gateway, [action])
    const id = await gateway.addCommand('list_models', null)
    await gateway.command(id, isRunning)
    await requestCancel(gateway, id)
    finish()
    expect(await gateway.command(id)).toMatchObject({ status: 'done' })
  })
})

describe('an interrupted command', () => {
  /** As a process leaves it that was killed while it ran the command. */
  const interrupted = (gateway: TestGateway, more: Record<string, unknown> = {}): Promise<string> =>
    gateway.addCommand('list_models', null, {
      status: 'running',
      attempt_count: 1,
      lease_owner: `${gateway.replica.identity.replicaId}/1-dead/1`,
      lease_token: 1,
      leased_until: new Date(Date.now() + LEASE_MS),
      ...more,
    })

  it.each(['leased', 'running'])(
    'in the state %s is tried once more, with a new fencing number (Q3, Q4)',
    async (status) => {
      const gateway = await createTestGateway()
      const id = await interrupted(gateway, { status })
      await startRunner(gateway, [acting(async () => undefined)])
      expect(await gateway.command(id)).toMatchObject({ status: 'done', attempt_count: 2, lease_token: 2 })
      const output = await gateway.replica.query('select text from command_output')
      expect(output).toEqual([{ text: 'Interrupted before; attempt 2 of 2.\n' }])
    },
  )

  it('becomes a dead letter on its last attempt, with what belongs to it (Q4)', async () => {
    const gateway = await createTestGateway()
    const told: string[] = []
    const action = acting(never, { onEnd: async (_tx, _context, { id }) => void told.push(id) })
    const id = await interrupted(gateway, { attempt_count: 2 })
    await startRunner(gateway, [action])
    expect(await gateway.command(id)).toMatchObject({
      status: 'dead_letter',
      error_message: expect.stringContaining('ended twice'),
    })
    expect(told).toEqual([id])
  })

  it('that somebody wanted cancelled is cancelled', async () => {
    const gateway = await createTestGateway()
    const id = await interrupted(gateway, { cancel_requested_at: new Date() })
    await startRunner(gateway, [acting(never)])
    expect(await gateway.command(id)).toMatchObject({ status: 'cancelled' })
  })

  it('under the lease of another folder is left until that lease ends (Q3)', async () => {
    const gateway = await createTestGateway()
    const id = await interrupted(gateway, { lease_owner: `${newId()}/1-other/1` })
    const first = createRunner(gateway.context, noModels, {
      actions: [acting(async () => undefined)],
      sweepMs: 3_600_000,
    })
    await first.start()
    await first.stop()
    expect(await gateway.row('agent_commands', id)).toMatchObject({ status: 'running', lease_token: 1 })
    gateway.advance(LEASE_MS + 1)
    await startRunner(gateway, [acting(async () => undefined)])
    expect(await gateway.command(id)).toMatchObject({ status: 'done' })
  })

  it('is never run by two: a process that was thought dead reports nothing (Q2, J3)', async () => {
    const gateway = await createTestGateway()
    let release: () => void = () => undefined
    const slow = acting(async ({ output }) => {
      await new Promise<void>((resolve) => {
        release = resolve
      })
      output('from the old process')
    })
    await startRunner(gateway, [slow])
    const id = await gateway.addCommand('list_models', null)
    await gateway.command(id, isRunning)
    const next = await gateway.restarted()
    await startRunner(gateway, [acting(async ({ output }) => output('from the new process'))], next)
    expect(await gateway.command(id)).toMatchObject({ status: 'done', attempt_count: 2 })
    release()
    await sleep(200)
    expect(await gateway.row('agent_commands', id)).toMatchObject({ status: 'done', lease_token: 2 })
    const texts = await gateway.replica.query<{ text: string }>('select text from command_output order by seq')
    expect(texts.map(({ text }) => text).join('')).toContain('from the new process')
    expect(texts.map(({ text }) => text).join('')).not.toContain('from the old process')
  })
})

it('a gateway that stops in order gives its command back untried', async () => {
  const gateway = await createTestGateway()
  const runner = await startRunner(gateway, [acting(({ signal }) => untilAborted(signal))])
  const id = await gateway.addCommand('list_models', null)
  await gateway.command(id, isRunning)
  await runner.stop()
  expect(await gateway.row('agent_commands', id)).toMatchObject({
    status: 'pending',
    attempt_count: 0,
    lease_owner: null,
  })
})

async function requestCancel(gateway: TestGateway, id: string): Promise<void> {
  await gateway.replica.write((tx) =>
    tx.query('update agent_commands set cancel_requested_at = now() where id = $1', [id]),
  )
}
