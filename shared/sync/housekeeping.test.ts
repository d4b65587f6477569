import type { PGlite } from '@electric-sql/pglite'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createHousekeeping } from './housekeeping.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('V1: a table is cleaned after many changes, once they have come to rest, and not for a few', async () => {
  const asked: string[] = []
  const db = { query: async (sql: string) => void asked.push(sql) } as unknown as PGlite
  const housekeeping = createHousekeeping(db, () => undefined)
  housekeeping.changed('contacts', 100)
  housekeeping.changed('tasks', 6_000)
  await vi.advanceTimersByTimeAsync(2_000)
  housekeeping.changed('tasks', 1)
  await vi.advanceTimersByTimeAsync(2_000)
  expect(asked, 'still changing').toEqual([])
  await vi.advanceTimersByTimeAsync(2_000)
  expect(asked).toEqual(['vacuum (analyze) "tasks"'])
  housekeeping.stop()
  housekeeping.changed('tasks', 50_000)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(asked).toHaveLength(1)
})
