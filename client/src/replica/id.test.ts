import { expect, test } from 'vitest'
import { newId } from './id.ts'

test('ids are UUIDs of version 7, sort by time, and keep their order within a millisecond', () => {
  const ids = Array.from({ length: 10_000 }, (_, n) => newId(1_700_000_000_000 + Math.floor(n / 6_000)))
  expect(ids[0]).toMatch(/^018bcfe5-6800-7000-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect([...ids].sort()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
})

test('a clock that goes back does not make older ids', () => {
  const later = newId(1_800_000_000_000)
  expect(newId(1_700_000_000_000) > later).toBe(true)
})
