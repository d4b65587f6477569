/**
 * Requests that are held until a shape has something to say.
 *
 *  1. A held request is one small record, a listener and no timer of its own: a server holds thirty of them for each of a thousand replicas.
 *  2. `done` is called once at most, and never before `hold` has returned: when the shape has something after the offset or is dead, when the time is
 *     over, or when the engine stops. After `cancel` it is not called.
 *  3. All are held equally long, so the one that came first is the first whose time is over.
 */
import { compareOffsets, type Hold, type Offset } from './protocol.ts'
import { logEnd, type Served } from './shapes.ts'

export interface Holding {
  /** For a caller who has just looked: the shape lives, has nothing after the offset, and the engine is not stopping. */
  hold(served: Served, after: Offset, done: () => void): Hold
  count(): number
}

export interface HoldingOptions {
  readonly longPollMs: number
  readonly stopping: AbortSignal
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number
}

/** How exactly the end of the time is kept. */
const LATE_MS = 100

interface Held extends Hold {
  readonly until: number
  readonly end: () => void
}

export function createHolding({ longPollMs, stopping, now = () => performance.now() }: HoldingOptions): Holding {
  /** In the order in which they came. */
  const all = new Set<Held>()
  let timer: NodeJS.Timeout | undefined

  const tick = (): void => {
    timer = undefined
    const time = now()
    for (const held of all) {
      if (held.until > time) break
      held.end()
    }
    wind(time)
  }

  const wind = (time: number): void => {
    if (timer) return
    const [first] = all
    if (first) timer = setTimeout(tick, Math.max(LATE_MS, first.until - time))
  }

  const endAll = (): void => {
    clearTimeout(timer)
    timer = undefined
    for (const { end } of [...all]) end()
  }
  stopping.addEventListener('abort', endAll)

  return {
    count: () => all.size,
    hold({ shape, generation }, after, done) {
      const cancel = (): void => {
        all.delete(held)
        shape.changes.delete(check)
      }
      const end = (): void => {
        cancel()
        done()
      }
      const check = (): void => {
        if (shape.state === 'dead' || compareOffsets(after, logEnd(shape, generation)) < 0) end()
      }
      const time = now()
      const held: Held = { until: time + longPollMs, end, cancel }
      all.add(held)
      shape.changes.add(check)
      wind(time)
      return held
    },
  }
}
