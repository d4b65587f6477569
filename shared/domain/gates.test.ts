import { describe, expect, test } from 'vitest'
import { budgetState, limitsOf, monthAround, NO_USAGE } from './budget.ts'
import {
  cooldownUntil,
  countFailures,
  type EndedRun,
  GATES,
  type GateCode,
  type GateInput,
  judge,
  NO_FAILURES,
} from './gates.ts'
import { AGING_MS, compareWork, cut } from './runs.ts'

const NOW = Date.parse('2026-03-10T12:00:00Z')
const noLimits = { limitUsd: null, limitTokens: null, softThresholdPct: 80, hardCutoff: true }
const open: GateInput = {
  now: NOW,
  gateway: { status: 'ready', pauseRequested: false },
  agent: { status: 'ready', statusReason: null, pauseRequested: false },
  working: undefined,
  runsAtOnce: 0,
  maxRunsAtOnce: 2,
  failures: NO_FAILURES,
  foreignLeaseUntil: undefined,
  budget: { limits: noLimits, usage: NO_USAGE, state: budgetState(noLimits, NO_USAGE), monthEnd: NOW + 1_000_000 },
  work: { actionable: 1, nextAt: undefined, heldBack: undefined },
}
const spent = (usd: number, hardCutoff = true): GateInput['budget'] => {
  const limits = { ...noLimits, limitUsd: 5, hardCutoff }
  const usage = { ...NO_USAGE, spentUsd: usd }
  return { limits, usage, state: budgetState(limits, usage), monthEnd: NOW + 1_000_000 }
}
const failures = (inARow: number, counted = inARow, agoMs = 1_000) => ({
  inARow,
  counted,
  lastAt: NOW - agoMs,
  lastError: 'The key was refused.',
})

/** Each row shuts one gate; the code, and whether it ends by itself. */
const SHUT: readonly [GateCode, Partial<GateInput>, boolean][] = [
  ['gateway_paused', { gateway: { status: 'ready', pauseRequested: true } }, false],
  ['gateway_paused', { gateway: { status: 'paused', pauseRequested: false } }, false],
  ['provisioning', { agent: { ...open.agent, status: 'provisioning' } }, false],
  ['removing', { agent: { ...open.agent, status: 'removing' } }, false],
  ['agent_error', { agent: { ...open.agent, status: 'error', statusReason: 'Template broken.' } }, false],
  ['paused', { agent: { ...open.agent, pauseRequested: true } }, false],
  ['paused', { agent: { ...open.agent, status: 'paused' } }, false],
  ['hibernating', { agent: { ...open.agent, status: 'hibernating' } }, false],
  ['working', { working: { title: '“X”' }, runsAtOnce: 1 }, false],
  ['concurrency', { runsAtOnce: 2 }, false],
  ['cooldown', { failures: failures(1) }, true],
  ['active_lease', { foreignLeaseUntil: NOW + 5_000 }, true],
  ['budget_exceeded', { budget: spent(5) }, true],
  ['stalled', { failures: failures(5, 5, 10_000_000) }, false],
  ['stalled', { failures: failures(5, 5, 10) }, false],
  ['no_work', { work: { actionable: 0, nextAt: undefined, heldBack: undefined } }, false],
  ['no_work', { work: { actionable: 0, nextAt: NOW + 9, heldBack: undefined } }, true],
  ['no_work', { work: { actionable: 0, nextAt: undefined, heldBack: '“A” waits for “B”.' } }, false],
]

describe('gates', () => {
  test('nothing in the way: open', () => {
    expect(judge(open)).toEqual({ code: 'open' })
  })

  test.each(SHUT)('%s (G2)', (code, change, ends) => {
    const verdict = judge({ ...open, ...change })
    expect(verdict.code).toBe(code)
    if (verdict.code === 'open') throw new Error('open')
    expect(verdict.detail).toMatch(/\w.*\.$/)
    expect(verdict.until !== undefined).toBe(ends)
  })

  test('with several gates shut the first of the order is named (G1)', () => {
    const order = Object.keys(GATES)
    for (const [earlier, a] of SHUT) {
      for (const [later, b] of SHUT) {
        if (order.indexOf(earlier) >= order.indexOf(later)) continue
        if (earlier === 'cooldown' && later === 'stalled') continue // who waits for a person has no use for a rest
        const both = { ...open, ...b, ...a, agent: { ...open.agent, ...b.agent, ...a.agent } }
        if (a.gateway && b.gateway) continue
        const code = judge(both).code
        expect(order.indexOf(code as string), `${earlier} before ${later}`).toBeLessThanOrEqual(order.indexOf(earlier))
      }
    }
  })

  test('soft limits do not stop; a past lease and a finished rest do not either', () => {
    expect(judge({ ...open, budget: spent(50, false) }).code).toBe('open')
    expect(judge({ ...open, foreignLeaseUntil: NOW - 1 }).code).toBe('open')
    expect(judge({ ...open, failures: failures(1, 1, 30_001) }).code).toBe('open')
  })

  test.each([
    [1, 30],
    [2, 60],
    [3, 120],
    [5, 480],
    [6, 900],
    [400, 900],
  ])('after %i failures the rest is %i s (G3)', (inARow, seconds) => {
    expect(cooldownUntil(failures(inARow, 0, 0))).toBe(NOW + seconds * 1000)
  })
})

describe('counting failures', () => {
  const run = (status: EndedRun['status'], minutesAgo: number, transient = false): EndedRun => ({
    status,
    endedAt: NOW - minutesAgo * 60_000,
    error: `${status} ${minutesAgo}`,
    transient,
  })

  test('back to the last success; cancelled runs say nothing (G4)', () => {
    const runs = [run('failed', 1), run('cancelled', 2), run('interrupted', 3), run('done', 4), run('failed', 5)]
    expect(countFailures(runs, 0)).toEqual({ inARow: 2, counted: 2, lastAt: NOW - 60_000, lastError: 'failed 1' })
  })

  test('a person who acts begins the count anew (G4)', () => {
    expect(countFailures([run('failed', 1), run('failed', 3)], NOW - 2 * 60_000).inARow).toBe(1)
    expect(countFailures([run('failed', 3)], NOW)).toEqual(NO_FAILURES)
  })

  test('what only the network caused makes it rest, never give up (G5)', () => {
    const result = countFailures(
      Array.from({ length: 9 }, (_, index) => run('failed', index + 1, true)),
      0,
    )
    expect(result).toMatchObject({ inARow: 9, counted: 0 })
    expect(judge({ ...open, failures: result }).code).toBe('cooldown')
  })
})

describe('budget', () => {
  test.each([
    [0, 'ok', false],
    [3.99, 'ok', false],
    [4, 'warned', false],
    [5, 'exceeded', true],
  ] as const)('$%d of $5: %s (B4)', (usd, status, blocked) => {
    expect(budgetState({ ...noLimits, limitUsd: 5 }, { ...NO_USAGE, spentUsd: usd })).toMatchObject({ status, blocked })
  })

  test('the nearer of two limits counts; tokens of unmetered models too (B3)', () => {
    const limits = { ...noLimits, limitUsd: 5, limitTokens: 1000 }
    expect(budgetState(limits, { spentUsd: 0, tokens: 1000, unmeteredCalls: 3 })).toMatchObject({
      status: 'exceeded',
      by: 'tokens',
    })
    expect(budgetState(noLimits, { spentUsd: 0, tokens: 9, unmeteredCalls: 1 }).status).toBe('unmetered')
    expect(budgetState({ ...noLimits, limitUsd: 0 }, NO_USAGE).blocked).toBe(true)
  })

  test('the own row before the default of the workspace (B2)', () => {
    const workspace = { default_agent_budget_usd: 7, default_soft_threshold_pct: 50, default_hard_cutoff: false }
    expect(limitsOf(undefined, workspace)).toEqual({
      limitUsd: 7,
      limitTokens: null,
      softThresholdPct: 50,
      hardCutoff: false,
    })
    const own = { monthly_limit_usd: null, monthly_limit_tokens: 9, soft_threshold_pct: 80, hard_cutoff: true }
    expect(limitsOf(own, workspace)).toMatchObject({ limitUsd: null, limitTokens: 9 })
    expect(limitsOf(undefined, undefined).limitUsd).toBeNull()
  })

  test.each([
    ['UTC', '2026-03-10T12:00:00Z', '2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z', '2026-03'],
    ['America/New_York', '2026-03-01T03:00:00Z', '2026-02-01T05:00:00Z', '2026-03-01T05:00:00Z', '2026-02'],
    ['America/New_York', '2026-03-20T00:00:00Z', '2026-03-01T05:00:00Z', '2026-04-01T04:00:00Z', '2026-03'],
    ['Pacific/Kiritimati', '2025-12-31T10:00:00Z', '2025-12-31T10:00:00Z', '2026-01-31T10:00:00Z', '2026-01'],
    ['Asia/Kathmandu', '2026-07-31T18:14:59Z', '2026-06-30T18:15:00Z', '2026-07-31T18:15:00Z', '2026-07'],
    ['no/such zone', '2026-12-10T12:00:00Z', '2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z', '2026-12'],
  ])('the month in %s around %s (B1, B5)', (zone, at, start, end, key) => {
    const month = monthAround(Date.parse(at), zone)
    expect({
      start: new Date(month.start).toISOString(),
      end: new Date(month.end).toISOString(),
      key: month.key,
    }).toEqual({
      start: new Date(start).toISOString(),
      end: new Date(end).toISOString(),
      key,
    })
  })
})

describe('order of work', () => {
  test('priority, then age, and ageing keeps a low item from starving (R4)', () => {
    const item = (id: string, priority: 'low' | 'medium' | 'high' | 'urgent', ageMs: number) => ({
      id,
      priority,
      createdAt: NOW - ageMs,
    })
    const sorted = [
      item('new urgent', 'urgent', 0),
      item('old low', 'low', 4 * AGING_MS),
      item('low', 'low', 1),
      item('older low', 'low', 2),
    ].sort((a, b) => compareWork(a, b, NOW))
    expect(sorted.map(({ id }) => id)).toEqual(['old low', 'new urgent', 'older low', 'low'])
  })

  test('cutting never splits a character', () => {
    expect(cut('a😀b', 2)).toEqual({ text: 'a', truncated: true })
    expect(cut('a😀b', 3)).toEqual({ text: 'a😀', truncated: true })
    expect(cut('ab', 2)).toEqual({ text: 'ab', truncated: false })
  })
})
