/**
 * At most so many pieces of work at once; the others wait, in the order in which they came, for as long as it takes.
 *
 * A thousand replicas that come together want thousands of snapshots: waiting for a database connection would fail after its time limit, waiting here does not.
 */
export interface Turns {
  run<T>(work: () => Promise<T>): Promise<T>
}

export const createTurns = (limit: number): Turns => {
  const waiting: (() => void)[] = []
  let running = 0
  return {
    async run(work) {
      if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve))
      else running++
      try {
        return await work()
      } finally {
        // Who waits takes over the place, so that nobody slips in between.
        const next = waiting.shift()
        if (next) next()
        else running--
      }
    },
  }
}
