/**
 * One wake, from the lease to its settlement.
 *
 *  W1 While the run lives its lease is renewed; when the lease is lost, the run is aborted and reports nothing about the item (fencing).
 *  W2 Before every model call the present rows are asked whether the run may go on: pause, budget, task, lease. If not, no call is made and the run
 *     is `cancelled`; the item goes back to `pending` with its attempt, or ends when its task has.
 *  W3 The task becomes `in_progress` when this gateway begins with it, written as the agent.
 *  W4 Item and run are settled in one transaction, after everything the run recorded is durable.
 */
import { type BudgetState, budgetState, limitsOf, type MonthUsage, monthAround } from '@hq/shared/domain/budget.ts'
import { derivedId } from '@hq/shared/domain/ids.ts'
import { FAILURE_CODES, type FailureCode, isWorkEvent } from '@hq/shared/domain/runs.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Tx } from '@hq/shared/sync/contract.ts'
import { approvalsOf } from '../approvals/approvals.ts'
import type { Actions, Caller } from '../local-api/actions.ts'
import { deriveLocally, type Place } from '../local-api/derive-locally.ts'
import { createGuardedFetch } from '../net/guarded-fetch.ts'
import { agentFilesOf } from '../runtime/agent-files.ts'
import { describeCommand, execTool } from '../runtime/exec-tool.ts'
import { createPermits } from '../runtime/policy.ts'
import type { AgentRuntime, CallUsage, RunOutcome } from '../runtime/runtime.ts'
import { RunStopped } from '../runtime/runtime.ts'
import { createTools } from '../runtime/tools.ts'
import type { GatewayContext } from '../service.ts'
import { isOn } from '../switches.ts'
import { itemState } from './actionable.ts'
import { createRecorder } from './recorder.ts'
import { inputOf } from './run-input.ts'
import {
  type Agent,
  type Item,
  isHeld,
  iso,
  type Lease,
  renew,
  type Settlement,
  settle,
  settleTogether,
} from './store.ts'

/** Why a run is ended from outside. */
export interface Stop {
  readonly code: 'paused' | 'budget' | 'task_over' | 'removed' | 'moved' | 'lease_lost' | 'shutdown'
  readonly why: string
}

export interface LiveRun {
  readonly id: string
  readonly agentId: string
  readonly itemId: string
  readonly taskId: string | null
  readonly title: string
  /** Soft: before the next model call. Hard: now. The first reason stands. */
  stop(stop: Stop, how: 'soft' | 'hard'): void
  readonly ended: Promise<void>
}

export interface RunParts {
  readonly context: GatewayContext
  readonly actions: Actions
  readonly runtime: AgentRuntime | undefined
  readonly leaseMs: number
}

export function startRun(
  parts: RunParts,
  agent: Agent,
  item: Item,
  held: Lease,
  runId: string,
  title: string,
): LiveRun {
  const abort = new AbortController()
  let stopped: Stop | undefined
  const live = {
    id: runId,
    agentId: agent.id,
    itemId: item.id,
    taskId: item.task_id,
    title,
    stop(stop: Stop, how: 'soft' | 'hard') {
      stopped ??= stop
      if (how === 'hard') abort.abort(new RunStopped(stop.why))
    },
  }
  const ended = work(parts, agent, { ...item, run_id: runId }, held, runId, live, abort.signal, () => stopped).catch(
    (error: unknown) => {
      parts.context.log('error', 'a run could not be settled; its lease will expire', {
        runId,
        error: messageOf(error),
      })
    },
  )
  return { ...live, ended }
}

async function work(
  { context, actions, runtime, leaseMs }: RunParts,
  agent: Agent,
  item: Item,
  held: Lease,
  runId: string,
  live: Pick<LiveRun, 'stop'>,
  signal: AbortSignal,
  stopped: () => Stop | undefined,
): Promise<void> {
  const { replica, gatewayId, tenantId, now, newId, log, env } = context
  const startedAt = now()
  const caller: Caller = { agent: { id: agent.id, slug: agent.slug, name: agent.name }, runId, itemId: item.id, signal }
  const recorder = createRecorder({
    replica,
    runId,
    gatewayId,
    tenantId,
    newId,
    onError: (error) =>
      log('warn', 'a piece of a run log could not be written yet', { runId, error: messageOf(error) }),
  })
  const renewal = setInterval(() => {
    replica
      .write((tx) => renew(tx, held, now() + leaseMs), { runId })
      .then(({ result }) => {
        if (!result) live.stop({ code: 'lease_lost', why: 'Somebody else has taken over this work.' }, 'hard')
      })
      .catch((error: unknown) => log('warn', 'a lease could not be renewed', { runId, error: messageOf(error) }))
  }, leaseMs / 3)

  let outcome: RunOutcome
  try {
    outcome = await attempt()
  } catch (error) {
    log('error', 'a run failed by a fault of ours', { runId, error: messageOf(error) })
    outcome = failed('internal', `HQ itself failed: ${messageOf(error)}`)
  } finally {
    clearInterval(renewal)
  }
  await finish(outcome)

  async function attempt(): Promise<RunOutcome> {
    recorder.record({
      kind: 'status',
      data: { code: 'started', text: `Woken by ${item.event_type.replaceAll('_', ' ')}, try ${held.attempt}.` },
    })
    if (!runtime) return failed('no_runtime', `The runtime “${agent.runtime}” is not available on this gateway.`)
    if (item.task_id !== null && isWorkEvent(item.event_type) && item.event_type !== 'escalation') {
      const claimed = await actions.claim(caller, item.task_id) // W3
      if (claimed.ok) recorder.record({ kind: 'status', data: { code: 'claimed', text: 'Began to work on the task.' } })
    }
    const files = await agentFilesOf(context.workspaces, agent)
    const input = await inputOf(replica, agent, item, runId, held.attempt, files)
    const mayGoOn = async (): Promise<void> => {
      const stop = stopped() ?? (await brake(replica, context.gatewayId, agent.id, item, held, now())) // W2
      if (!stop) return
      live.stop(stop, 'soft')
      throw new RunStopped(stop.why)
    }
    const permits = createPermits({
      context,
      approvals: approvalsOf(context),
      agent,
      runId,
      taskId: item.task_id,
      mayGoOn,
      signal,
      describe: (tool, value) => (tool === 'exec' ? describeCommand(value, agent) : undefined),
    })
    const exec =
      files && isOn(env, 'HQ_AGENT_EXEC')
        ? execTool({ ...context, agent, signal, path: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin' })
        : undefined
    const web = isOn(env, 'HQ_AGENT_WEB') ? createGuardedFetch() : undefined
    const tools = createTools(actions, caller, files, web, exec)
    return runtime.run(
      input,
      {
        onEvent: recorder.record,
        onUsage: (usage) => storeUsage(usage),
        onModel: async ({ provider, model, demo }) => {
          await replica.write(
            (tx) =>
              tx.query('update agent_runs set provider = $2, model = $3, demo = $4 where id = $1', [
                runId,
                provider,
                model,
                demo,
              ]),
            {
              runId,
            },
          )
        },
        beforeModelCall: mayGoOn,
        tools: await permits.guard(tools),
      },
      signal,
    )
  }

  async function storeUsage(usage: CallUsage): Promise<void> {
    await replica.write(
      async (tx) => {
        await tx.query(
          `insert into agent_usage (id, tenant_id, gateway_id, agent_id, run_id, task_id, provider, model, input_tokens, output_tokens,
             cache_read, cache_write, cost_usd, occurred_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) on conflict (id) do nothing`,
          [
            derivedId('usage', runId, String(usage.turn)),
            tenantId,
            gatewayId,
            agent.id,
            runId,
            item.task_id,
            usage.provider,
            usage.model,
            usage.inputTokens,
            usage.outputTokens,
            usage.cacheRead,
            usage.cacheWrite,
            usage.costUsd,
            iso(now()),
          ],
        )
        await tx.query(
          `update agent_runs set turns = $2, input_tokens = input_tokens + $3, output_tokens = output_tokens + $4,
             cost_usd = case when $5::numeric is null then cost_usd else coalesce(cost_usd, 0) + $5::numeric end where id = $1`,
          [runId, usage.turn, usage.inputTokens, usage.outputTokens, usage.costUsd],
        )
      },
      { runId },
    )
  }

  async function finish(outcome: RunOutcome): Promise<void> {
    const stop = stopped()
    const settlement = settlementOf(outcome, stop, held.attempt, item.max_attempts)
    if (outcome.error)
      recorder.record({ kind: 'error', data: { code: outcome.error.code, text: outcome.error.message } })
    else
      recorder.record({
        kind: 'status',
        data: {
          code: outcome.status === 'done' ? 'done' : 'stopping',
          text: outcome.summary ?? settlement.error ?? 'Done.',
        },
      })
    await recorder
      .flush()
      .catch((error: unknown) =>
        log('warn', 'the end of a run log could not be written', { runId, error: messageOf(error) }),
      )
    if (stop?.code !== 'removed' && stop?.code !== 'moved') {
      await context
        .publishFiles(agent.id, `run ${runId.slice(0, 8)}: ${(outcome.summary ?? outcome.status).slice(0, 60)}`)
        .catch((error: unknown) =>
          log('warn', 'the files of an agent could not be published', { agent: agent.slug, error: messageOf(error) }),
        )
    }
    await replica.write(
      async (tx) => {
        const ours = await settle(tx, held, settlement, now())
        // A run that only answered a comment has not done the task that was assigned meanwhile.
        if (ours && settlement.status === 'done' && isWorkEvent(item.event_type))
          await settleTogether(tx, item, startedAt, now())
        if (ours && settlement.status === 'dead_letter')
          await noteDeadLetter(tx, { tenantId, gatewayId }, item, iso(now()))
        await tx.query(
          `update agent_runs set status = $2, ended_at = $3, turns = $4, tool_calls = $5, summary = $6, error_message = $7 where id = $1`,
          [
            runId,
            ours ? outcome.status : 'cancelled',
            iso(now()),
            outcome.turns,
            outcome.toolCalls,
            outcome.summary,
            ours
              ? (outcome.error?.message ?? (outcome.status === 'cancelled' ? settlement.error : null))
              : 'The lease on this work was lost.',
          ],
        )
        await tx.query('update agents set last_seen_at = $2 where id = $1', [agent.id, iso(now())])
      },
      { runId },
    )
  }
}

/** What becomes of the item. */
export function settlementOf(
  outcome: RunOutcome,
  stop: Stop | undefined,
  attempt: number,
  maxAttempts: number,
): Settlement {
  const error = outcome.error?.message ?? null
  if (outcome.status === 'done') return { status: 'done', summary: outcome.summary, error: null, refund: false }
  if (outcome.status === 'cancelled') {
    const over = stop?.code === 'task_over' || stop?.code === 'removed'
    return {
      status: over ? 'cancelled' : 'pending',
      summary: null,
      error: stop?.why ?? 'The run was stopped.',
      refund: true,
    }
  }
  const kind = outcome.error ? FAILURE_CODES[outcome.error.code] : 'work'
  if (kind !== 'work') return { status: 'failed', summary: null, error, refund: true }
  return { status: attempt >= maxAttempts ? 'dead_letter' : 'failed', summary: null, error, refund: false }
}

/** W2: asks the rows as they are now. */
export async function brake(
  db: Tx,
  gatewayId: string,
  agentId: string,
  item: Item,
  held: Lease,
  now: number,
): Promise<Stop | undefined> {
  const [agent] = await db.query<Pick<Agent, 'gateway_id' | 'status' | 'pause_requested_at' | 'deleted_at'>>(
    'select gateway_id, status, pause_requested_at, deleted_at from agents where id = $1',
    [agentId],
  )
  const [gateway] = await db.query<Pick<Row<'gateways'>, 'status' | 'pause_requested_at'>>(
    'select status, pause_requested_at from gateways where id = $1',
    [gatewayId],
  )
  if (!agent || agent.deleted_at !== null || agent.status === 'removing')
    return { code: 'removed', why: 'The agent is being removed.' }
  if (agent.gateway_id !== gatewayId) return { code: 'moved', why: 'The agent was moved to another gateway.' }
  if (gateway && (gateway.pause_requested_at !== null || gateway.status === 'paused'))
    return { code: 'paused', why: 'The gateway was paused.' }
  if (agent.pause_requested_at !== null) return { code: 'paused', why: 'The agent was paused by a person.' }
  if (!(await isHeld(db, held))) return { code: 'lease_lost', why: 'Somebody else has taken over this work.' }
  if (item.task_id !== null) {
    const [task] = await db.query<Row<'tasks'>>('select * from tasks where id = $1', [item.task_id])
    const state = itemState({ ...item, not_before: null }, task, [], now)
    // What the run itself did is no reason to stop it: an agent that has completed its task says goodbye in peace.
    if (state.state === 'over' && task?.status !== 'done') return { code: 'task_over', why: state.why }
  }
  const { state } = await agentBudget(db, agentId, now)
  if (state.blocked) return { code: 'budget', why: 'The monthly budget is used up.' }
  return undefined
}

export async function agentBudget(
  db: Tx,
  agentId: string,
  now: number,
): Promise<{ usage: MonthUsage; state: BudgetState }> {
  const [workspace] = await db.query<Row<'workspace'>>('select * from workspace where deleted_at is null limit 1')
  const [own] = await db.query<Row<'agent_budgets'>>(
    'select * from agent_budgets where agent_id = $1 and deleted_at is null limit 1',
    [agentId],
  )
  const [sum] = await db.query<{ usd: number; tokens: number; unmetered: number }>(
    `select coalesce(sum(cost_usd), 0)::float8 as usd, coalesce(sum(input_tokens + output_tokens), 0)::float8 as tokens,
            count(*) filter (where cost_usd is null)::int as unmetered
     from agent_usage where agent_id = $1 and occurred_at >= $2 and deleted_at is null`,
    [agentId, iso(monthAround(now, workspace?.owner_timezone ?? 'UTC').start)],
  )
  const usage = { spentUsd: sum?.usd ?? 0, tokens: sum?.tokens ?? 0, unmeteredCalls: sum?.unmetered ?? 0 }
  return { usage, state: budgetState(limitsOf(own, workspace), usage) }
}

/** Tells people about a dead letter, by the rule that the server has as well (P7). */
export async function noteDeadLetter(tx: Tx, place: Place, before: Item, at: string): Promise<void> {
  const [after] = await tx.query<Item>('select * from agent_inbox_items where id = $1', [before.id])
  if (!after) return
  const change = {
    table: 'agent_inbox_items',
    id: before.id,
    before: { ...before, status: 'leased' },
    after,
    actor: { type: 'system', id: null },
    runId: null,
    at,
  } as const
  await deriveLocally(tx, [change], place)
}

const failed = (code: FailureCode, message: string): RunOutcome => ({
  status: 'failed',
  summary: null,
  error: { code, message },
  turns: 0,
  toolCalls: 0,
})

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
