import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startClock } from './caps.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Work that takes `ms`, of which `waitedMs` were spent waiting for a person. */
const work = (ms: number, waitedMs?: number) => async () => {
  await vi.advanceTimersByTimeAsync(ms)
  return waitedMs === undefined ? {} : { waitedMs }
}

test('rings when its time is over', async () => {
  const clock = startClock(1_000)
  await vi.advanceTimersByTimeAsync(999)
  expect(clock.signal.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(clock.signal.aborted).toBe(true)
})

test('waiting for a person does not count, working does, and nothing is cut off within it', async () => {
  const clock = startClock(1_000)
  await vi.advanceTimersByTimeAsync(400)
  await clock.during(work(5_000, 4_900))
  await vi.advanceTimersByTimeAsync(499)
  expect(clock.signal.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(clock.signal.aborted).toBe(true)

  const other = startClock(1_000)
  let within: boolean | undefined
  await other.during(async () => {
    await vi.advanceTimersByTimeAsync(3_000)
    within = other.signal.aborted
    return {}
  })
  expect(within).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(other.signal.aborted).toBe(true)
})

test('also after work that failed; ended, it never rings', async () => {
  const clock = startClock(1_000)
  await expect(clock.during(() => Promise.reject(new Error('broke')))).rejects.toThrow('broke')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(clock.signal.aborted).toBe(true)
  const ended = startClock(1_000)
  ended.end()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(ended.signal.aborted).toBe(false)
})
