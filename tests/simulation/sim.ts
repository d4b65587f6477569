/**
 * `npm run sim -- [--seed N] [--steps M] [--runs R] [--minutes T]`: runs the simulation; a failing run is made as short as it gets and kept in
 * tests/simulation/cases, where every later run replays it first.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { drawPlan } from './plan.ts'
import { shrink } from './shrink.ts'
import { LIMITS_OF_RUN, simulate } from './simulate.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    steps: { type: 'string', default: '150' },
    runs: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    keep: { type: 'boolean', default: true },
    shrink: { type: 'boolean', default: true },
    trace: { type: 'boolean', default: false },
  },
  allowNegative: true,
})
const steps = Number(values.steps)
const end = values.minutes === undefined ? undefined : Date.now() + Number(values.minutes) * 60_000
const first = Number(values.seed ?? Date.now() % 1_000_000_000)
let run = 0
let events = 0
let writes = 0
for (; end === undefined ? run < Number(values.runs) : Date.now() < end; run++) {
  const seed = first + run
  const plan = drawPlan(seed, steps)
  const outcome = simulate(plan)
  events += outcome.events
  writes += outcome.writes
  if (!outcome.violation) continue
  console.error(`seed ${seed}, ${steps} steps: ${outcome.violation.invariant}: ${outcome.violation.message}`)
  if (!values.shrink) process.exit(1)
  const small = shrink(plan, outcome.violation.invariant)
  console.error(
    `shrunk from ${plan.actions.length} to ${small.plan.actions.length} actions: ${small.violation.message}`,
  )
  if (values.trace) simulate(small.plan, LIMITS_OF_RUN, (line) => console.error(line))
  if (values.keep) {
    const folder = new URL('./cases/', import.meta.url)
    mkdirSync(folder, { recursive: true })
    const file = new URL(`${small.violation.invariant}-${seed}.json`, folder)
    writeFileSync(file, `${JSON.stringify({ found: small.violation.message, ...small.plan }, null, 1)}\n`)
    console.error(`kept as ${file.pathname}`)
  }
  process.exit(1)
}
const last = run > 1 ? `–${first + run - 1}` : ''
console.log(`${run} runs of ${steps} steps, seeds ${first}${last}: ${writes} writes, ${events} events, no violation.`)
