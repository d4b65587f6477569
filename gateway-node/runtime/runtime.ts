/**
 * What a runtime is: something that lets an agent work on one wake. Two exist: `builtin` (here) and `openclaw` (later).
 *
 *  X1 `beforeModelCall` is awaited before every model call. It throws `RunStopped` when pause, budget or the task say stop; then no call is made.
 *  X2 A runtime never throws: whatever happens is an outcome with a sentence for people. Secrets are in no event, outcome or log.
 *  X3 After `signal` is aborted it ends at once, writes nothing any more, and its outcome is `cancelled`.
 *  X4 Usage is reported once per model call, also of a call whose answer could not be used.
 */
import type { FailureCode, RunEvent } from '@hq/shared/domain/runs.ts'
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { z } from 'zod'
import type { TaskView } from '../local-api/task-view.ts'

export interface RunInput {
  readonly runId: string
  /** 1 for the first try of this item. */
  readonly attempt: number
  readonly agent: {
    readonly id: string
    readonly slug: string
    readonly name: string
    readonly description: string | null
    readonly domains: readonly string[]
  }
  readonly item: {
    readonly id: string
    readonly event: Enum<'inbox_event_type'>
    readonly commentId: string | null
    readonly linkId: string | null
    readonly context: Readonly<Record<string, unknown>>
  }
  readonly task: TaskView | undefined
  readonly workspace: { readonly name: string; readonly owner: string; readonly timezone: string }
  /** `model` or `provider/model`; null: the gateway's default. */
  readonly model: string | null
  readonly thinking: Enum<'thinking'>
  /** The agent's own files, or undefined when it has no worktree. */
  readonly files: AgentFiles | undefined
  /** The agent is set to read its BOOT.md once after each start of the gateway. */
  readonly boot?: boolean
}

/** The agent's worktree, jailed. Paths are relative, with `/`. Errors are refusals with a sentence. */
export interface AgentFiles {
  list(folder?: string): Promise<FileResult<readonly { readonly path: string; readonly size: number }[]>>
  read(path: string): Promise<FileResult<string>>
  /** Writes and commits. */
  write(path: string, text: string): Promise<FileResult<{ readonly path: string }>>
}

export type FileResult<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly message: string }

/** Something that a model may call. `run` gets what `input` has accepted. */
export interface AgentTool<Schema extends z.ZodType = z.ZodType> {
  readonly name: string
  readonly description: string
  readonly input: Schema
  run(input: z.output<Schema>): Promise<ToolOutput>
}

export interface ToolOutput {
  readonly ok: boolean
  /** What the model reads. */
  readonly text: string
  /** How long a person was waited for, in ms: it counts against no limit of the run. */
  readonly waitedMs?: number
}

export interface CallUsage {
  readonly turn: number
  readonly provider: string
  readonly model: string
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheRead: number
  readonly cacheWrite: number
  /** US dollars; null: no price known. */
  readonly costUsd: number | null
}

export interface RunHooks {
  onEvent(event: RunEvent): void
  onUsage(usage: CallUsage): Promise<void>
  /** What runs: told before the first model call. */
  onModel(model: { readonly provider: string; readonly model: string; readonly demo: boolean }): Promise<void>
  beforeModelCall(): Promise<void>
  readonly tools: readonly AgentTool[]
}

/** Thrown by `beforeModelCall` (X1). */
export class RunStopped extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'RunStopped'
  }
}

export interface RunOutcome {
  readonly status: 'done' | 'failed' | 'cancelled'
  /** What the agent said at the end, or null. */
  readonly summary: string | null
  readonly error?: { readonly code: FailureCode; readonly message: string }
  readonly turns: number
  readonly toolCalls: number
}

export interface AgentRuntime {
  readonly name: Enum<'agent_runtime'>
  run(input: RunInput, hooks: RunHooks, signal: AbortSignal): Promise<RunOutcome>
}
