import { expect, test } from 'vitest'
import { ACTIVE_MS, deviceState } from './devices.ts'

const NOW = Date.parse('2026-12-01T10:00:00Z')
const seen = (ageMs: number) => ({ revoked_at: null, last_seen_at: new Date(NOW - ageMs).toISOString() })

test('a device is active while it is heard of, and removed whatever it says', () => {
  expect(deviceState(seen(ACTIVE_MS - 1), false, NOW)).toBe('active')
  expect(deviceState(seen(ACTIVE_MS), false, NOW)).toBe('idle')
  expect(deviceState(seen(ACTIVE_MS), true, NOW)).toBe('active')
  expect(deviceState({ revoked_at: null, last_seen_at: null }, false, NOW)).toBe('idle')
  expect(deviceState({ ...seen(0), revoked_at: '2026-12-01T09:00:00Z' }, true, NOW)).toBe('revoked')
})
