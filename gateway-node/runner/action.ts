/**
 * What the runner can do: one file per action in `actions/`.
 *
 *  A1 An action may be started again at any point of an earlier attempt, and then finishes it.
 *  A2 Rows that say it is done are written by `commit`, in the same transaction that ends the command: both or neither.
 *  A3 What it throws becomes the command's message. `ActionError` is meant for people; anything else is a defect and is said to be one.
 */
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { CommandStep, Row } from '@hq/shared/schema/tables.ts'
import type { Tx } from '@hq/shared/sync/contract.ts'
import type { z } from 'zod'
import type { GatewayContext, RuntimeRegistry } from '../service.ts'
import type { Stream } from './output.ts'

export type Command = Row<'agent_commands'>
export type Agent = Row<'agents'>
export type ActionName = Enum<'command_action'>

/** `message` says what, why, and what next. */
export class ActionError extends Error {
  /** Kept with the failed command, for whoever decides what next. */
  readonly result: Record<string, unknown> | undefined
  constructor(message: string, options?: ErrorOptions & { readonly result?: Record<string, unknown> }) {
    super(message, options)
    this.name = 'ActionError'
    this.result = options?.result
  }
}

export interface Job {
  readonly context: GatewayContext
  readonly runtimes: RuntimeRegistry
  readonly command: Command
  /** The agent that the command is about; null for commands about the gateway. */
  readonly agent: Agent | null
  /** Aborted by a cancel, a stop of the gateway, or the loss of the lease. */
  readonly signal: AbortSignal
  /** Begins a step of `steps`; the one before is done. */
  step(key: string, detail?: string): void
  output(text: string, stream?: Stream): void
}

export interface Outcome {
  readonly result?: Record<string, unknown>
  /** A2. */
  readonly commit?: (tx: Tx) => Promise<void>
}

export interface Action<Payload = unknown> {
  readonly name: ActionName
  /** Whether it is about an agent, and if so about which ones: `living` refuses a deleted one. */
  readonly agent: 'none' | 'living' | 'any'
  readonly payload: z.ZodType<Payload>
  readonly steps: readonly Pick<CommandStep, 'key' | 'label'>[]
  run(job: Job, payload: Payload): Promise<Outcome>
  /** After a cancel: takes back what can be taken back. May be called when nothing was done yet. */
  undo?(job: Job): Promise<void>
  /** Further rows when the command ends as `failed`, `cancelled` or `dead_letter`, in the same transaction. */
  onEnd?(tx: Tx, context: GatewayContext, command: Command, message: string): Promise<void>
}

/** Keeps the payload's type between `payload` and `run`, and forgets it outside. */
export const defineAction = <Payload>(action: Action<Payload>): Action => ({
  ...action,
  run: (job, payload) => action.run(job, action.payload.parse(payload)),
})
