import { describe, expect, it } from 'vitest'
import { duration, relative } from './relative-time.tsx'

const now = Date.parse('2026-11-30T12:00:00Z')
const MINUTE = 60_000

describe('relative', () => {
  it.each([
    [now - 20_000, 'just now'],
    [now - 5 * MINUTE, '5 min ago'],
    [now - 180 * MINUTE, '3 h ago'],
    [now + 50 * 60 * MINUTE, 'in 2 d'],
    [now - 20 * 24 * 60 * MINUTE, '10 Nov'],
    [now - 400 * 24 * 60 * MINUTE, '26 Oct 2025'],
  ])('%#', (at, text) => expect(relative(at, now, true)).toBe(text))

  it('is short without words', () => expect(relative(now - 5 * MINUTE, now, false)).toBe('5 min'))
})

it.each([
  [320, '320 ms'],
  [4200, '4.2 s'],
  [42_000, '42 s'],
  [185_000, '3 min 5 s'],
  [7_800_000, '2 h 10 min'],
])('duration %d', (ms, text) => expect(duration(ms)).toBe(text))
