import { expect, test } from 'vitest'
import { timestampToIso } from './values.ts'

test('timestamps become ISO strings in UTC and keep their microseconds', () => {
  expect(timestampToIso('2025-01-31 10:00:00+00')).toBe('2025-01-31T10:00:00.000Z')
  expect(timestampToIso('2025-01-31 10:00:00.12+00')).toBe('2025-01-31T10:00:00.120Z')
  expect(timestampToIso('2025-01-31 10:00:00.123456+00')).toBe('2025-01-31T10:00:00.123456Z')
  expect(timestampToIso('2025-01-31 12:00:00.5+05:30')).toBe('2025-01-31T06:30:00.500Z')
  expect(timestampToIso('infinity')).toBe('infinity')
})
