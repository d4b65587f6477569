import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createRuntimes } from '../runtime/registry.ts'
import type { AgentRuntime } from '../runtime/runtime.ts'
import { createDispatcher, type Dispatcher, type DispatcherOptions } from './dispatcher.ts'
import { openTestGateway, scriptedRuntime, type TestGateway, until } from './testing.ts'

let gateway: TestGateway
const dispatchers: Dispatcher[] = []

beforeEach(async () => {
  gateway = await openTestGateway()
})

afterEach(async () => {
  await Promise.all(dispatchers.splice(0).map((dispatcher) => dispatcher.stop()))
  await gateway.close()
})

async function begin(
  runtime: AgentRuntime,
  options: Omit<DispatcherOptions, 'runtimes'> = {},
  context = gateway.context,
): Promise<Dispatcher> {
  const dispatcher = createDispatcher(context, {
    runtimes: createRuntimes(context, { runtimes: [runtime] }),
    ...options,
  })
  dispatchers.push(dispatcher)
  await dispatcher.start()
  return dispatcher
}

interface ItemRow {
  status: string
  attempt_count: number
  lease_token: number
  lease_owner: string | null
  leased_until: string | null
  error_message: string | null
  run_id: string
}
const item = (id: string): Promise<ItemRow> =>
  gateway.one<ItemRow>('select * from agent_inbox_items where id = $1', [id])
const becomes = (id: string, status: string): Promise<void> =>
  until(`item is ${status}`, async () => (await item(id)).status === status)
const gateOf = async (agent: string): Promise<string | null> =>
  (await gateway.one<{ gate: string | null }>('select gate from agents where id = $1', [agent])).gate
const runsOf = (id: string): Promise<{ status: string; error_message: string | null }[]> =>
  gateway.replica.query(
    'select status, error_message from agent_runs where inbox_item_id = $1 order by started_at, id',
    [id],
  )
const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(Object.assign(new Error('stopped'), { name: 'RunStopped' }))),
  )
const set = (sql: string, params: readonly string[]): Promise<unknown> =>
  gateway.replica.write((tx) => tx.query(sql, params))

describe('waking', () => {
  test('one run per wake; the task is in progress only when the work begins', async () => {
    const agent = await gateway.agent('Ann')
    const task = await gateway.task('T', agent)
    const status = () => gateway.one<{ status: string }>('select status from tasks where id = $1', [task])
    const id = await gateway.item(agent, task)
    expect(await status()).toEqual({ status: 'todo' })
    let during = ''
    await begin(
      scriptedRuntime(async () => {
        during = (await status()).status
        return { summary: 'Made it.' }
      }),
    )
    await becomes(id, 'done')
    expect(during).toBe('in_progress')
    expect(await runsOf(id)).toMatchObject([{ status: 'done' }])
    expect(await item(id)).toMatchObject({ summary: 'Made it.', attempt_count: 1, lease_owner: null })
    await until('the gate says: nothing to do', async () => (await gateOf(agent)) === 'no_work')
  })

  test('a change of rows wakes at once, without a timer (D1)', async () => {
    const agent = await gateway.agent('Ann')
    await begin(
      scriptedRuntime(async () => undefined),
      { sweepMs: 3_600_000 },
    )
    const id = await gateway.item(agent, await gateway.task('T', agent))
    await becomes(id, 'done')
  })

  test('nothing happens before the workspace is loaded: a budget may still be on its way (D7)', async () => {
    const load = gateway.notLoadedYet()
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    const runtime = scriptedRuntime(async () => undefined)
    const dispatcher = await begin(runtime)
    await dispatcher.pass()
    expect(runtime.woken).toEqual([])
    expect(await gateOf(agent)).toBeNull()
    load()
    await becomes(id, 'done')
  })

  test('items of another gateway, and agents that live elsewhere, are not touched (D2)', async () => {
    const elsewhere = randomUUID()
    const mine = await gateway.agent('Ann')
    const moved = await gateway.agent('Moved', { gateway_id: elsewhere })
    const theirs = await gateway.item(mine, null, { gateway_id: elsewhere })
    const nobodys = await gateway.item(mine, null, { gateway_id: null })
    const away = await gateway.item(moved, null)
    const runtime = scriptedRuntime(async () => undefined)
    const dispatcher = await begin(runtime)
    await dispatcher.pass()
    expect(runtime.woken).toEqual([])
    for (const id of [theirs, nobodys, away]) expect((await item(id)).status).toBe('pending')
    expect(await gateOf(moved)).toBeNull()
  })

  test('at most two runs at once, one per agent, the most urgent first (D3)', async () => {
    const agents = await Promise.all(['Ann', 'Bob', 'Cid'].map((name) => gateway.agent(name)))
    const items: string[] = []
    for (const [index, agent] of agents.entries()) {
      const priority = (['low', 'high', 'urgent'] as const)[index] ?? 'low'
      const task = await gateway.task(`T${index}`, agent, { priority })
      items.push(await gateway.item(agent, task), await gateway.item(agent, await gateway.task(`more ${index}`, agent)))
    }
    const release = Promise.withResolvers<void>()
    const alive = new Set<string>()
    let most = 0
    const runtime = scriptedRuntime(async (input) => {
      expect(alive.has(input.agent.id)).toBe(false)
      alive.add(input.agent.id)
      most = Math.max(most, alive.size)
      await release.promise
      alive.delete(input.agent.id)
      return undefined
    })
    await begin(runtime)
    await until('two are woken', () => runtime.woken.length === 2)
    expect(runtime.woken.map((input) => input.agent.name).sort()).toEqual(['Bob', 'Cid'])
    await until('the third says why it waits', async () => (await gateOf(agents[0] ?? '')) === 'concurrency')
    expect(await gateOf(agents[2] ?? '')).toBe('working')
    release.resolve()
    for (const id of items) await becomes(id, 'done')
    expect(most).toBe(2)
  })

  test('A→B→A wakes A again, and the older assignment does not wake twice', async () => {
    const [a, b] = [await gateway.agent('Ann'), await gateway.agent('Bob')]
    const task = await gateway.task('T', a)
    const runtime = scriptedRuntime(async () => undefined)
    await begin(runtime)
    await becomes(await gateway.item(a, task, { dedup_key: `task_assignment:${task}:${a}:0` }), 'done')
    const assign = (agent: string, generation: string) =>
      set('update tasks set assignee_agent_id = $2, assignment_generation = $3 where id = $1', [
        task,
        agent,
        generation,
      ])
    await assign(b, '1')
    await assign(a, '2')
    const late = await gateway.item(b, task, {
      event_type: 'task_reassignment',
      dedup_key: `task_reassignment:${task}:${b}:1`,
    })
    const again = await gateway.item(a, task, {
      event_type: 'task_reassignment',
      dedup_key: `task_reassignment:${task}:${a}:2`,
    })
    await becomes(again, 'done')
    await becomes(late, 'cancelled')
    expect(runtime.woken.map((input) => input.agent.name)).toEqual(['Ann', 'Ann'])
  })

  test('an item that arrives before its task waits for it (C3)', async () => {
    const agent = await gateway.agent('Ann')
    const missing = randomUUID()
    const early = await gateway.item(agent, missing)
    const runtime = scriptedRuntime(async () => undefined)
    const dispatcher = await begin(runtime)
    await dispatcher.pass()
    expect((await item(early)).status).toBe('pending')
    await gateway.task('late', agent, { id: missing })
    await becomes(early, 'done')
  })

  test('blocked work waits, its gate says for what, and one wake serves assignment and release (C4)', async () => {
    const agent = await gateway.agent('Ann')
    const blocker = await gateway.task('First', agent, { assignee_type: null, assignee_agent_id: null })
    const task = await gateway.task('Second', agent)
    await gateway.insert('task_relations', { source_task_id: blocker, target_task_id: task, relation_type: 'blocks' })
    const id = await gateway.item(agent, task)
    const runtime = scriptedRuntime(async () => undefined)
    await begin(runtime)
    expect(
      (await gateway.one<{ gate_detail: string }>('select gate_detail from agents where id = $1', [agent])).gate_detail,
    ).toBe('“Second” waits for “First”.')
    const released = await gateway.item(agent, task, {
      event_type: 'blocker_resolved',
      dedup_key: `blocker_resolved:${task}:${blocker}:0`,
    })
    await set(`update tasks set status = 'done' where id = $1`, [blocker])
    await becomes(id, 'done')
    await becomes(released, 'done')
    expect(runtime.woken).toHaveLength(1)
  })
})

describe('what ends an item', () => {
  test.each([
    ['deleted', 'update tasks set deleted_at = now() where id = $1', /deleted/],
    ['cancelled', `update tasks set status = 'cancelled' where id = $1`, /cancelled/],
    ['done', `update tasks set status = 'done' where id = $1`, /done already/],
    [
      'unassigned',
      'update tasks set assignee_agent_id = null, assignee_type = null where id = $1',
      /no longer assigned/,
    ],
  ])('the task is %s: cancelled with a reason, and nobody is woken (C1, C2)', async (_, sql, reason) => {
    const agent = await gateway.agent('Ann')
    const task = await gateway.task('T', agent)
    const id = await gateway.item(agent, task)
    await set(sql, [task])
    const runtime = scriptedRuntime(async () => undefined)
    await begin(runtime)
    await becomes(id, 'cancelled')
    expect((await item(id)).error_message).toMatch(reason)
    expect(runtime.woken).toEqual([])
  })

  test('conversation goes on about a finished task (C1)', async () => {
    const agent = await gateway.agent('Ann')
    const task = await gateway.task('T', agent, { status: 'done' })
    await begin(scriptedRuntime(async () => undefined))
    await becomes(
      await gateway.item(agent, task, { event_type: 'task_comment', dedup_key: `task_comment:x:${agent}` }),
      'done',
    )
    expect(await gateway.one('select status from tasks where id = $1', [task])).toEqual({ status: 'done' })
  })

  test('cancelling the task during a run stops it before the next model call (W2)', async () => {
    const agent = await gateway.agent('Ann')
    const task = await gateway.task('T', agent)
    const id = await gateway.item(agent, task)
    let calls = 0
    await begin(
      scriptedRuntime(async (_, hooks) => {
        calls += 1
        await set(`update tasks set status = 'cancelled' where id = $1`, [task])
        await hooks.beforeModelCall()
        calls += 1
        return undefined
      }),
    )
    await becomes(id, 'cancelled')
    expect(calls).toBe(1)
    expect(await runsOf(id)).toEqual([{ status: 'cancelled', error_message: 'The task was cancelled.' }])
  })
})

describe('leases', () => {
  test('a run that waits for its model when the task is cancelled is cut off', async () => {
    const agent = await gateway.agent('Ann')
    const task = await gateway.task('T', agent)
    const id = await gateway.item(agent, task)
    const runtime = scriptedRuntime(
      (_input, _hooks, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    await begin(runtime)
    await becomes(id, 'leased')
    await set(`update tasks set status = 'cancelled' where id = $1`, [task])
    await becomes(id, 'cancelled')
    expect(await item(id)).toMatchObject({ error_message: 'The task was cancelled.' })
  })

  test('a lease is renewed while the run lives (W1)', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    const end = Promise.withResolvers<void>()
    await begin(
      scriptedRuntime(async () => {
        await end.promise
        return undefined
      }),
      { leaseMs: 300 },
    )
    await becomes(id, 'leased')
    const first = await item(id)
    await until(
      'it is renewed twice',
      async () => Date.parse((await item(id)).leased_until ?? '') > Date.parse(first.leased_until ?? '') + 200,
    )
    expect(await item(id)).toMatchObject({ lease_token: first.lease_token, attempt_count: 1 })
    end.resolve()
    await becomes(id, 'done')
  })

  /** A process that dies: its rows stay as they are, its timers and runs are gone. */
  async function crash(id: string, leaseMs: number): Promise<void> {
    const dead = createDispatcher(gateway.newProcess(), {
      runtimes: createRuntimes(gateway.context, {
        runtimes: [{ name: 'builtin', run: () => new Promise(() => undefined) }],
      }),
      leaseMs,
    })
    await dead.start()
    await becomes(id, 'leased')
    const [run] = dead.live()
    // A killed process never renews; in this one the timers must be silenced by hand.
    await set(`update agent_inbox_items set lease_owner = 'dead ' || lease_owner where id = $1`, [id])
    run?.stop({ code: 'lease_lost', why: 'killed' }, 'hard')
    const stopped = dead.stop()
    await Promise.race([stopped, new Promise((resolve) => setTimeout(resolve, 50))])
  }

  test('a crash: nobody takes the work before the lease ends, then it is tried again (D4)', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    await crash(id, 60_000)
    const runtime = scriptedRuntime(async () => undefined)
    const dispatcher = await begin(runtime, {}, gateway.newProcess())
    expect(await gateOf(agent)).toBe('active_lease')
    expect(runtime.woken).toEqual([])
    gateway.advance(61_000)
    await dispatcher.pass()
    expect(await item(id)).toMatchObject({ status: 'pending', attempt_count: 1 })
    expect(await runsOf(id)).toMatchObject([{ status: 'interrupted' }])
    expect(await gateOf(agent)).toBe('cooldown')
    gateway.advance(31_000)
    await dispatcher.pass()
    await becomes(id, 'done')
    expect(runtime.woken.map(({ attempt }) => attempt)).toEqual([2])
    expect(await item(id)).toMatchObject({ attempt_count: 2, lease_token: 2 })
  })

  test('a crash in the last attempt ends as a dead letter, wakes stop, and people are told once (D4)', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent), { attempt_count: 2 })
    await crash(id, 60_000)
    gateway.advance(61_000)
    const runtime = scriptedRuntime(async () => undefined)
    const dispatcher = await begin(runtime, {}, gateway.newProcess())
    await dispatcher.pass()
    expect(await item(id)).toMatchObject({ status: 'dead_letter', attempt_count: 3 })
    for (let round = 0; round < 5; round += 1) {
      gateway.advance(3_600_000)
      await dispatcher.pass()
    }
    expect(runtime.woken).toEqual([])
    expect(await gateway.replica.query(`select 1 from notifications where type = 'dead_letter'`)).toHaveLength(1)
    expect(await gateOf(agent)).toBe('no_work')
  })

  test('who has lost the lease reports nothing (W1, fencing)', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    await begin(
      scriptedRuntime((_input, _hooks, signal) => never(signal)),
      { leaseMs: 300 },
    )
    await becomes(id, 'leased')
    await set(
      `update agent_inbox_items set lease_owner = 'another', lease_token = lease_token + 1, leased_until = now() + interval '1 hour' where id = $1`,
      [id],
    )
    await until('the run has ended', async () => (await runsOf(id))[0]?.status === 'cancelled')
    expect(await item(id)).toMatchObject({ status: 'leased', lease_owner: 'another' })
  })

  test('stop gives the work back with its attempt (D6)', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    const dispatcher = await begin(scriptedRuntime((_input, _hooks, signal) => never(signal)))
    await becomes(id, 'leased')
    await dispatcher.stop()
    expect(await item(id)).toMatchObject({ status: 'pending', attempt_count: 0, lease_owner: null })
    expect(await runsOf(id)).toMatchObject([{ status: 'cancelled' }])
    const again = scriptedRuntime(async () => undefined)
    await begin(again, {}, gateway.newProcess())
    await becomes(id, 'done')
    expect(again.woken).toHaveLength(1)
  })

  test('agentStops ends the runs of a removed agent and waits for them (D6)', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    const dispatcher = await begin(scriptedRuntime((_input, _hooks, signal) => never(signal)))
    await becomes(id, 'leased')
    await gateway.context.agentStops.stop(agent, 'The agent is being removed.')
    expect(dispatcher.live()).toEqual([])
    expect(await item(id)).toMatchObject({ status: 'cancelled', error_message: 'The agent is being removed.' })
  })
})

describe('moving', () => {
  test('a run that is ended for a move goes back, with its attempt: it is begun again at the new place', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    const dispatcher = await begin(scriptedRuntime((_input, _hooks, signal) => never(signal)))
    await becomes(id, 'leased')
    // As the action does it: the gate is shut first.
    await gateway.replica.write((tx) => tx.query(`update agents set status = 'provisioning' where id = $1`, [agent]))
    await gateway.context.agentStops.stop(agent, 'Ann moves to the barn', 'moved')
    expect(dispatcher.live()).toEqual([])
    expect(await item(id)).toMatchObject({ status: 'pending', attempt_count: 0, lease_owner: null })
  })

  test('an agent that moves to another gateway during a run: it is aborted, and its item is left to the other', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    const dispatcher = await begin(scriptedRuntime((_input, _hooks, signal) => never(signal)))
    await becomes(id, 'leased')
    const elsewhere = randomUUID()
    await gateway.replica.write(async (tx) => {
      await tx.query('update agents set gateway_id = $2, epoch = epoch + 1 where id = $1', [agent, elsewhere])
      await tx.query(
        `update agent_inbox_items set gateway_id = $2, status = 'pending', lease_owner = null, leased_until = null where id = $1`,
        [id, elsewhere],
      )
    })
    await until('no run is alive', () => dispatcher.live().length === 0)
    expect(await runsOf(id)).toMatchObject([{ status: 'cancelled' }])
    expect((await item(id)).status).toBe('pending')
  })
})

describe('failures', () => {
  const failing = (code: 'internal' | 'unauthorized' | 'unreachable') =>
    scriptedRuntime(async () => ({ status: 'failed', error: { code, message: `It failed: ${code}.` } }))

  async function passUntil(dispatcher: Dispatcher, what: string, check: () => Promise<boolean>): Promise<void> {
    await until(what, async () => {
      gateway.advance(901_000)
      await dispatcher.pass()
      await Promise.all(dispatcher.live().map((run) => run.ended))
      return check()
    })
  }

  test('three tries with rests between, then a dead letter; no more wakes', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    const runtime = failing('internal')
    const dispatcher = await begin(runtime)
    await becomes(id, 'failed')
    await until('it rests', async () => (await gateOf(agent)) === 'cooldown')
    expect(await item(id)).toMatchObject({ attempt_count: 1, error_message: 'It failed: internal.' })
    await passUntil(dispatcher, 'the dead letter', async () => (await item(id)).status === 'dead_letter')
    await dispatcher.pass()
    expect(runtime.woken.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect((await runsOf(id)).map(({ status }) => status)).toEqual(['failed', 'failed', 'failed'])
  })

  test('wrong settings never cost the work; after five failures the agent waits for a person, who resumes it', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    let broken = true
    const runtime = scriptedRuntime(async () =>
      broken ? { status: 'failed', error: { code: 'unauthorized', message: 'The key was refused.' } } : undefined,
    )
    const dispatcher = await begin(runtime)
    await passUntil(dispatcher, 'it is stalled', async () => (await gateOf(agent)) === 'stalled')
    expect(runtime.woken).toHaveLength(5)
    expect(await item(id)).toMatchObject({ status: 'failed', attempt_count: 0 })
    expect(await gateway.replica.query(`select 1 from notifications where type = 'run_failed'`)).toHaveLength(1)
    broken = false
    await set('update agents set pause_requested_at = now() where id = $1', [agent])
    await until('it is paused', async () => (await gateOf(agent)) === 'paused')
    await set('update agents set pause_requested_at = null where id = $1', [agent])
    await becomes(id, 'done')
  })

  test('a restart does not forget that an agent is stalled, nor that a person acted', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    const first = await begin(failing('unauthorized'))
    await passUntil(first, 'it is stalled', async () => (await gateOf(agent)) === 'stalled')
    await first.stop()
    const runtime = scriptedRuntime(async () => undefined)
    const second = await begin(runtime, {}, gateway.newProcess())
    await second.pass()
    expect(runtime.woken).toEqual([])
    await gateway.insert('agent_commands', {
      gateway_id: gateway.context.gatewayId,
      agent_id: agent,
      action: 'restart_runtime',
      requested_by: randomUUID(),
    })
    await becomes(id, 'done')
  })

  test.each([
    ['a person’s device is ahead', 600_000, 0],
    ['this gateway’s clock was put back after a person had acted', 0, -600_000],
  ])('%s: failures count, and the agent rests and gives up (A1)', async (_, aheadMs, backMs) => {
    const agent = await gateway.agent('Ann')
    const task = await gateway.task('T', agent)
    const { replica } = gateway
    const runtime = failing('unauthorized')
    const dispatcher = await begin(runtime)
    await gateway.item(agent, task, { created_at: new Date(gateway.context.now() + aheadMs).toISOString() })
    await until('it has failed', async () => (await gateOf(agent)) === 'cooldown')
    gateway.advance(backMs)
    await replica.write((tx) =>
      tx.query(
        `update agent_runs set started_at = started_at + a.back, ended_at = ended_at + a.back from (select make_interval(secs => $1::float8 / 1000) as back) a`,
        [backMs],
      ),
    )
    for (let n = 0; n < 6; n++) {
      await dispatcher.pass()
      await Promise.all(dispatcher.live().map((run) => run.ended))
    }
    expect(runtime.woken.length).toBeLessThanOrEqual(2)
    await passUntil(dispatcher, 'it is stalled', async () => (await gateOf(agent)) === 'stalled')
    expect(runtime.woken.length).toBeLessThanOrEqual(7)
  })

  test('an unreachable provider never makes it give up (G5)', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    const runtime = failing('unreachable')
    const dispatcher = await begin(runtime)
    await passUntil(dispatcher, 'it tried eight times', async () => runtime.woken.length >= 8)
    expect(await item(id)).toMatchObject({ status: 'failed', attempt_count: 0 })
  })
})

describe('pause and budget', () => {
  test('a paused agent is not woken, says so, and goes on when resumed', async () => {
    const agent = await gateway.agent('Ann', { pause_requested_at: new Date().toISOString() })
    const id = await gateway.item(agent, await gateway.task('T', agent))
    const runtime = scriptedRuntime(async () => undefined)
    await begin(runtime)
    expect(await gateOf(agent)).toBe('paused')
    expect(await gateway.one('select status from agents where id = $1', [agent])).toEqual({ status: 'paused' })
    expect(runtime.woken).toEqual([])
    await set('update agents set pause_requested_at = null where id = $1', [agent])
    await becomes(id, 'done')
  })

  test('a pause during a run lets the step end, makes no further call, and keeps the attempt (W2)', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    let steps = 0
    await begin(
      scriptedRuntime(async (_, hooks) => {
        await set('update agents set pause_requested_at = now() where id = $1', [agent])
        steps += 1
        await hooks.beforeModelCall()
        steps += 1
        return undefined
      }),
    )
    await becomes(id, 'pending')
    expect(steps).toBe(1)
    expect(await item(id)).toMatchObject({ attempt_count: 0 })
    expect(await runsOf(id)).toEqual([{ status: 'cancelled', error_message: 'The agent was paused by a person.' }])
  })

  test('over budget: no wake, the gate says until when; a raised limit opens it', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    const usage = { gateway_id: gateway.context.gatewayId, agent_id: agent, provider: 'openai', model: 'x' }
    await gateway.insert('agent_usage', {
      ...usage,
      cost_usd: 3,
      occurred_at: new Date(gateway.context.now() - 40 * 86_400_000).toISOString(),
    })
    await gateway.insert('agent_usage', {
      ...usage,
      cost_usd: 2.5,
      occurred_at: new Date(gateway.context.now()).toISOString(),
    })
    const budget = await gateway.insert('agent_budgets', { agent_id: agent, monthly_limit_usd: 2.5 })
    const runtime = scriptedRuntime(async () => undefined)
    await begin(runtime)
    expect(await gateway.one('select gate, gate_until is not null as ends from agents where id = $1', [agent])).toEqual(
      { gate: 'budget_exceeded', ends: true },
    )
    expect(runtime.woken).toEqual([])
    expect(await gateway.replica.query(`select 1 from notifications where type = 'budget_exceeded'`)).toHaveLength(1)
    await set('update agent_budgets set monthly_limit_usd = 9 where id = $1', [budget])
    await becomes(id, 'done')
  })

  test('the pause of the gateway holds every agent', async () => {
    const agent = await gateway.agent('Ann')
    const id = await gateway.item(agent, await gateway.task('T', agent))
    await set('update gateways set pause_requested_at = now() where id = $1', [gateway.context.gatewayId])
    const runtime = scriptedRuntime(async () => undefined)
    await begin(runtime)
    expect(await gateOf(agent)).toBe('gateway_paused')
    await set('update gateways set pause_requested_at = null where id = $1', [gateway.context.gatewayId])
    await becomes(id, 'done')
  })
})
