/**
 * Why an agent may or may not be woken now. Decided from rows alone, without a model and without the network (P10).
 *
 *  G1 The gates are asked in the order of `GATES`; the first that is shut is the verdict.
 *  G2 Every verdict but `open` has a sentence for people; `until` says when it ends by itself, and is missing when a person (or an event) must end it.
 *  G3 After a failure the agent rests 30 s, doubled with each further failure in a row, at most 900 s.
 *  G4 After 5 failures in a row that count, it waits for a person. A success or a person's action begins the count anew.
 *  G5 What only the network or the provider caused (`transient`) makes the agent rest (G3) but never makes it give up (G4).
 */
import type { Enum } from '../schema/enums.ts'
import { type BudgetLimits, type BudgetState, budgetSentence, type MonthUsage } from './budget.ts'

/** In the order in which they are asked (G1); the text says what each means and stands in the interface's help. */
export const GATES = {
  gateway_paused: 'The gateway is paused, so none of its agents works.',
  provisioning: 'The agent is still being set up on its gateway.',
  removing: 'The agent is being removed.',
  agent_error: 'Setting up the agent failed.',
  paused: 'A person has paused the agent.',
  hibernating: 'The agent sleeps until somebody wakes it.',
  working: 'The agent is working right now.',
  concurrency: 'The gateway already runs as many agents as it may at once.',
  cooldown: 'The last run failed; the agent rests before the next try.',
  active_lease: 'Another process of this gateway holds the work; it is taken over when its lease ends.',
  budget_exceeded: 'The monthly budget is used up.',
  stalled: 'The agent failed too often in a row and waits for a person.',
  no_work: 'There is nothing to do.',
} as const

export type GateCode = keyof typeof GATES

export type Verdict =
  | { readonly code: 'open' }
  | {
      readonly code: GateCode
      /** A sentence for people. */
      readonly detail: string
      /** Milliseconds since 1970. */
      readonly until?: number
    }

export const COOLDOWN_MS = { first: 30_000, longest: 900_000 } as const
export const STALLED_AFTER = 5
export const MAX_RUNS_AT_ONCE = 2

export interface GateInput {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly gateway: { readonly status: Enum<'gateway_status'>; readonly pauseRequested: boolean }
  readonly agent: {
    readonly status: Enum<'agent_status'>
    readonly statusReason: string | null
    readonly pauseRequested: boolean
  }
  /** What this agent is doing in a live run, or undefined: no run. */
  readonly working: { readonly title: string } | undefined
  /** Live runs of the whole gateway. */
  readonly runsAtOnce: number
  readonly maxRunsAtOnce: number
  readonly failures: Failures
  /** End of a lease on one of the agent's items that is not ours. */
  readonly foreignLeaseUntil: number | undefined
  readonly budget: {
    readonly limits: BudgetLimits
    readonly usage: MonthUsage
    readonly state: BudgetState
    readonly monthEnd: number
  }
  readonly work: {
    /** Items that could be worked on now. */
    readonly actionable: number
    /** When the next item that has to wait becomes actionable. */
    readonly nextAt: number | undefined
    /** Why items wait, if some do: "“Launch” waits for “Budget”". */
    readonly heldBack: string | undefined
  }
}

/** Runs that ended badly since the last success or action of a person. */
export interface Failures {
  /** All of them (G3). */
  readonly inARow: number
  /** Those that count towards giving up (G4, G5). */
  readonly counted: number
  /** When the newest ended, in milliseconds since 1970; undefined: there is none. */
  readonly lastAt: number | undefined
  readonly lastError: string | null
}

export const NO_FAILURES: Failures = { inARow: 0, counted: 0, lastAt: undefined, lastError: null }

/** G1. */
export function judge(input: GateInput): Verdict {
  const { agent, gateway, failures, budget, work, now } = input
  if (gateway.pauseRequested || gateway.status === 'paused') return shut('gateway_paused', 'The gateway is paused.')
  if (agent.status === 'provisioning')
    return shut('provisioning', agent.statusReason ?? 'The agent is still being set up.')
  if (agent.status === 'removing') return shut('removing', 'The agent is being removed.')
  if (agent.status === 'error') return shut('agent_error', agent.statusReason ?? 'Setting up the agent failed.')
  if (agent.pauseRequested || agent.status === 'paused') return shut('paused', 'A person has paused this agent.')
  if (agent.status === 'hibernating' || gateway.status === 'hibernating')
    return shut('hibernating', 'The agent sleeps until somebody wakes it.')
  if (input.working) return shut('working', `Working on ${input.working.title}.`)
  if (input.runsAtOnce >= input.maxRunsAtOnce) {
    return shut(
      'concurrency',
      `The gateway already runs ${input.runsAtOnce} agents at once; this one is next when one of them is done.`,
    )
  }
  const restUntil = cooldownUntil(failures)
  if (restUntil !== undefined && restUntil > now && failures.counted < STALLED_AFTER) {
    return shut('cooldown', `The last run failed${because(failures.lastError)}. Next try after a rest.`, restUntil)
  }
  if (input.foreignLeaseUntil !== undefined && input.foreignLeaseUntil > now) {
    return shut(
      'active_lease',
      'A process that ended holds this work; it is taken over when its lease ends.',
      input.foreignLeaseUntil,
    )
  }
  if (budget.state.blocked) {
    const sums = budgetSentence(budget.limits, budget.usage, budget.state)
    return shut(
      'budget_exceeded',
      `The monthly budget is used up: ${sums}. Raise it, or wait for the next month.`,
      budget.monthEnd,
    )
  }
  if (failures.counted >= STALLED_AFTER) {
    return shut(
      'stalled',
      `Gave up after ${failures.counted} failures in a row${because(failures.lastError)}. Resume it, comment, or assign the task anew to try again.`,
    )
  }
  if (work.actionable === 0) {
    const detail =
      work.heldBack ?? (work.nextAt === undefined ? 'Nothing to do.' : 'The next try of an item is still to come.')
    return shut('no_work', detail, work.nextAt)
  }
  return { code: 'open' }
}

/** G3: end of the rest after the newest failure, in milliseconds since 1970. */
export function cooldownUntil({ inARow, lastAt }: Failures): number | undefined {
  if (inARow === 0 || lastAt === undefined) return undefined
  return lastAt + Math.min(COOLDOWN_MS.longest, COOLDOWN_MS.first * 2 ** Math.min(inARow - 1, 20))
}

/** A run that has ended, as the gates see it. */
export interface EndedRun {
  readonly status: Enum<'run_status'>
  /** Milliseconds since 1970. */
  readonly endedAt: number
  readonly error: string | null
  /** Only the network or the provider was to blame (G5). */
  readonly transient: boolean
}

/** Counts failures from the newest run back to the last success or to `personActedAt` (G4). Cancelled runs say nothing. `runs`: newest first. */
export function countFailures(runs: readonly EndedRun[], personActedAt: number): Failures {
  let result = NO_FAILURES
  for (const run of runs) {
    if (run.status === 'done' || run.endedAt <= personActedAt) break
    if (run.status !== 'failed' && run.status !== 'interrupted') continue
    result = {
      inARow: result.inARow + 1,
      counted: result.counted + (run.transient ? 0 : 1),
      lastAt: result.lastAt ?? run.endedAt,
      lastError: result.lastAt === undefined ? run.error : result.lastError,
    }
  }
  return result
}

const shut = (code: GateCode, detail: string, until?: number): Verdict =>
  until === undefined ? { code, detail } : { code, detail, until }

/** ": The provider refused the key" without a final dot; nothing when the reason is unknown. */
const because = (error: string | null): string => (error ? ` (${error.replace(/\.+$/, '')})` : '')
