/**
 * The rows of `agent_commands` as this gateway's queue. All SQL about leases is here.
 *
 *  Q1 Only rows with this gateway's id are read or written.
 *  Q2 A lease is `lease_owner` (process, and its number within it) and `lease_token`, which every new lease raises. Whoever reports names both; a report
 *     that no longer matches changes nothing and throws `LeaseLost`.
 *  Q3 A lease of a process that has ended is over: one data folder has one process, and owners begin with the folder's replica id. Leases of
 *     other folders (a restored backup) end at `leased_until`.
 *  Q4 An interrupted command is pending again while attempts remain, else a dead letter. No state is for ever.
 */
import type { Tx } from '@hq/shared/sync/contract.ts'
import type { GatewayContext } from '../service.ts'
import type { Agent, Command } from './action.ts'

export const LEASE_MS = 60_000

export class LeaseLost extends Error {
  constructor() {
    super('The lease of this command was taken over.')
    this.name = 'LeaseLost'
  }
}

export interface Lease {
  readonly commandId: string
  readonly owner: string
  readonly token: number
}

type Ended = 'done' | 'failed' | 'cancelled' | 'dead_letter'

export interface End {
  readonly status: Ended
  readonly message?: string
  readonly result?: Record<string, unknown>
  readonly exitCode?: number
}

/** What is needed to choose the next command. A drain reads it of the whole queue, so the rest of a row, which may be long, is read by `findPending`. */
export type Waiting = Pick<Command, 'id' | 'action' | 'agent_id' | 'cancel_requested_at'>

/** Pending commands in order of their making. */
export async function pendingCommands({ replica, gatewayId }: GatewayContext): Promise<Waiting[]> {
  return replica.query<Waiting>(
    `select id, action, agent_id, cancel_requested_at from agent_commands where gateway_id = $1 and status = 'pending' and deleted_at is null order by created_at, id limit 200`,
    [gatewayId],
  )
}

/** The whole row of a command, unless it is no longer pending. */
export async function findPending({ replica, gatewayId }: GatewayContext, id: string): Promise<Command | null> {
  const [command] = await replica.query<Command>(
    `select * from agent_commands where id = $1 and gateway_id = $2 and status = 'pending' and deleted_at is null`,
    [id, gatewayId],
  )
  return command ?? null
}

export async function findAgent({ replica }: GatewayContext, id: string): Promise<Agent | null> {
  const [agent] = await replica.query<Agent>('select * from agents where id = $1', [id])
  return agent ?? null
}

/** Of the commands that run here: those that somebody wants cancelled or deleted. */
export async function cancelRequests(
  { replica, gatewayId }: GatewayContext,
  ids: readonly string[],
): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await replica.query<{ id: string }>(
    `select id from agent_commands where gateway_id = $1 and id = any($2::uuid[]) and (cancel_requested_at is not null or deleted_at is not null)`,
    [gatewayId, ids],
  )
  return rows.map(({ id }) => id)
}

/** Takes a pending command; null when it is no longer to be had. */
export async function lease(context: GatewayContext, commandId: string, owner: string): Promise<Command | null> {
  const { result } = await context.replica.write(async (tx) => {
    const [row] = await tx.query<Command>(
      `update agent_commands set status = 'running', lease_owner = $3, lease_token = lease_token + 1, leased_until = $4, attempt_count = attempt_count + 1,
         started_at = $5, error_message = null
       where id = $1 and gateway_id = $2 and status = 'pending' and cancel_requested_at is null and deleted_at is null returning *`,
      [commandId, context.gatewayId, owner, iso(context.now() + LEASE_MS), iso(context.now())],
    )
    return row ?? null
  })
  return result
}

/** Runs `work` in a transaction in which the lease holds (Q2). */
export async function underLease<T>(context: GatewayContext, held: Lease, work: (tx: Tx) => Promise<T>): Promise<T> {
  const { result } = await context.replica.write(async (tx) => {
    const [row] = await tx.query(
      `select id from agent_commands where id = $1 and gateway_id = $2 and lease_owner = $3 and lease_token = $4 and status = 'running' for update`,
      [held.commandId, context.gatewayId, held.owner, held.token],
    )
    if (!row) throw new LeaseLost()
    return work(tx)
  })
  return result
}

export async function renew(context: GatewayContext, held: Lease): Promise<void> {
  await underLease(context, held, (tx) =>
    tx.query('update agent_commands set leased_until = $2 where id = $1', [
      held.commandId,
      iso(context.now() + LEASE_MS),
    ]),
  )
}

/** The row's last change. Call it under the lease, or for a row that nobody holds. */
export async function end(tx: Tx, context: GatewayContext, commandId: string, ended: End): Promise<void> {
  await tx.query(
    `update agent_commands set status = $3, error_message = $4, result = $5::jsonb, exit_code = $6, completed_at = $7, lease_owner = null, leased_until = null
     where id = $1 and gateway_id = $2`,
    [
      commandId,
      context.gatewayId,
      ended.status,
      ended.message ?? null,
      ended.result ? JSON.stringify(ended.result) : null,
      ended.exitCode ?? null,
      iso(context.now()),
    ],
  )
}

/** Gives a command back untried: the gateway stops in order, which is no failed attempt. */
export async function release(context: GatewayContext, held: Lease): Promise<void> {
  await underLease(context, held, (tx) =>
    tx.query(
      `update agent_commands set status = 'pending', attempt_count = attempt_count - 1, lease_owner = null, leased_until = null where id = $1`,
      [held.commandId],
    ),
  )
}

/** Leased or running commands that nobody works on (Q3), apart from `ours`. */
export async function orphans(context: GatewayContext, ours: readonly string[]): Promise<Command[]> {
  return context.replica.query<Command>(
    `select * from agent_commands
     where gateway_id = $1 and status in ('leased', 'running') and deleted_at is null and not (id = any($2::uuid[]))
       and (lease_owner is null or leased_until is null or leased_until < $3 or starts_with(lease_owner, $4))`,
    [context.gatewayId, ours, iso(context.now()), `${context.replica.identity.replicaId}/`],
  )
}

/** Q4. What the orphan became; null when it changed meanwhile. */
export async function recover(
  context: GatewayContext,
  orphan: Command,
  onEnd: (tx: Tx, message: string) => Promise<void>,
): Promise<'pending' | 'cancelled' | 'dead_letter' | null> {
  const { result } = await context.replica.write(async (tx) => {
    const [row] = await tx.query(
      `select id from agent_commands where id = $1 and gateway_id = $2 and lease_token = $3 and status in ('leased', 'running') for update`,
      [orphan.id, context.gatewayId, orphan.lease_token],
    )
    if (!row) return null
    if (orphan.cancel_requested_at !== null) {
      const message = 'Cancelled after the gateway was interrupted.'
      await onEnd(tx, message)
      await end(tx, context, orphan.id, { status: 'cancelled', message })
      return 'cancelled'
    }
    if (orphan.attempt_count >= orphan.max_attempts) {
      const message = deadLetter(orphan)
      await onEnd(tx, message)
      await end(tx, context, orphan.id, { status: 'dead_letter', message })
      return 'dead_letter'
    }
    await tx.query(
      `update agent_commands set status = 'pending', lease_owner = null, leased_until = null where id = $1`,
      [orphan.id],
    )
    return 'pending'
  })
  return result
}

const deadLetter = ({ action, attempt_count }: Command): string => {
  const times = attempt_count === 1 ? 'once' : attempt_count === 2 ? 'twice' : `${attempt_count} times`
  return `The gateway's process ended ${times} while it ran this ${action}, so it isn't tried again. Look into the gateway's log for the cause, then send the command anew.`
}

const iso = (milliseconds: number): string => new Date(milliseconds).toISOString()
