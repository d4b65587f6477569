/** The dispatcher's SQL: one snapshot per pass, and the few writes by which items and runs change. */
import { type BudgetLimits, limitsOf, type MonthUsage, monthAround, NO_USAGE } from '@hq/shared/domain/budget.ts'
import type { EndedRun } from '@hq/shared/domain/gates.ts'
import { FAILURE_CODES, isFailureCode } from '@hq/shared/domain/runs.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Tx } from '@hq/shared/sync/contract.ts'
import { openBlockers } from '../local-api/task-view.ts'
import type { ItemTask } from './actionable.ts'

export type Item = Row<'agent_inbox_items'>
export type Agent = Row<'agents'>

/** Everything that a pass decides from. */
export interface Snapshot {
  readonly gateway:
    | { readonly status: Row<'gateways'>['status']; readonly pause_requested_at: string | null }
    | undefined
  readonly workspace: Row<'workspace'> | undefined
  readonly agents: readonly Agent[]
  /** Open items (pending, failed, leased) of this gateway's agents. */
  readonly items: readonly Item[]
  readonly tasks: ReadonlyMap<string, ItemTask & { readonly priority: Row<'tasks'>['priority'] }>
  readonly blockers: ReadonlyMap<string, readonly string[]>
  /** Ids of the tasks on which the states of the items depend: their own and what blocks them. */
  readonly watched: ReadonlySet<string>
  readonly money: ReadonlyMap<string, Money>
  /** Newest first. */
  readonly ended: ReadonlyMap<string, readonly EndedRun[]>
  /** When a person last asked something of the agent by a command or by new work, in milliseconds since 1970. */
  readonly asked: ReadonlyMap<string, number>
  readonly month: { readonly end: number; readonly key: string }
}

export interface Money {
  readonly limits: BudgetLimits
  readonly usage: MonthUsage
}

const RUNS_LOOKED_AT = 12

export async function takeSnapshot(db: Tx, gatewayId: string, now: number): Promise<Snapshot> {
  const [gateway] = await db.query<NonNullable<Snapshot['gateway']>>(
    'select status, pause_requested_at from gateways where id = $1',
    [gatewayId],
  )
  const [workspace] = await db.query<Row<'workspace'>>('select * from workspace where deleted_at is null limit 1')
  const agents = await db.query<Agent>(
    'select * from agents where gateway_id = $1 and deleted_at is null order by created_at, id',
    [gatewayId],
  )
  const ids = agents.map((agent) => agent.id)
  const items = await db.query<Item>(
    `select * from agent_inbox_items where gateway_id = $1 and agent_id = any($2::uuid[]) and deleted_at is null
       and status in ('pending', 'failed', 'leased') order by created_at, id`,
    [gatewayId, ids],
  )
  const taskIds = [...new Set(items.flatMap((item) => (item.task_id === null ? [] : [item.task_id])))]
  const tasks = await db.query<ItemTask & { id: string; priority: Row<'tasks'>['priority'] }>(
    `select id, title, status, priority, deleted_at, archived_at, assignee_type, assignee_agent_id, assignment_generation
     from tasks where id = any($1::uuid[])`,
    [taskIds],
  )
  const blocking = await db.query<{ id: string }>(
    `select source_task_id as id from task_relations where relation_type = 'blocks' and target_task_id = any($1::uuid[])`,
    [taskIds],
  )
  const month = monthAround(now, workspace?.owner_timezone ?? 'UTC')
  return {
    gateway,
    workspace,
    agents,
    items,
    tasks: new Map(tasks.map((task) => [task.id, task])),
    blockers: await openBlockers(db, taskIds),
    watched: new Set([...taskIds, ...blocking.map(({ id }) => id)]),
    money: await moneyOf(db, ids, workspace, month.start),
    ended: await endedRuns(db, ids, gatewayId),
    asked: await askedAt(db, ids),
    month: { end: month.end, key: month.key },
  }
}

async function moneyOf(
  db: Tx,
  agentIds: readonly string[],
  workspace: Row<'workspace'> | undefined,
  since: number,
): Promise<Map<string, Money>> {
  const budgets = await db.query<Row<'agent_budgets'>>(
    'select * from agent_budgets where agent_id = any($1::uuid[]) and deleted_at is null order by created_at, id',
    [agentIds],
  )
  const sums = await db.query<{ agent_id: string; usd: number; tokens: number; unmetered: number }>(
    `select agent_id, coalesce(sum(cost_usd), 0)::float8 as usd, coalesce(sum(input_tokens + output_tokens), 0)::float8 as tokens,
            count(*) filter (where cost_usd is null)::int as unmetered
     from agent_usage where agent_id = any($1::uuid[]) and occurred_at >= $2 and deleted_at is null group by agent_id`,
    [agentIds, iso(since)],
  )
  const usage = new Map(
    sums.map((row) => [row.agent_id, { spentUsd: row.usd, tokens: row.tokens, unmeteredCalls: row.unmetered }]),
  )
  return new Map(
    agentIds.map((id) => [
      id,
      {
        limits: limitsOf(
          budgets.find((row) => row.agent_id === id),
          workspace,
        ),
        usage: usage.get(id) ?? NO_USAGE,
      },
    ]),
  )
}

/** Those at this gateway: what comes late from a place where the agent lived before does not count. */
async function endedRuns(db: Tx, agentIds: readonly string[], gatewayId: string): Promise<Map<string, EndedRun[]>> {
  const rows = await db.query<{
    agent_id: string
    status: EndedRun['status']
    ended_at: string | null
    error_message: string | null
    code: string | null
  }>(
    `select r.agent_id, r.status, r.ended_at, r.error_message,
            (select e.data ->> 'code' from agent_run_events e where e.run_id = r.id and e.kind = 'error' order by e.seq desc limit 1) as code
     from unnest($1::uuid[]) as a (id) cross join lateral (
       select * from agent_runs where agent_id = a.id and gateway_id = $2 and status <> 'running' and deleted_at is null order by started_at desc, id desc limit ${RUNS_LOOKED_AT}
     ) r`,
    [agentIds, gatewayId],
  )
  const result = new Map<string, EndedRun[]>()
  for (const row of rows) {
    const runs = result.get(row.agent_id) ?? []
    runs.push({
      status: row.status,
      endedAt: row.ended_at === null ? 0 : Date.parse(row.ended_at),
      error: row.error_message,
      transient: isFailureCode(row.code) && FAILURE_CODES[row.code] === 'transient',
    })
    result.set(row.agent_id, runs)
  }
  return result
}

/** New work from people, and commands of people, tell the agent to try again (G4). */
async function askedAt(db: Tx, agentIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await db.query<{ agent_id: string; at: string }>(
    `select agent_id, max(created_at) as at from (
       select agent_id, created_at from agent_commands where requested_by is not null and agent_id = any($1::uuid[]) and deleted_at is null
       union all
       select agent_id, created_at from agent_inbox_items where agent_id = any($1::uuid[]) and deleted_at is null
         and event_type in ('task_assignment', 'task_reassignment', 'task_comment_mention', 'task_comment', 'deliverable_review')
         and coalesce(context ->> 'actor_type', 'human') = 'human'
     ) asked group by agent_id`,
    [agentIds],
  )
  return new Map(rows.map((row) => [row.agent_id, Date.parse(row.at)]))
}

/** A held lease: what a report must still match (fencing). */
export interface Lease {
  readonly itemId: string
  readonly owner: string
  readonly token: number
  readonly attempt: number
}

export interface NewRun {
  readonly id: string
  readonly tenantId: string
  readonly gatewayId: string
  readonly runtime: Row<'agent_runs'>['runtime']
  readonly now: number
  readonly leaseMs: number
  readonly owner: string
}

/** Takes an item and opens its run, in one transaction; undefined when somebody was faster. */
export async function lease(tx: Tx, item: Item, run: NewRun): Promise<Lease | undefined> {
  const [taken] = await tx.query<{ lease_token: number; attempt_count: number }>(
    `update agent_inbox_items set status = 'leased', lease_owner = $3, lease_token = lease_token + 1, leased_until = $4,
       attempt_count = attempt_count + 1, run_id = $5, error_message = null
     where id = $1 and gateway_id = $2 and status in ('pending', 'failed') and lease_token = $6 and deleted_at is null
     returning lease_token, attempt_count`,
    [item.id, run.gatewayId, run.owner, iso(run.now + run.leaseMs), run.id, item.lease_token],
  )
  if (!taken) return undefined
  await tx.query(
    `insert into agent_runs (id, tenant_id, gateway_id, agent_id, inbox_item_id, task_id, runtime, status, started_at, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, 'running', $8, $8)`,
    [run.id, run.tenantId, run.gatewayId, item.agent_id, item.id, item.task_id, run.runtime, iso(run.now)],
  )
  await tx.query('update agents set last_seen_at = $2 where id = $1', [item.agent_id, iso(run.now)])
  return { itemId: item.id, owner: run.owner, token: taken.lease_token, attempt: taken.attempt_count }
}

const HELD = "id = $1 and lease_owner = $2 and lease_token = $3 and status = 'leased' and deleted_at is null"

/** False: the lease is no longer ours. */
export async function renew(tx: Tx, held: Lease, until: number): Promise<boolean> {
  const rows = await tx.query(`update agent_inbox_items set leased_until = $4 where ${HELD} returning id`, [
    held.itemId,
    held.owner,
    held.token,
    iso(until),
  ])
  return rows.length > 0
}

export async function isHeld(db: Tx, held: Lease): Promise<boolean> {
  return (
    (await db.query(`select 1 from agent_inbox_items where ${HELD}`, [held.itemId, held.owner, held.token])).length > 0
  )
}

export interface Settlement {
  readonly status: 'done' | 'failed' | 'pending' | 'cancelled' | 'dead_letter'
  readonly summary: string | null
  readonly error: string | null
  /** The try doesn't count (pause, shutdown, wrong settings): the attempt is given back. */
  readonly refund: boolean
}

/** Ends a lease. False: it was no longer ours, and nothing was changed. */
export async function settle(tx: Tx, held: Lease, settlement: Settlement, now: number): Promise<boolean> {
  const final = settlement.status === 'done' || settlement.status === 'cancelled' || settlement.status === 'dead_letter'
  const rows = await tx.query(
    `update agent_inbox_items set status = $4, lease_owner = null, leased_until = null, completed_at = $5, summary = $6, error_message = $7,
       attempt_count = greatest(0, attempt_count - $8) where ${HELD} returning id`,
    [
      held.itemId,
      held.owner,
      held.token,
      settlement.status,
      final ? iso(now) : null,
      settlement.summary,
      settlement.error,
      settlement.refund ? 1 : 0,
    ],
  )
  return rows.length > 0
}

/** Wakes for the same task that the run has taken care of as well: a released blocker and an assignment are one piece of work. */
export async function settleTogether(tx: Tx, item: Item, before: number, now: number): Promise<void> {
  if (item.task_id === null) return
  await tx.query(
    `update agent_inbox_items set status = 'done', completed_at = $5, run_id = $6, summary = 'Done together with another wake for the same task.'
     where agent_id = $1 and task_id = $2 and id <> $3 and status in ('pending', 'failed') and created_at <= $4 and deleted_at is null
       and event_type in ('task_assignment', 'task_reassignment', 'blocker_resolved', 'task_overdue')`,
    [item.agent_id, item.task_id, item.id, iso(before), iso(now), item.run_id],
  )
}

/** Ends items that have lost their purpose, unless they are in somebody's hands. */
export async function cancelItem(tx: Tx, item: Item, why: string, now: number): Promise<void> {
  await tx.query(
    `update agent_inbox_items set status = 'cancelled', completed_at = $3, error_message = $2
     where id = $1 and status in ('pending', 'failed') and lease_token = $4`,
    [item.id, why, iso(now), item.lease_token],
  )
}

export const CRASHED = 'The process that worked on it ended unexpectedly.'

/** What a process that died left behind: its item goes back, or ends as a dead letter after the last attempt. Returns what became of it. */
export async function sweepItem(tx: Tx, item: Item, now: number): Promise<'pending' | 'dead_letter' | undefined> {
  const last = item.attempt_count >= item.max_attempts
  const [swept] = await tx.query<{ status: 'pending' | 'dead_letter' }>(
    `update agent_inbox_items set status = $3, lease_owner = null, leased_until = null, completed_at = $4, error_message = $5
     where id = $1 and status = 'leased' and lease_token = $2 and (leased_until is null or leased_until <= $6) returning status`,
    [item.id, item.lease_token, last ? 'dead_letter' : 'pending', last ? iso(now) : null, CRASHED, iso(now)],
  )
  return swept?.status
}

/** Runs that say they are running, though no process works on them. */
export async function endOrphanedRuns(tx: Tx, gatewayId: string, live: readonly string[], now: number): Promise<void> {
  await tx.query(
    `update agent_runs r set status = 'interrupted', ended_at = $3, error_message = $4
     where r.gateway_id = $1 and r.status = 'running' and not (r.id = any($2::uuid[]))
       and not exists (select 1 from agent_inbox_items i where i.run_id = r.id and i.status = 'leased')`,
    [gatewayId, live, iso(now), CRASHED],
  )
}

export const iso = (milliseconds: number): string => new Date(milliseconds).toISOString()
