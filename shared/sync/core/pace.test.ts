import { expect, test } from 'vitest'
import { type Exchange, newPace, paced, pauseMs } from './pace.ts'

const base: Exchange = { offset: '10_0', live: true, status: 200, reached: '10_0', tookMs: 1 }
const after = (exchanges: readonly Partial<Exchange>[]): number =>
  pauseMs(exchanges.reduce((pace, exchange) => paced(pace, { ...base, ...exchange }), newPace))
const times = (count: number, exchange: Partial<Exchange>): Partial<Exchange>[] =>
  Array.from({ length: count }, () => exchange)

test('Q1: a busy stream and a long snapshot are never slowed', () => {
  expect(after(times(1000, { reached: '11_0' }))).toBe(0)
  const parts = Array.from({ length: 500 }, (_, part) => ({
    live: false,
    offset: `0_${part}`,
    reached: `0_${part + 1}`,
  }))
  expect(after([{ live: false, offset: '-1', reached: '0_0' }, ...parts])).toBe(0)
})

test('Q2: empty answers at once, refetches without end and starting over all wait longer and longer', () => {
  for (const exchange of [{}, { status: 409 }, { offset: '-1', live: false, reached: '0_inf' }]) {
    expect(after(times(2, exchange))).toBe(0)
    expect(after(times(6, exchange))).toBeGreaterThanOrEqual(1_000)
    expect(after(times(40, exchange))).toBe(4_000)
  }
})

test('Q3: a change, or a poll that was held, makes good', () => {
  expect(after([...times(40, {}), { reached: '12_0' }])).toBe(0)
  expect(after([...times(40, {}), { tookMs: 20_000 }])).toBe(0)
})
