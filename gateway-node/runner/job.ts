/**
 * One command, from its lease to its end.
 *
 *  J1 Steps and output reach the replica within 60 ms, in one transaction each, only while the lease holds.
 *  J2 The end and its last output are one transaction, together with what the action commits.
 *  J3 The lease is renewed at a third of its length. If it is lost the action is aborted and reports nothing more.
 *  J4 The end is written exactly once, whatever the action does after an abort.
 */
import type { CommandStep } from '@hq/shared/schema/tables.ts'
import type { Tx } from '@hq/shared/sync/contract.ts'
import type { GatewayContext, RuntimeRegistry } from '../service.ts'
import { WorkspaceError } from '../workspaces/contract.ts'
import { type Action, ActionError, type Agent, type Command, type Job, type Outcome } from './action.ts'
import { type End, end, LEASE_MS, type Lease, LeaseLost, release, renew, underLease } from './commands.ts'
import { createOutputBuffer } from './output.ts'

const FLUSH_MS = 60

/** Why a running command is aborted. */
export type StopReason = 'cancel' | 'shutdown'

export interface RunningJob {
  stop(reason: StopReason): void
  /** Resolves when the command's row says how it ended, or the lease is lost. Never rejects. */
  readonly ended: Promise<void>
}

interface Options {
  readonly context: GatewayContext
  readonly runtimes: RuntimeRegistry
  readonly action: Action
  readonly command: Command
  readonly agent: Agent | null
  readonly held: Lease
}

export function startJob({ context, runtimes, action, command, agent, held }: Options): RunningJob {
  const abort = new AbortController()
  const buffer = createOutputBuffer()
  const steps: CommandStep[] = action.steps.map((step) => ({ ...step, state: 'waiting' }))
  let stopped: StopReason | undefined
  let lost = false
  let dirty = false
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  const at = (): string => new Date(context.now()).toISOString()

  function lose(error: unknown): void {
    if (lost) return
    lost = true
    if (!(error instanceof LeaseLost))
      context.log('error', 'The progress of a command could not be written', { command: command.id, error })
    abort.abort(error)
  }

  function touch(): void {
    dirty = true
    timer ??= setTimeout(() => {
      timer = undefined
      flush()
    }, FLUSH_MS)
  }

  function flush(): void {
    writing = writing.then(async () => {
      if (lost || !dirty) return
      dirty = false
      await underLease(context, held, writeProgress).catch(lose)
    })
  }

  async function writeProgress(tx: Tx): Promise<void> {
    await tx.query('update agent_commands set progress = $2::jsonb where id = $1', [
      command.id,
      JSON.stringify({ steps }),
    ])
    const pieces = buffer.take()
    if (pieces.length === 0) return
    const [row] = await tx.query<{ next: number }>(
      'select coalesce(max(seq), 0)::int + 1 as next from command_output where command_id = $1',
      [command.id],
    )
    let seq = row?.next ?? 1
    for (const { stream, text } of pieces) {
      await tx.query(
        'insert into command_output (id, tenant_id, gateway_id, command_id, seq, stream, text) values ($1, $2, $3, $4, $5, $6, $7)',
        [context.newId(), context.tenantId, context.gatewayId, command.id, seq++, stream, text],
      )
    }
  }

  function closeSteps(state: 'done' | 'failed', detail?: string): void {
    for (const step of steps) {
      if (step.state === 'running') Object.assign(step, { state, at: at(), ...(detail ? { detail } : {}) })
      else if (step.state === 'waiting') step.state = 'skipped'
    }
  }

  const job: Job = {
    context,
    runtimes,
    command,
    agent,
    signal: abort.signal,
    step: (key, detail) => {
      for (const step of steps) if (step.state === 'running') Object.assign(step, { state: 'done', at: at() })
      const step = steps.find((candidate) => candidate.key === key)
      if (!step) throw new Error(`The action ${action.name} has no step ${key}.`)
      Object.assign(step, { state: 'running', at: at(), ...(detail ? { detail } : {}) })
      touch()
    },
    output: (text, stream = 'stdout') => {
      buffer.add(stream, text)
      touch()
    },
  }

  async function finish(ended: End, more?: (tx: Tx) => Promise<void>): Promise<void> {
    closeSteps(ended.status === 'done' ? 'done' : 'failed', ended.status === 'done' ? undefined : ended.message)
    clearTimeout(timer)
    await writing
    if (lost) return
    await underLease(context, held, async (tx) => {
      await more?.(tx)
      await writeProgress(tx)
      await end(tx, context, command.id, ended)
    })
  }

  async function fail(ended: End & { message: string }): Promise<void> {
    await finish(ended, (tx) => action.onEnd?.(tx, context, command, ended.message) ?? Promise.resolve())
  }

  async function run(): Promise<void> {
    if (command.attempt_count > 1)
      job.output(`Interrupted before; attempt ${command.attempt_count} of ${command.max_attempts}.\n`, 'progress')
    let outcome: Outcome
    try {
      outcome = await action.run(job, command.payload)
    } catch (error) {
      if (lost) return
      if (stopped === 'shutdown') return release(context, held)
      if (stopped === 'cancel') return takeBack()
      const message = explain(error, action)
      context.log('warn', 'A command failed', {
        command: command.id,
        action: action.name,
        reason: message,
        ...defect(error),
      })
      job.output(`${message}\n`, 'stderr')
      const result = error instanceof ActionError ? error.result : undefined
      return fail({ status: 'failed', message, exitCode: 1, ...(result && { result }) })
    }
    await finish({ status: 'done', exitCode: 0, ...(outcome.result ? { result: outcome.result } : {}) }, outcome.commit)
  }

  async function takeBack(): Promise<void> {
    let message = 'Cancelled.'
    try {
      await action.undo?.(job)
    } catch (error) {
      message = `Cancelled, but not all of it could be taken back: ${explain(error, action)}`
      context.log('warn', 'A cancelled command could not be taken back', { command: command.id, error })
    }
    await fail({ status: 'cancelled', message })
  }

  const renewal = setInterval(() => {
    writing = writing.then(() => (lost ? undefined : renew(context, held).catch(lose)))
  }, LEASE_MS / 3)

  const ended = run()
    .catch(async (error: unknown) => {
      if (lost || error instanceof LeaseLost) {
        context.log('warn', 'The lease of a command was lost', { command: command.id, action: action.name })
        return
      }
      // The end itself could not be written, with what belonged to it: said without that, so that the row doesn't stay as it is.
      const message = explain(error, action)
      context.log('error', 'The end of a command could not be written', { command: command.id, error })
      await underLease(context, held, (tx) => end(tx, context, command.id, { status: 'failed', message, exitCode: 1 }))
    })
    .catch((error: unknown) =>
      context.log('error', 'A command is left to the next sweep', { command: command.id, error }),
    )
    .finally(() => {
      clearInterval(renewal)
      clearTimeout(timer)
    })

  return {
    ended,
    stop: (reason) => {
      stopped ??= reason
      abort.abort(new Error(reason))
    },
  }
}

/** A sentence for people (A3). */
export function explain(error: unknown, { name }: Pick<Action, 'name'>): string {
  if (error instanceof ActionError || error instanceof WorkspaceError) return error.message
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOSPC')
    return `The disk of the gateway's machine is full, so ${name} could not go on. Free some space, then send the command anew.`
  if (code === 'EACCES' || code === 'EROFS')
    return `The gateway may not write to its folder, so ${name} could not go on: ${String(error)}`
  const said = error instanceof Error ? error.message : String(error)
  return `${name} stopped on something unforeseen: ${said}. The gateway's log has the details; sending the command anew is safe.`
}

const defect = (error: unknown): Record<string, unknown> =>
  error instanceof ActionError || error instanceof WorkspaceError ? {} : { error }
