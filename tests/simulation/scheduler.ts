/** The one owner of time: what is to happen, in order of its time; nothing happens in between. */
export interface Scheduler {
  readonly now: () => number
  /** Returns the way to call it off. */
  at(afterMs: number, what: () => void): () => void
  /** Runs the next thing; false: there is none before `until`. */
  step(until: number): boolean
  pending(): number
}

interface Due {
  readonly time: number
  readonly order: number
  what: (() => void) | undefined
}

export function createScheduler(start: number): Scheduler {
  const heap: Due[] = []
  let now = start
  let order = 0
  const earlier = (a: Due, b: Due): boolean => a.time < b.time || (a.time === b.time && a.order < b.order)
  const swap = (a: number, b: number): void => {
    const held = heap[a] as Due
    heap[a] = heap[b] as Due
    heap[b] = held
  }
  const push = (due: Due): void => {
    heap.push(due)
    for (let at = heap.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1
      if (!earlier(heap[at] as Due, heap[parent] as Due)) break
      swap(at, parent)
      at = parent
    }
  }
  const pop = (): Due | undefined => {
    const first = heap[0]
    const last = heap.pop()
    if (!first || !last || first === last) return first
    heap[0] = last
    for (let at = 0; ; ) {
      const left = 2 * at + 1
      let least = at
      for (const child of [left, left + 1]) {
        if (child < heap.length && earlier(heap[child] as Due, heap[least] as Due)) least = child
      }
      if (least === at) break
      swap(at, least)
      at = least
    }
    return first
  }
  return {
    now: () => now,
    at(afterMs, what) {
      const due: Due = { time: now + Math.max(0, afterMs), order: order++, what }
      push(due)
      return () => {
        due.what = undefined
      }
    },
    step(until) {
      for (let next = heap[0]; next && next.time <= until; next = heap[0]) {
        pop()
        if (!next.what) continue
        now = next.time
        next.what()
        return true
      }
      now = Math.max(now, until)
      return false
    },
    pending: () => heap.length,
  }
}
