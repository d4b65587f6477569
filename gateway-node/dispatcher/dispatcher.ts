/**
 * Wakes this gateway's agents when there is work, and only then.
 *
 *  D1 A pass looks at the rows, without a model and without the network (P10); passes are serial, begun by changes of rows. A timer only serves what
 *     time alone changes: rests, leases, the month's end.
 *  D2 Only items addressed to this gateway, for agents that live here.
 *  D3 One run per agent, at most `maxRunsAtOnce` at work per gateway (one that waits for a person's answer keeps nobody else from working); across agents the most urgent item first, ageing keeps all from starving (R4).
 *  D4 An item is leased (owner, fencing number, end) in the transaction that opens its run. A lease that ended without its holder goes back, or
 *     to `dead_letter` after the last attempt; nothing else is ever taken from a holder (P9).
 *  D5 The verdict of the gates stands in `agents.gate…`, written when it changes; `null` means that nothing holds the agent back.
 *  D6 `stop` gives leases back with their attempts; a removed agent's runs are aborted, and `agentStops` waits for them.
 *  D7 Nothing is decided before the first load of the workspace is complete: a budget or a pause that has not arrived yet must not be missed.
 */
import { join } from 'node:path'
import { budgetState } from '@hq/shared/domain/budget.ts'
import { countFailures, judge, MAX_RUNS_AT_ONCE, type Verdict } from '@hq/shared/domain/gates.ts'
import { compareWork } from '@hq/shared/domain/runs.ts'
import type { TableName } from '@hq/shared/schema/tables.ts'
import type { Changes } from '@hq/shared/sync/contract.ts'
import type { Actions } from '../local-api/actions.ts'
import { gatewayActions } from '../local-api/gateway-actions.ts'
import { createRuntimes, type Runtimes } from '../runtime/registry.ts'
import type { GatewayContext, Service } from '../service.ts'
import { type ItemState, itemState } from './actionable.ts'
import { createPeople } from './people.ts'
import { createPublisher } from './publish.ts'
import { type LiveRun, noteDeadLetter, startRun } from './run.ts'
import {
  type Agent,
  cancelItem,
  endOrphanedRuns,
  type Item,
  iso,
  lease,
  type Snapshot,
  sweepItem,
  takeSnapshot,
} from './store.ts'

export interface DispatcherOptions {
  readonly runtimes?: Runtimes
  readonly actions?: Actions
  readonly maxRunsAtOnce?: number
  /** How long a lease lasts without renewal, in ms. */
  readonly leaseMs?: number
  /** Changes that come within this time are looked at together, in ms. */
  readonly settleMs?: number
  /** The longest time between two passes, in ms. */
  readonly sweepMs?: number
}

export interface Dispatcher extends Service {
  /** Resolves when a pass that began after this call is done. */
  pass(): Promise<void>
  readonly live: () => readonly LiveRun[]
}

const WATCHED: readonly TableName[] = [
  'agent_inbox_items',
  'agents',
  'agent_budgets',
  'agent_commands',
  'approvals',
  'tasks',
  'task_relations',
  'gateways',
  'workspace',
]

/** ms between the loss of a task and the end of a run that does not notice. */
const CUT_OFF_MS = 2_000

export function createDispatcher(context: GatewayContext, options: DispatcherOptions = {}): Dispatcher {
  const { replica, gatewayId, tenantId, now, newId, log, processToken } = context
  const runtimes = options.runtimes ?? createRuntimes(context)
  const actions = options.actions ?? gatewayActions(context)
  const { maxRunsAtOnce = MAX_RUNS_AT_ONCE, leaseMs = 60_000, settleMs = 20, sweepMs = 60_000 } = options
  const people = createPeople(join(context.home, 'dispatcher.json'), (message) => log('warn', message))
  const publish = createPublisher(context)
  const live = new Map<string, LiveRun>()
  /** By run. */
  const cutOffs = new Map<string, NodeJS.Timeout>()
  let watched: ReadonlySet<string> = new Set()
  let running = false
  let timer: NodeJS.Timeout | undefined
  let dueAt = 0
  /** How long the last pass took, in ms: the next one leaves the machine at least twice that to others. */
  let took = 0
  let current: Promise<void> | undefined
  let queued: Promise<void> | undefined
  const ends: (() => void)[] = []

  /** The earlier of two wishes stands, so that rows that never stop changing cannot put a pass off for ever. By the clock that timers go
   *  by: after a suspend, or when the clock was set, an old timer must not pass for an early one. */
  function schedule(inMs: number): void {
    if (!running) return
    const due = performance.now() + Math.max(0, Math.min(inMs, sweepMs))
    if (timer && dueAt <= due) return
    clearTimeout(timer)
    dueAt = due
    timer = setTimeout(() => void pass(), due - performance.now())
  }

  /** D1: one at a time; calls during a pass share the one that follows it. */
  function pass(): Promise<void> {
    if (!current) {
      current = once().finally(() => {
        current = undefined
      })
      return current
    }
    queued ??= current.then(() => {
      queued = undefined
      return pass()
    })
    return queued
  }

  async function once(): Promise<void> {
    if (!running) return
    clearTimeout(timer)
    timer = undefined
    const began = performance.now()
    looking = true
    let next: number | undefined
    try {
      next = await look()
    } catch (error) {
      log('error', 'a pass of the dispatcher failed; it will be repeated', {
        error: error instanceof Error ? error.message : String(error),
      })
      next = now() + 5_000
    }
    took = performance.now() - began
    looking = false
    schedule(pending ? Math.max(settleMs, took * 2) : next === undefined ? sweepMs : next - now() + 20)
    pending = false
  }

  let looking = false
  /** Set when rows changed while a pass was looking. */
  let pending = false
  function onRows(changed: Changes): void {
    const ours = WATCHED.filter((table) => changed.has(table))
    // A pass that is looking may have read the rows before this change, and does not know yet which tasks concern it.
    if (looking) pending ||= ours.length > 0
    else if (ours.some((table) => table !== 'tasks' || concerns(changed.get(table)))) schedule(Math.max(settleMs, took))
  }

  /** Most changes of tasks have nothing to do with an open item. */
  const concerns = (ids: ReadonlySet<string> | 'many' | undefined): boolean =>
    ids === 'many' || (ids !== undefined && [...ids].some((id) => watched.has(id)))

  /** One pass; when time alone will change something, in milliseconds since 1970. */
  async function look(): Promise<number | undefined> {
    if (!replica.status().initial.done) return undefined // D7; `onStatus` begins the first pass
    let rows = await takeSnapshot(replica, gatewayId, now())
    stopWhatIsOver(rows)
    asking = await askingRuns()
    if (await sweep(rows)) rows = await takeSnapshot(replica, gatewayId, now())
    watched = rows.watched
    await people.notice(rows, now())

    const states = new Map<string, ItemState>()
    for (const item of rows.items) {
      states.set(
        item.id,
        itemState(
          item,
          item.task_id === null ? undefined : rows.tasks.get(item.task_id),
          blockersOf(rows, item),
          now(),
        ),
      )
    }
    const over = rows.items.filter((item) => item.status !== 'leased' && states.get(item.id)?.state === 'over')
    if (over.length > 0) {
      await replica.write(async (tx) => {
        for (const item of over) await cancelItem(tx, item, (states.get(item.id) as { why: string }).why, now())
      })
    }
    await wake(rows, states)
    const verdicts = new Map(rows.agents.map((agent) => [agent.id, verdictOf(rows, states, agent)]))
    await publish(rows, verdicts, people)
    const times = [...verdicts.values()].flatMap((verdict) =>
      'until' in verdict && verdict.until !== undefined ? [verdict.until] : [],
    )
    for (const item of rows.items)
      if (item.status === 'leased' && item.leased_until !== null && !isOurs(item))
        times.push(Date.parse(item.leased_until))
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Live runs that wait for a person's answer, as of this pass. */
  let asking: ReadonlySet<string> = new Set()
  async function askingRuns(): Promise<Set<string>> {
    if (live.size === 0) return new Set()
    const found = await replica.query<{ run_id: string }>(
      `select run_id from approvals where status = 'pending' and deleted_at is null and run_id = any($1::uuid[])`,
      [[...live.keys()]],
    )
    return new Set(found.map(({ run_id }) => run_id))
  }

  const isOurs = (item: Item): boolean => [...live.values()].some((run) => run.itemId === item.id)
  const blockersOf = (rows: Snapshot, item: Item): readonly string[] =>
    item.task_id === null ? [] : (rows.blockers.get(item.task_id) ?? [])

  /** Starts runs, the most urgent first, until the gates are shut (D3). */
  async function wake(rows: Snapshot, states: Map<string, ItemState>): Promise<void> {
    for (;;) {
      if (!running) return
      const open = rows.agents.filter((agent) => verdictOf(rows, states, agent).code === 'open')
      const ready = rows.items.filter(
        (item) =>
          item.status !== 'leased' &&
          states.get(item.id)?.state === 'ready' &&
          open.some((agent) => agent.id === item.agent_id),
      )
      const item = ready.sort((a, b) => compareWork(pickable(rows, a), pickable(rows, b), now()))[0]
      const agent = open.find(({ id }) => id === item?.agent_id)
      if (!item || !agent) return
      states.set(item.id, { state: 'waits', why: 'It is being worked on.' })
      await begin(rows, agent, item)
    }
  }

  const pickable = (rows: Snapshot, item: Item) => ({
    id: item.id,
    priority: (item.task_id === null ? undefined : rows.tasks.get(item.task_id)?.priority) ?? item.priority,
    createdAt: Date.parse(item.created_at),
  })

  /** D4. */
  async function begin(rows: Snapshot, agent: Agent, item: Item): Promise<void> {
    const runId = newId()
    const { result: held } = await replica.write(
      (tx) =>
        lease(tx, item, {
          id: runId,
          tenantId,
          gatewayId,
          runtime: agent.runtime,
          now: now(),
          leaseMs,
          owner: processToken,
        }),
      { runId },
    )
    if (!held) return
    const title =
      (item.task_id === null ? undefined : rows.tasks.get(item.task_id)?.title) ?? item.event_type.replaceAll('_', ' ')
    const run = startRun(
      { context, actions, runtime: runtimes.get(agent.runtime), leaseMs },
      agent,
      item,
      held,
      runId,
      `“${title}”`,
    )
    live.set(runId, run)
    log('info', 'agent woken', { agent: agent.slug, event: item.event_type, runId })
    void run.ended.then(() => {
      live.delete(runId)
      clearTimeout(cutOffs.get(runId))
      cutOffs.delete(runId)
      return pass()
    })
  }

  function verdictOf(rows: Snapshot, states: ReadonlyMap<string, ItemState>, agent: Agent): Verdict {
    const items = rows.items.filter((item) => item.agent_id === agent.id)
    const work = items.filter((item) => item.status !== 'leased').map((item) => states.get(item.id))
    const times = work.flatMap((state) => (state?.state === 'waits' && state.at !== undefined ? [state.at] : []))
    const held = work.find((state) => state?.state === 'waits' && state.at === undefined)
    const foreign = items.filter((item) => item.status === 'leased' && item.leased_until !== null && !isOurs(item))
    const run = [...live.values()].find(({ agentId }) => agentId === agent.id)
    const money = rows.money.get(agent.id)
    if (!money) throw new Error('a snapshot without the budget of an agent')
    return judge({
      now: now(),
      gateway: {
        status: rows.gateway?.status ?? 'ready',
        pauseRequested: (rows.gateway?.pause_requested_at ?? null) !== null,
      },
      agent: {
        status: agent.status,
        statusReason: agent.status_reason,
        pauseRequested: agent.pause_requested_at !== null,
      },
      working: run && { title: asking.has(run.id) ? `${run.title}, and waits for a person’s answer` : run.title },
      runsAtOnce: [...live.keys()].filter((id) => !asking.has(id)).length,
      maxRunsAtOnce,
      failures: countFailures(rows.ended.get(agent.id) ?? [], people.actedAt(rows, agent.id, now())),
      foreignLeaseUntil:
        foreign.length === 0 ? undefined : Math.max(...foreign.map((item) => Date.parse(item.leased_until ?? ''))),
      budget: { ...money, state: budgetState(money.limits, money.usage), monthEnd: rows.month.end },
      work: {
        actionable: work.filter((state) => state?.state === 'ready').length,
        nextAt: times.length === 0 ? undefined : Math.min(...times),
        heldBack: held?.state === 'waits' ? held.why : undefined,
      },
    })
  }

  /**
   * Runs whose ground has gone: told to stop. Most stop softly, before their next model call. One whose task was taken away is cut off when it has not
   * come to that within `CUT_OFF_MS`: it may be waiting for a model, or for a command. (What took the task away may have been the run itself, which says goodbye then.)
   */
  function stopWhatIsOver(rows: Snapshot): void {
    for (const run of live.values()) {
      const agent = rows.agents.find(({ id }) => id === run.agentId)
      if (!agent) run.stop({ code: 'moved', why: 'The agent does not belong to this gateway any more.' }, 'hard')
      else if (agent.status === 'removing') run.stop({ code: 'removed', why: 'The agent is being removed.' }, 'hard')
      else cutOffIfTaken(rows, run)
    }
  }

  function cutOffIfTaken(rows: Snapshot, run: LiveRun): void {
    const item = rows.items.find(({ id }) => id === run.itemId)
    const task = run.taskId === null ? undefined : rows.tasks.get(run.taskId)
    if (!item || !task || task.status === 'done' || cutOffs.has(run.id)) return
    const state = itemState({ ...item, not_before: null }, task, [], now())
    if (state.state !== 'over') return
    const stop = { code: 'task_over', why: state.why } as const
    cutOffs.set(
      run.id,
      setTimeout(() => run.stop(stop, 'hard'), CUT_OFF_MS),
    )
  }

  /** D4. True when something changed. */
  async function sweep(rows: Snapshot): Promise<boolean> {
    const dead = rows.items.filter(
      (item) => item.status === 'leased' && !isOurs(item) && Date.parse(item.leased_until ?? iso(0)) <= now(),
    )
    const ids = [...live.keys()]
    const orphans = await replica.query(
      `select 1 from agent_runs r where r.gateway_id = $1 and r.status = 'running' and not (r.id = any($2::uuid[]))
         and not exists (select 1 from agent_inbox_items i where i.run_id = r.id and i.status = 'leased') limit 1`,
      [gatewayId, ids],
    )
    if (dead.length === 0 && orphans.length === 0) return false
    await replica.write(async (tx) => {
      for (const item of dead) {
        if ((await sweepItem(tx, item, now())) === 'dead_letter')
          await noteDeadLetter(tx, { tenantId, gatewayId }, item, iso(now()))
      }
      await endOrphanedRuns(tx, gatewayId, ids, now())
    })
    return true
  }

  async function end(runs: readonly LiveRun[], stop: Parameters<LiveRun['stop']>[0]): Promise<void> {
    for (const run of runs) run.stop(stop, 'hard')
    await Promise.all(runs.map((run) => run.ended))
  }

  return {
    pass,
    live: () => [...live.values()],
    async start() {
      if (running) return
      running = true
      await people.load()
      ends.push(replica.onChange(onRows))
      let loaded = replica.status().initial.done
      ends.push(
        replica.onStatus(({ initial }) => {
          if (loaded || !initial.done) return
          loaded = true
          schedule(0)
        }),
      )
      ends.push(
        context.agentStops.onStop((agentId, why, code = 'removed') =>
          end(
            [...live.values()].filter((run) => run.agentId === agentId),
            { code, why },
          ),
        ),
      )
      await pass()
    },
    async stop() {
      running = false
      clearTimeout(timer)
      for (const unsubscribe of ends.splice(0)) unsubscribe()
      await current
      await end([...live.values()], {
        code: 'shutdown',
        why: 'The gateway was shut down; the work goes on when it is back.',
      })
    },
  }
}
