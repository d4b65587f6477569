import { expect, test } from 'vitest'
import { isAway, isBeingMade, protectionOf, sizeWords } from './backup-state.ts'

const NOW = Date.parse('2026-12-01T12:00:00Z')
const ago = (days: number) => new Date(NOW - days * 24 * 60 * 60_000).toISOString()

test.each([
  [null, 'never', 'Never backed up'],
  [ago(9.2), 'late', 'Last backup 9 days ago'],
  [ago(2.1), 'late', 'Last backup 2 days ago'],
  [ago(1.9), 'fresh', 'Backed up'],
])('newest %s is %s', (newest_at, key, label) => {
  expect(protectionOf({ newest_at }, NOW)).toMatchObject({ key, label })
})

test('what waits or runs is being made; a gateway not heard of is away', () => {
  expect(
    ['pending', 'leased', 'running', 'done', 'failed', null].map((command_status) =>
      isBeingMade({ command_status } as never),
    ),
  ).toEqual([true, true, true, false, false, false])
  expect([null, ago(1), ago(0)].map((last_seen_at) => isAway({ last_seen_at }, NOW))).toEqual([true, true, false])
})

test.each([
  [null, '–'],
  [820, '820 B'],
  ['14200', '14 KB'],
  [2_340_000, '2.3 MB'],
  [5_000_000_000_000, '5000 GB'],
])('%s is %s', (bytes, words) => {
  expect(sizeWords(bytes)).toBe(words)
})
