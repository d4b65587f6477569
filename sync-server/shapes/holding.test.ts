import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createHolding } from './holding.ts'
import { SNAPSHOT_END } from './protocol.ts'
import { createListeners, type Served, type Shape } from './shapes.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const AT = { tx: 10, op: 0 }

/** As much of a shape as a held request looks at. */
function makeShape() {
  const shape = { state: 'ready', end: AT, changes: createListeners() } as unknown as Shape
  const served = { shape, generation: { from: SNAPSHOT_END } } as unknown as Served
  return {
    served,
    grow(tx: number) {
      shape.end = { tx, op: 0 }
      shape.changes.tell()
    },
    die() {
      shape.state = 'dead'
      shape.changes.tell()
    },
  }
}

function setUp() {
  const stopping = new AbortController()
  const holding = createHolding({ longPollMs: 20_000, stopping: stopping.signal })
  return { holding, stopping, done: vi.fn<() => void>(), shape: makeShape() }
}

test('2. growth after the offset answers it, once; what comes before or at it does not', () => {
  const { holding, done, shape } = setUp()
  holding.hold(shape.served, AT, done)
  shape.grow(10)
  expect(done).toHaveBeenCalledTimes(0)
  shape.grow(11)
  shape.grow(12)
  vi.advanceTimersByTime(60_000)
  expect(done).toHaveBeenCalledTimes(1)
  expect(holding.count()).toBe(0)
})

test('2. a shape that dies, and an engine that stops, answer everybody', () => {
  const { holding, stopping, done, shape } = setUp()
  holding.hold(shape.served, AT, done)
  shape.die()
  expect(done).toHaveBeenCalledTimes(1)
  holding.hold(makeShape().served, AT, done)
  holding.hold(makeShape().served, AT, done)
  stopping.abort()
  expect(done).toHaveBeenCalledTimes(3)
  expect(vi.getTimerCount()).toBe(0)
})

test('2. one that was cancelled is never called, by nothing', () => {
  const { holding, stopping, done, shape } = setUp()
  holding.hold(shape.served, AT, done).cancel()
  shape.grow(11)
  vi.advanceTimersByTime(60_000)
  stopping.abort()
  expect(done).not.toHaveBeenCalled()
})

test('1, 3. one timer for all; each ends when its own time is over', () => {
  const { holding, shape } = setUp()
  const ended: number[] = []
  for (let n = 0; n < 1_000; n++) {
    holding.hold(shape.served, AT, () => ended.push(n))
    if (n % 100 === 99) vi.advanceTimersByTime(1_000)
  }
  expect(vi.getTimerCount()).toBe(1)
  expect(ended).toEqual([])
  vi.advanceTimersByTime(10_200)
  expect(ended).toEqual(Array.from({ length: 100 }, (_, n) => n))
  vi.advanceTimersByTime(20_000)
  expect(ended).toHaveLength(1_000)
  expect(vi.getTimerCount()).toBe(0)
})
