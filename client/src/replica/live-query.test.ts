import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { deepEqual, LiveQueries, shareRows } from './live-query.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A source whose answers the test gives. */
function source() {
  const asked: { resolve: (rows: unknown[]) => void; reject: (error: Error) => void }[] = []
  return {
    asked,
    query: () => new Promise<unknown[]>((resolve, reject) => asked.push({ resolve, reject })),
    async answer(rows: unknown[]) {
      asked.shift()?.resolve(rows)
      await vi.advanceTimersByTimeAsync(0)
    },
    async fail(error: Error) {
      asked.shift()?.reject(error)
      await vi.advanceTimersByTimeAsync(0)
    },
  }
}

test('the same question is asked once and answers everybody', async () => {
  const database = source()
  const live = new LiveQueries(database)
  const a = live.get('select 1', [], ['tasks'])
  expect(live.get('select 1', [], ['tasks'])).toBe(a)
  a.subscribe(() => undefined)
  a.subscribe(() => undefined)
  expect(database.asked).toHaveLength(1)
  await database.answer([{ id: 1 }])
  expect(a.snapshot()).toEqual({ rows: [{ id: 1 }], ready: true, error: undefined })
})

test('L1, L2: rows stay while it runs again; many changes make few runs; the last change is never missed', async () => {
  const database = source()
  const live = new LiveQueries(database, { interval: 60 })
  const query = live.get('select 1', [], ['tasks'])
  query.subscribe(() => undefined)
  await database.answer([{ id: 1 }])
  for (let n = 0; n < 50; n++) live.changed(['tasks'])
  live.changed(['agents'])
  await vi.advanceTimersByTimeAsync(60)
  expect(database.asked).toHaveLength(1)
  expect(query.snapshot()).toMatchObject({ ready: true, rows: [{ id: 1 }] })
  live.changed(['tasks']) // while it runs: what it reads may be older than this
  await database.answer([{ id: 1 }, { id: 2 }])
  await vi.advanceTimersByTimeAsync(60)
  expect(database.asked).toHaveLength(1)
  await database.answer([{ id: 1 }, { id: 2 }, { id: 3 }])
  expect(query.snapshot().rows).toHaveLength(3)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(database.asked).toHaveLength(0)
})

test('L3: rows that did not change keep their identity; an equal result tells nobody', async () => {
  const database = source()
  const live = new LiveQueries(database)
  const query = live.get<{ id: number; tags: string[] }>('select 1', [], ['tasks'])
  const heard = vi.fn()
  query.subscribe(heard)
  await database.answer([
    { id: 1, tags: ['a'] },
    { id: 2, tags: [] },
  ])
  const before = query.snapshot()
  live.changed('all')
  await vi.advanceTimersByTimeAsync(60)
  await database.answer([
    { id: 1, tags: ['a'] },
    { id: 2, tags: [] },
  ])
  expect(query.snapshot()).toBe(before)
  expect(heard).toHaveBeenCalledTimes(1)
  live.changed('all')
  await vi.advanceTimersByTimeAsync(60)
  await database.answer([
    { id: 2, tags: ['new'] },
    { id: 1, tags: ['a'] },
  ])
  expect(query.snapshot().rows[1]).toBe(before.rows[0])
  expect(query.snapshot().rows[0]).toEqual({ id: 2, tags: ['new'] })
})

test('L4: without listeners it rests, then answers at once and catches up; later it is forgotten', async () => {
  const database = source()
  const live = new LiveQueries(database, { keepFor: 1_000 })
  const query = live.get('select 1', [], ['tasks'])
  const leave = query.subscribe(() => undefined)
  await database.answer([{ id: 1 }])
  leave()
  live.changed(['tasks'])
  await vi.advanceTimersByTimeAsync(500)
  expect(database.asked).toHaveLength(0)
  const again = live.get('select 1', [], ['tasks'])
  expect(again.snapshot().rows).toEqual([{ id: 1 }])
  const leaveAgain = again.subscribe(() => undefined)
  expect(database.asked).toHaveLength(1)
  await database.answer([{ id: 2 }])
  leaveAgain()
  await vi.advanceTimersByTimeAsync(1_100)
  expect(live.size).toBe(0)
})

test('a passing failure is tried again with the rows kept; a wrong statement is said', async () => {
  const database = source()
  const live = new LiveQueries(database)
  const query = live.get('select 1', [], ['tasks'])
  query.subscribe(() => undefined)
  await database.answer([{ id: 1 }])
  live.changed('all')
  await vi.advanceTimersByTimeAsync(60)
  await database.fail(Object.assign(new Error('no answer'), { code: 'timeout' }))
  expect(query.snapshot().error).toBeUndefined()
  await vi.advanceTimersByTimeAsync(300)
  await database.answer([{ id: 2 }])
  expect(query.snapshot().rows).toEqual([{ id: 2 }])
  const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  live.changed('all')
  await vi.advanceTimersByTimeAsync(400)
  await database.fail(Object.assign(new Error('no such column'), { code: 'sql' }))
  expect(query.snapshot()).toMatchObject({ rows: [{ id: 2 }], error: { message: 'no such column' } })
  await vi.advanceTimersByTimeAsync(10_000)
  expect(database.asked).toHaveLength(0)
  expect(logged).toHaveBeenCalledTimes(1)
  logged.mockRestore()
})

test('equality goes deep, and tells arrays from objects', () => {
  expect(deepEqual({ a: [1, { b: null }] }, { a: [1, { b: null }] })).toBe(true)
  expect(deepEqual({ a: 1 }, { a: 1, b: undefined })).toBe(false)
  expect(deepEqual([], {})).toBe(false)
  expect(deepEqual(new Date(5), new Date(5))).toBe(true)
  const before = [{ n: 1 }, { n: 2 }]
  expect(shareRows(before, [{ n: 1 }])[0]).toBe(before[0])
})

test('L5: a query that took long rests as long before it runs again, however much changes', async () => {
  const database = source()
  const live = new LiveQueries(database, { interval: 60 })
  live.get('select 1', [], ['tasks']).subscribe(() => undefined)
  live.changed(['tasks'])
  await vi.advanceTimersByTimeAsync(1_000)
  await database.answer([{ id: 1 }])
  live.changed(['tasks'])
  await vi.advanceTimersByTimeAsync(990)
  expect(database.asked).toHaveLength(0)
  await vi.advanceTimersByTimeAsync(20)
  expect(database.asked).toHaveLength(1)
})
