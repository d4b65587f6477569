/**
 * What `agent_run_events.data` holds for each kind, and how work is picked. Pure.
 *
 *  R1 Pieces of `message` and `reasoning` are to be joined in the order of `seq`; `turn` says which answer of the model they belong to.
 *     A `status` with the code `anew` gives up what was said in its turn: the answer came once more, and is told under another one.
 *  R2 A `tool_call` and its `tool_result` have the same `call`; a result may be missing when the run was cut off.
 *  R3 No piece is longer than `PIECE_CHARS`; what was cut says so (`truncated`).
 *  R4 Higher priority first, then older first; but every `AGING_MS` of waiting raises an item by one priority, so that none starves.
 */
import type { Enum } from '../schema/enums.ts'

export const PIECE_CHARS = 8_000

/** `data` of a run event, by its `kind`. */
export interface RunEventData {
  /** `model`: provider/model the run uses; `code` is for programs, `text` for people. */
  status: {
    code: 'started' | 'claimed' | 'turn' | 'retry' | 'anew' | 'stopping' | 'done' | 'note'
    text: string
    turn?: number
    model?: string
  }
  message: { turn: number; text: string }
  reasoning: { turn: number; text: string }
  tool_call: { turn: number; call: string; tool: string; input: unknown; truncated?: boolean }
  tool_result: { turn: number; call: string; tool: string; ok: boolean; output: string; truncated?: boolean }
  error: { code: FailureCode; text: string }
  usage: {
    turn: number
    provider: string
    model: string
    input_tokens: number
    output_tokens: number
    cost_usd: number | null
  }
}

export type RunEvent = {
  [K in keyof RunEventData]: { readonly kind: K; readonly data: RunEventData[K] }
}[keyof RunEventData]

/**
 * Why a run failed. `config`: settings are wrong, a person must act (the item keeps its attempt). `transient`: network or provider, will pass
 * (the item keeps its attempt, and the agent doesn't give up). `work`: the try itself went wrong.
 */
export const FAILURE_CODES = {
  not_configured: 'config',
  unauthorized: 'config',
  forbidden: 'config',
  model_missing: 'config',
  no_runtime: 'config',
  no_workspace: 'config',
  unreachable: 'transient',
  timeout: 'transient',
  rate_limited: 'transient',
  provider_down: 'transient',
  bad_request: 'work',
  bad_stream: 'work',
  refused: 'work',
  context_full: 'work',
  too_many_turns: 'work',
  too_many_tool_calls: 'work',
  too_many_tokens: 'work',
  too_long: 'work',
  loop: 'work',
  nothing_done: 'work',
  crashed: 'work',
  internal: 'work',
} as const

export type FailureCode = keyof typeof FAILURE_CODES
export type FailureKind = (typeof FAILURE_CODES)[FailureCode]

export const isFailureCode = (code: unknown): code is FailureCode =>
  typeof code === 'string' && Object.hasOwn(FAILURE_CODES, code)

/** How long an item waits until it counts as one priority higher (R4). */
export const AGING_MS = 30 * 60_000

const RANK: Record<Enum<'task_priority'>, number> = { low: 0, medium: 1, high: 2, urgent: 3 }

export interface Pickable {
  readonly id: string
  readonly priority: Enum<'task_priority'>
  /** Milliseconds since 1970. */
  readonly createdAt: number
}

/** R4, as a comparison for `sort`: negative when `a` comes first. */
export function compareWork(a: Pickable, b: Pickable, now: number): number {
  const rank = (item: Pickable): number =>
    RANK[item.priority] + Math.floor(Math.max(0, now - item.createdAt) / AGING_MS)
  return rank(b) - rank(a) || a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}

/** Events that are about doing the task (the others are conversation, which also goes on when the task is done). */
export const isWorkEvent = (event: Enum<'inbox_event_type'>): boolean =>
  event !== 'task_comment_mention' &&
  event !== 'task_comment' &&
  event !== 'routine_schedule' &&
  event !== 'routine_event'

/** Cuts text at `max` characters without splitting a surrogate pair. */
export function cut(text: string, max: number): { text: string; truncated: boolean } {
  if (text.length <= max) return { text, truncated: false }
  const end = isHighSurrogate(text.charCodeAt(max - 1)) ? max - 1 : max
  return { text: text.slice(0, end), truncated: true }
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff
