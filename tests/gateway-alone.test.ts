/**
 * What a gateway promises about its agents, as real processes with a real server and a model provider on the loopback that counts its calls: work
 * without a server, SIGKILL in the middle of a run, dead letters, reassignment, pause and budget, removal, and two gateways that keep apart.
 * (Commands that are killed half-way: gateway.test.ts.)
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Loopback, type Say, startLoopback } from '@hq/gateway-node/runtime/builtin/loopback-provider.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { type Caller, insert, update, type Writer } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { gatewayConverged, nothingDoubled } from './support/converged.ts'
import type { Network } from './support/proxy.ts'
import {
  commandPatch,
  type Gateway,
  isEnded,
  provision,
  type Row,
  type System,
  startSystem,
  taskPatch,
} from './support/system.ts'

type Body = Record<string, unknown>

/** A model that works: claim, submit, one sentence. Where it is, it sees from the answers of its tools. */
function worker(body: Body): Say {
  const messages = body['messages'] as { role: string; content: unknown }[]
  const answers = messages.filter(({ role }) => role === 'tool').length
  const task_id = /The task \(id ([0-9a-f-]{36})\)/.exec(JSON.stringify(messages))?.[1]
  if (!task_id) return { text: 'There is no task.' }
  if (answers === 0) return { text: 'I begin.', calls: [{ name: 'claim', input: { task_id } }] }
  if (answers === 1)
    return { calls: [{ name: 'submit_deliverable', input: { task_id, label: 'Result', text: 'It is done.' } }] }
  return { text: 'I put it up for review.' }
}

describe('a gateway and its agents', () => {
  let system: System
  let model: Loopback
  let gateway: Gateway
  let network: Network
  let writer: Writer
  const agents: Record<string, string> = {}

  beforeAll(async () => {
    system = await startSystem()
    model = await startLoopback('openai')
    network = await system.proxy()
    writer = system.writer()
    gateway = await system.gateway('one', { url: network.url, env: modelEnv() })
    for (const slug of ['ann', 'bob']) agents[slug] = await provision(system, gateway, slug, writer)
  })
  afterAll(async () => {
    await system?.stop()
    await model?.close()
  })
  beforeEach(() => model.script(worker))

  const modelEnv = (): Record<string, string> => ({
    HQ_MODEL_PROVIDER: 'openai',
    HQ_MODEL_BASE_URL: model.url,
    HQ_MODEL_API_KEY: 'sk-secret-of-the-test-provider',
    HQ_MODEL: 'gpt-4o-mini',
  })
  const calls = (): number => model.requests.length
  const agent = (slug: string): string => agents[slug] ?? ''
  /** A task of this agent; returns task and the id of the item that wakes it. */
  async function assign(slug: string, title: string, more: Row = {}): Promise<{ task: string; item: string }> {
    const task = newId()
    await writer.apply([taskPatch(system, title, agent(slug), task, more)])
    const [item] = await system.rows<{ id: string }>('select id from agent_inbox_items where task_id = $1', [task])
    return { task, item: item?.id ?? '' }
  }
  const itemIs = (id: string, status: string, ms?: number): Promise<Row> =>
    system.rowWhen('agent_inbox_items', id, (row) => row['status'] === status, ms)
  /** A change that the dispatcher looks at: something for it to wake up for after its clock was moved. */
  const nudge = async (task: string): Promise<void> => {
    const [row] = await system.rows<{ sort_order: number }>('select sort_order from tasks where id = $1', [task])
    await writer.apply([
      update('tasks', task, { sort_order: row?.sort_order }, { sort_order: Number(row?.sort_order) + 1 }),
    ])
  }
  const gateIs = (slug: string, gate: string): Promise<Row> =>
    system.rowWhen('agents', agent(slug), (row) => row['gate'] === gate)
  /** The next call hangs: resolves when it has come in. */
  function hang(): Promise<void> {
    return new Promise((resolve) => {
      model.script({ raw: () => resolve() })
    })
  }

  test('without a server it finishes what it has, survives a SIGKILL of its process, and reports once', async () => {
    await gateway.end()
    const work = [await assign('ann', 'first'), await assign('ann', 'second'), await assign('bob', 'third')]
    let go = (): void => undefined
    const released = new Promise<void>((resolve) => {
      go = resolve
    })
    const before = calls()
    model.script(async (body) => {
      await released
      return worker(body)
    })
    await gateway.start()
    await system.when('both agents ask their model', async () => calls() === before + 2, 60_000)
    network.cut()
    await system.server.kill()
    go()
    await system.when('all three calls for each of the three', async () => calls() === before + 9, 60_000)
    await system.when(
      'all three are done, as far as it knows',
      async () =>
        (await gateway.written()).filter(({ table, set }) => table === 'agent_inbox_items' && set['status'] === 'done')
          .length === 3,
      60_000,
    )
    await gateway.kill()
    await gateway.start()
    await system.server.start()
    expect(await system.rows('select 1 from entity_links')).toEqual([])
    network.heal()
    for (const { task, item } of work) {
      expect(await itemIs(item, 'done')).toMatchObject({ attempt_count: 1 })
      expect(await system.rows('select review_status from entity_links where owner_id = $1', [task])).toEqual([
        { review_status: 'submitted' },
      ])
      expect(await system.rows('select status, model from agent_runs where task_id = $1', [task])).toEqual([
        { status: 'done', model: 'gpt-4o-mini' },
      ])
    }
    expect(calls()).toBe(before + 9)
    await nothingDoubled(system)
  })

  test('killed in the middle of a run: one retry, one result', async () => {
    const asked = hang()
    const { task, item } = await assign('ann', 'killed once')
    await asked
    await gateway.kill()
    const before = calls()
    model.script(worker)
    await gateway.start()
    await gateIs('ann', 'cooldown')
    gateway.skipMinute()
    await nudge(task)
    expect(await itemIs(item, 'done')).toMatchObject({ attempt_count: 2 })
    expect(calls()).toBe(before + 3)
    const runs = await system.rows('select status from agent_runs where task_id = $1 order by started_at', [task])
    expect(runs).toEqual([{ status: 'interrupted' }, { status: 'done' }])
    expect(await system.rows('select 1 from entity_links where owner_id = $1', [task])).toHaveLength(1)
  })

  test('killed in the last attempt: a dead letter that people see, and no wake for it any more', async () => {
    await gateway.end()
    const { task, item } = await assign('bob', 'killed for good')
    await system.rows('update agent_inbox_items set max_attempts = 1 where id = $1', [item])
    const asked = hang()
    await gateway.start()
    await asked
    await gateway.kill()
    const before = calls()
    model.script(worker)
    await gateway.start()
    expect(await itemIs(item, 'dead_letter')).toMatchObject({ attempt_count: 1, error_message: expect.any(String) })
    expect(await system.rows(`select 1 from notifications where type = 'dead_letter'`)).not.toHaveLength(0)
    gateway.skipMinute()
    await nudge(task)
    // A later task of another agent is done: passes went by, and this item was left alone.
    const { item: later } = await assign('ann', 'afterwards')
    await itemIs(later, 'done')
    expect(await itemIs(item, 'dead_letter')).toMatchObject({ attempt_count: 1 })
    expect(calls()).toBe(before + 3)
  })

  test('reassigned A → B → A wakes A again', async () => {
    model.script({ text: 'I have looked at it.' })
    gateway.skipMinute()
    const { task, item } = await assign('ann', 'to and fro')
    await itemIs(item, 'done')
    for (const [from, to] of [
      ['ann', 'bob'],
      ['bob', 'ann'],
    ] as const) {
      await writer.apply([update('tasks', task, { assignee_agent_id: agent(from) }, { assignee_agent_id: agent(to) })])
      await system.when(
        `${to} is done with it`,
        async () =>
          (
            await system.rows(
              `select 1 from agent_inbox_items where task_id = $1 and status in ('pending', 'leased')`,
              [task],
            )
          ).length === 0 &&
          (await system.rows(`select 1 from agent_runs where task_id = $1`, [task])).length >= (to === 'bob' ? 2 : 3),
        60_000,
      )
    }
    const woken = await system.rows<Row>(
      'select agent_id, status from agent_runs where task_id = $1 order by started_at',
      [task],
    )
    expect(woken).toEqual(['ann', 'bob', 'ann'].map((slug) => ({ agent_id: agent(slug), status: 'done' })))
  })

  test('an answer to a comment does not count as the work that was assigned meanwhile', async () => {
    await gateway.end()
    const { task } = await assign('ann', 'talked about before it was begun')
    await writer.apply([
      insert('comments', {
        tenant_id: system.tenantId,
        entity_type: 'task',
        entity_id: task,
        body: 'When will you begin?',
        actor_type: 'human',
        actor_person_id: system.owner.principal.person_id,
      }),
    ])
    const to = (from: string, next: string) =>
      writer.apply([update('tasks', task, { assignee_agent_id: agent(from) }, { assignee_agent_id: agent(next) })])
    await to('ann', 'bob')
    await to('bob', 'ann')
    model.script((body) =>
      JSON.stringify(body).includes('Somebody commented on your task') ? { text: 'Today.' } : worker(body),
    )
    await gateway.start()
    await system.when(
      'the work is done as well',
      async () => (await system.rows('select 1 from entity_links where owner_id = $1', [task])).length === 1,
    )
    const woken = await system.rows(
      `select i.event_type from agent_runs r join agent_inbox_items i on i.id = r.inbox_item_id where r.task_id = $1 order by r.started_at`,
      [task],
    )
    expect(woken).toEqual([{ event_type: 'task_comment' }, { event_type: 'task_reassignment' }])
  })

  test('a paused agent makes no model call, and works when it is resumed', async () => {
    await writer.apply([
      update('agents', agent('ann'), { pause_requested_at: null }, { pause_requested_at: new Date().toISOString() }),
    ])
    const before = calls()
    const { task, item } = await assign('ann', 'while paused')
    expect(await gateIs('ann', 'paused')).toMatchObject({ gate_detail: 'A person has paused this agent.' })
    await nudge(task)
    const { item: other } = await assign('bob', 'not paused')
    await itemIs(other, 'done')
    expect(calls()).toBe(before + 3)
    expect(await itemIs(item, 'pending')).toMatchObject({ attempt_count: 0 })
    const [{ pause_requested_at } = {}] = await system.rows<Row>(
      'select pause_requested_at from agents where id = $1',
      [agent('ann')],
    )
    await writer.apply([update('agents', agent('ann'), { pause_requested_at }, { pause_requested_at: null })])
    await itemIs(item, 'done')
    expect(calls()).toBe(before + 6)
  })

  test('an agent over its budget makes no model call, and its screen says why', async () => {
    await writer.apply([
      insert('agent_budgets', { tenant_id: system.tenantId, agent_id: agent('ann'), monthly_limit_tokens: 1 }),
    ])
    await gateIs('ann', 'budget_exceeded')
    const before = calls()
    const { item } = await assign('ann', 'too dear')
    const { item: other } = await assign('bob', 'cheap')
    await itemIs(other, 'done')
    expect(calls()).toBe(before + 3)
    expect(await itemIs(item, 'pending')).toMatchObject({ attempt_count: 0 })
    expect(await gateIs('ann', 'budget_exceeded')).toMatchObject({
      gate_detail: expect.stringContaining('The monthly budget is used up'),
    })
  })

  test('removing an agent in the middle of its work takes branch, worktree, files and open items away', async () => {
    const [id, command] = [await provision(system, gateway, 'carl', writer), newId()]
    agents['carl'] = id
    const asked = hang()
    const { item } = await assign('carl', 'never done')
    await asked
    expect(existsSync(join(gateway.home, 'agents/carl'))).toBe(true)
    await writer.apply([commandPatch(system, gateway, id, 'remove', command)])
    expect(await system.rowWhen('agent_commands', command, isEnded)).toMatchObject({ status: 'done' })
    expect(await system.rowWhen('agents', id, (row) => row['deleted_at'] !== null)).toBeTruthy()
    expect(await readdir(join(gateway.home, 'agents'))).not.toContain('carl')
    const git = (...args: string[]): string =>
      execFileSync('git', ['-C', join(gateway.home, 'repo.git'), ...args], { encoding: 'utf8' })
    expect(git('branch', '--list', '--format=%(refname:short)')).not.toMatch(/carl/)
    expect(git('worktree', 'list')).not.toMatch(/carl/)
    expect(await system.rows('select 1 from agent_files where agent_id = $1 and deleted_at is null', [id])).toEqual([])
    await itemIs(item, 'cancelled')
    await system.when(
      'no run goes on',
      async () =>
        (await system.rows(`select 1 from agent_runs where agent_id = $1 and status = 'running'`, [id])).length === 0,
    )
    // Its name is free again.
    agents['carl'] = await provision(system, gateway, 'carl', writer)
  })

  test('a second gateway does its own work and never touches the rows of the first', async () => {
    const second = await system.gateway('two', { env: modelEnv() })
    agents['dora'] = await provision(system, second, 'dora', writer)
    // The first is away: what is meant for it waits, though the second one sees it.
    await gateway.end()
    const [command, waiting] = [newId(), await assign('bob', 'for the first')]
    await writer.apply([commandPatch(system, gateway, agent('bob'), 'update', command)])
    const { item: own } = await assign('dora', 'for the second')
    await itemIs(own, 'done')
    const check = newId()
    await writer.apply([commandPatch(system, second, agent('dora'), 'update', check)])
    expect(await system.rowWhen('agent_commands', check, isEnded)).toMatchObject({ status: 'done' })
    expect(await system.rowWhen('agent_commands', command, () => true)).toMatchObject({
      status: 'pending',
      attempt_count: 0,
    })
    expect(await itemIs(waiting.item, 'pending')).toMatchObject({ attempt_count: 0, lease_owner: null })

    // Were it to try, the server would refuse.
    const { token } = JSON.parse(await readFile(join(second.home, 'credentials.json'), 'utf8')) as { token: string }
    const headers = { authorization: `Bearer ${token}` }
    const principal = { kind: 'gateway', tenant_id: system.tenantId, gateway_id: second.id, slug: 'two' } as const
    const thief = system.writer({ headers, principal } satisfies Caller)
    for (const patch of [
      update('agent_commands', command, { status: 'pending' }, { status: 'done' }),
      update('agent_inbox_items', waiting.item, { status: 'pending' }, { status: 'leased' }),
      update('agents', agent('bob'), { status: 'ready' }, { status: 'error' }),
      update('gateways', gateway.id, { status: 'ready' }, { status: 'error' }),
    ]) {
      const { results } = await thief.push([patch])
      expect(results, patch.table).toMatchObject([{ outcome: 'rejected' }])
    }
    expect(await system.rowWhen('agent_commands', command, () => true)).toMatchObject({ status: 'pending' })

    await gateway.start()
    await itemIs(waiting.item, 'done')
    expect(await system.rowWhen('agent_commands', command, isEnded)).toMatchObject({ status: 'done' })
    await nothingDoubled(system)
    for (const each of [gateway, second]) {
      await each.end()
      await gatewayConverged(system, each)
      expect(each.text()).not.toContain('sk-secret-of-the-test-provider')
    }
  })
})
