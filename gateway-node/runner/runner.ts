/**
 * The runner: does what `agent_commands` rows of this gateway ask for, from its own replica, with or without a network.
 *
 *  R1 It wakes by changes of the replica; the sweep every 15 s only looks after leases and what a lost notice would leave.
 *  R2 One command at a time per agent, in order of their making; a few agents side by side.
 *  R3 A command whose agent has not arrived yet waits for it, at most a minute.
 *  R4 Cancelling a waiting command ends it at once; a running one is aborted and takes back what it can.
 *  R5 A command that can't be read or that this gateway doesn't know fails with a reason and holds up nothing else.
 */
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { GatewayContext, RuntimeRegistry, Service } from '../service.ts'
import type { Action, Agent, Command } from './action.ts'
import { ACTIONS } from './actions/index.ts'
import * as queue from './commands.ts'
import { type RunningJob, startJob } from './job.ts'

export interface RunnerOptions {
  readonly actions?: readonly Action[]
  /** Commands of different agents that run side by side. */
  readonly parallel?: number
  readonly sweepMs?: number
}

const PATIENCE_MS = 60_000

export function createRunner(context: GatewayContext, runtimes: RuntimeRegistry, options: RunnerOptions = {}): Service {
  const { replica, log } = context
  const actions = new Map((options.actions ?? ACTIONS).map((action) => [action.name, action]))
  const parallel = options.parallel ?? 3
  const running = new Map<string, { readonly lane: string; readonly job: RunningJob }>()
  /** Commands whose agent is not here yet, since when. */
  const waiting = new Map<string, number>()
  let leases = 0
  let stopping = false
  let wanted = false
  let draining: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  const subscriptions: (() => void)[] = []

  /** Drains once more; calls that come meanwhile become one. */
  function wake(): void {
    if (stopping) return
    wanted = true
    draining ??= drainAll().finally(() => {
      draining = undefined
    })
  }

  async function drainAll(): Promise<void> {
    while (wanted && !stopping) {
      wanted = false
      try {
        await drain()
      } catch (error) {
        if (!stopping) log('error', 'The runner could not read its commands', { error })
      }
    }
  }

  async function drain(): Promise<void> {
    if (!replica.status().initial.done) return
    for (const id of await queue.cancelRequests(context, [...running.keys()])) running.get(id)?.job.stop('cancel')
    const busy = new Set([...running.values()].map(({ lane }) => lane))
    const pending = await queue.pendingCommands(context)
    for (const id of waiting.keys()) if (!pending.some((command) => command.id === id)) waiting.delete(id)
    for (const command of pending) {
      if (command.cancel_requested_at === null) continue
      await endUnstarted(command, { status: 'cancelled', message: 'Cancelled before it began.' })
    }
    for (const command of pending) {
      if (stopping) return
      if (command.cancel_requested_at !== null) continue
      const lane = command.agent_id ?? 'gateway'
      if (busy.has(lane)) continue
      if (running.size >= parallel) return
      // Also when it only waits for its agent: later commands of the agent don't overtake it.
      busy.add(lane)
      await begin(command, lane)
    }
  }

  async function begin(next: queue.Waiting, lane: string): Promise<void> {
    const action = actions.get(next.action)
    if (!action) {
      const message = unknownAction(next.action, [...actions.keys()])
      return endUnstarted(next, { status: 'failed', message })
    }
    // Before the agent is looked for: one that arrives right after the look must wake the runner.
    if (next.agent_id && !waiting.has(next.id)) waiting.set(next.id, context.now())
    const command = await queue.findPending(context, next.id)
    if (!command) return
    const agent = command.agent_id ? await queue.findAgent(context, command.agent_id) : null
    const obstacle = obstacleTo(action, command, agent)
    if (obstacle === 'wait') return
    if (obstacle) return endUnstarted(command, { status: 'failed', message: obstacle })
    waiting.delete(command.id)
    const owner = `${context.processToken}/${++leases}`
    const leased = await queue.lease(context, command.id, owner)
    if (!leased) return
    log('info', 'Command started', {
      command: leased.id,
      action: leased.action,
      agent: agent?.slug,
      attempt: leased.attempt_count,
    })
    const held = { commandId: leased.id, owner, token: leased.lease_token }
    const job = startJob({ context, runtimes, action, command: leased, agent, held })
    running.set(leased.id, { lane, job })
    void job.ended.then(() => {
      running.delete(leased.id)
      log('info', 'Command ended', { command: leased.id, action: leased.action, agent: agent?.slug })
      wake()
    })
  }

  /** A sentence when the command can't be run, `wait` when its agent may still arrive (R3), else undefined. */
  function obstacleTo(action: Action, command: Command, agent: Agent | null): string | undefined {
    const parsed = action.payload.safeParse(command.payload)
    if (!parsed.success) {
      const [issue] = parsed.error.issues
      return `The payload of this ${action.name} can't be read: ${issue?.path.join('.') || 'the whole'}: ${issue?.message ?? 'invalid'}.`
    }
    if (action.agent === 'none') return undefined
    if (!command.agent_id) return `${action.name} needs an agent, and this command names none.`
    if (!agent) {
      const since = waiting.get(command.id) ?? context.now()
      waiting.set(command.id, since)
      if (context.now() - since < PATIENCE_MS) return 'wait'
      return `The agent of this command never arrived at the gateway. It may have been refused by the server (a taken slug, for example): create it anew.`
    }
    if (action.agent === 'living' && agent.deleted_at !== null)
      return `${agent.name} has been deleted, so ${action.name} is not run.`
    if (action.agent === 'living' && agent.gateway_id !== context.gatewayId) {
      return `${agent.name} lives on another gateway, so this one can't run ${action.name} for it.`
    }
    return undefined
  }

  async function endUnstarted(command: queue.Waiting, ended: queue.End & { message: string }): Promise<void> {
    waiting.delete(command.id)
    const action = actions.get(command.action)
    await replica.write(async (tx) => {
      const [row] = await tx.query<Command>(
        `select * from agent_commands where id = $1 and gateway_id = $2 and status = 'pending' for update`,
        [command.id, context.gatewayId],
      )
      if (!row) return
      await action?.onEnd?.(tx, context, row, ended.message)
      await queue.end(tx, context, command.id, ended)
    })
    log('info', 'Command not run', { command: command.id, action: command.action, reason: ended.message })
  }

  async function sweep(): Promise<void> {
    if (!replica.status().initial.done) return
    for (const orphan of await queue.orphans(context, [...running.keys()])) {
      const action = actions.get(orphan.action)
      const became = await queue.recover(context, orphan, async (tx, message) =>
        action?.onEnd?.(tx, context, orphan, message),
      )
      if (became) log('warn', 'Interrupted command', { command: orphan.id, action: orphan.action, became })
    }
  }

  const sweepAndWake = async (): Promise<void> => {
    try {
      await sweep()
    } catch (error) {
      if (!stopping) log('error', 'The sweep of interrupted commands failed', { error })
    }
    wake()
  }

  return {
    start: async () => {
      await sweepAndWake()
      subscriptions.push(
        replica.onChange((changes) => {
          if (changes.has('agent_commands') || (waiting.size > 0 && changes.has('agents'))) wake()
        }),
        replica.onStatus((status) => {
          if (status.initial.done) wake()
        }),
      )
      // A change between the first look and the subscription.
      wake()
      timer = setInterval(() => void sweepAndWake(), options.sweepMs ?? 15_000)
    },
    stop: async () => {
      stopping = true
      clearInterval(timer)
      for (const end of subscriptions.splice(0)) end()
      await draining
      for (const { job } of running.values()) job.stop('shutdown')
      await Promise.all([...running.values()].map(({ job }) => job.ended))
    },
  }
}

const unknownAction = (action: Enum<'command_action'>, known: readonly string[]): string =>
  `This gateway can't do "${action}". It can do: ${known.join(', ')}. A newer version of the gateway may know it.`
