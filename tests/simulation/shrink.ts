/** Makes a failing plan shorter: leaves out ever smaller parts of it while the same invariant still breaks. */
import type { Plan } from './plan.ts'
import { simulate, type Violation } from './simulate.ts'

export interface Shrunk {
  readonly plan: Plan
  readonly violation: Violation
}

/** @param budgetMs after so long the shortest found so far is returned */
export function shrink(plan: Plan, invariant: string, budgetMs = 60_000): Shrunk {
  const until = Date.now() + budgetMs
  const fails = (candidate: Plan): Violation | undefined => {
    const { violation } = simulate(candidate)
    return violation?.invariant === invariant ? violation : undefined
  }
  let best = plan
  let violation = fails(plan)
  if (!violation) throw new Error('This plan does not fail.')
  for (let size = Math.ceil(plan.actions.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let start = 0; start < best.actions.length && Date.now() < until; ) {
      const candidate = { ...best, actions: best.actions.toSpliced(start, size) }
      const still = fails(candidate)
      if (still) {
        best = candidate
        violation = still
      } else start += size
    }
  }
  return { plan: best, violation }
}
