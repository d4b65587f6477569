/**
 * What an agent may spend in a month and what it has spent. Pure: the clock is an argument.
 *
 *  B1 A month is a calendar month in the time zone of the workspace's owner; a call belongs to the month of its `occurred_at`.
 *  B2 An agent's own budget row counts before the workspace's default; a null limit is no limit.
 *  B3 A call without a known price (`cost_usd` null) costs no money but its tokens count.
 *  B4 `exceeded` from 100 % of either limit on, `warned` from the soft threshold on. Only `hardCutoff` turns `exceeded` into a stop.
 *  B5 An unknown time zone is read as UTC: a budget is never lifted by a typing error.
 */
import type { Enum } from '../schema/enums.ts'

export interface BudgetLimits {
  /** US dollars a month; null: no limit in money. */
  readonly limitUsd: number | null
  /** Input and output tokens a month; null: no limit in tokens. */
  readonly limitTokens: number | null
  /** 0 to 100. */
  readonly softThresholdPct: number
  readonly hardCutoff: boolean
}

/** Sums over this month's `agent_usage` of one agent. */
export interface MonthUsage {
  readonly spentUsd: number
  readonly tokens: number
  /** Calls without a known price. */
  readonly unmeteredCalls: number
}

export interface BudgetState {
  readonly status: Enum<'budget_status'>
  /** The limit that is nearest to its end, or null without limits. */
  readonly by: 'usd' | 'tokens' | null
  /** Used part of that limit in percent, not rounded; 0 without limits. */
  readonly usedPct: number
  /** No model call may be made (B4). */
  readonly blocked: boolean
}

interface BudgetRow {
  readonly monthly_limit_usd: number | null
  readonly monthly_limit_tokens: number | null
  readonly soft_threshold_pct: number
  readonly hard_cutoff: boolean
}

interface WorkspaceDefaults {
  readonly default_agent_budget_usd: number | null
  readonly default_soft_threshold_pct: number
  readonly default_hard_cutoff: boolean
}

export const NO_USAGE: MonthUsage = { spentUsd: 0, tokens: 0, unmeteredCalls: 0 }

/** B2. */
export function limitsOf(own: BudgetRow | undefined, workspace: WorkspaceDefaults | undefined): BudgetLimits {
  if (own) {
    return {
      limitUsd: own.monthly_limit_usd,
      limitTokens: own.monthly_limit_tokens,
      softThresholdPct: own.soft_threshold_pct,
      hardCutoff: own.hard_cutoff,
    }
  }
  return {
    limitUsd: workspace?.default_agent_budget_usd ?? null,
    limitTokens: null,
    softThresholdPct: workspace?.default_soft_threshold_pct ?? 80,
    hardCutoff: workspace?.default_hard_cutoff ?? true,
  }
}

/** B3, B4. A limit of zero is used up from the start. */
export function budgetState(limits: BudgetLimits, usage: MonthUsage): BudgetState {
  const parts: { by: 'usd' | 'tokens'; pct: number }[] = []
  if (limits.limitUsd !== null) parts.push({ by: 'usd', pct: percent(usage.spentUsd, limits.limitUsd) })
  if (limits.limitTokens !== null) parts.push({ by: 'tokens', pct: percent(usage.tokens, limits.limitTokens) })
  const nearest = parts.sort((a, b) => b.pct - a.pct)[0]
  if (!nearest) return { status: usage.unmeteredCalls > 0 ? 'unmetered' : 'ok', by: null, usedPct: 0, blocked: false }
  const status = nearest.pct >= 100 ? 'exceeded' : nearest.pct >= limits.softThresholdPct ? 'warned' : 'ok'
  return { status, by: nearest.by, usedPct: nearest.pct, blocked: status === 'exceeded' && limits.hardCutoff }
}

const percent = (used: number, limit: number): number => (limit <= 0 ? 100 : (used / limit) * 100)

/** "$4.10 of $5.00 this month" or "12,000 of 10,000 tokens this month". */
export function budgetSentence(limits: BudgetLimits, usage: MonthUsage, state: BudgetState): string {
  if (state.by === 'tokens') {
    return `${usage.tokens.toLocaleString('en-US')} of ${(limits.limitTokens ?? 0).toLocaleString('en-US')} tokens this month`
  }
  return `$${usage.spentUsd.toFixed(2)} of $${(limits.limitUsd ?? 0).toFixed(2)} this month`
}

/** The calendar month around `now` (B1), in milliseconds since 1970: `start` belongs to it, `end` doesn't. `key` is `YYYY-MM`. */
export function monthAround(now: number, timeZone: string): { start: number; end: number; key: string } {
  const zone = knownZone(timeZone)
  const { year, month } = wallClock(now, zone)
  return {
    start: instantOf(year, month, zone),
    end: month === 12 ? instantOf(year + 1, 1, zone) : instantOf(year, month + 1, zone),
    key: `${year}-${String(month).padStart(2, '0')}`,
  }
}

function knownZone(timeZone: string): string {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone }).resolvedOptions().timeZone
  } catch (error) {
    if (error instanceof RangeError) return 'UTC'
    throw error
  }
}

interface WallClock {
  readonly year: number
  readonly month: number
  /** The wall clock's reading as if it were UTC. */
  readonly asUtc: number
}

function wallClock(instant: number, timeZone: string): WallClock {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  }).formatToParts(instant)
  const part = (type: Intl.DateTimeFormatPartTypes): number => Number(parts.find((p) => p.type === type)?.value ?? 0)
  const [year, month] = [part('year'), part('month')]
  return {
    year,
    month,
    asUtc: Date.UTC(year, month - 1, part('day'), part('hour'), part('minute'), part('second')),
  }
}

/** The first instant of a month in a zone. Two rounds, because the offset is asked for at a guess that may lie across a change of clocks. */
function instantOf(year: number, month: number, timeZone: string): number {
  const wanted = Date.UTC(year, month - 1, 1)
  let instant = wanted
  for (let round = 0; round < 2; round += 1) {
    const offset = wallClock(instant, timeZone).asUtc - Math.floor(instant / 1000) * 1000
    instant = wanted - offset
  }
  return instant
}
