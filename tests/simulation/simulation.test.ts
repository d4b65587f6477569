/**
 * The sync core in the simulation (simulate.ts): cases that were found once, a fixed set of seeds, and fresh ones for about a minute and a half.
 * `HQ_SIM_SEED` begins the fresh ones elsewhere, `HQ_SIM_SECONDS` says for how long. A failure names its seed; `npm run sim -- --seed N` shortens and keeps it.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { drawPlan, type Plan } from './plan.ts'
import { simulate } from './simulate.ts'

const STEPS = 150
const FIXED = 100
const SECONDS = Number(process.env['HQ_SIM_SECONDS'] ?? 90)
const folder = new URL('./cases/', import.meta.url)

test.for(readdirSync(folder).filter((name) => name.endsWith('.json')))('found once, must not come back: %s', (name) => {
  const plan = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Plan
  expect(simulate(plan).violation).toBeUndefined()
})

test('the same seed gives the same run', () => {
  const [one, two] = [simulate(drawPlan(7, STEPS)), simulate(drawPlan(7, STEPS))]
  expect(one).toEqual(two)
  expect(one.writes).toBeGreaterThan(50)
})

test('P2, P3, P4, P6, E1, H3, O1, O6: fixed seeds', () => {
  for (let seed = 1; seed <= FIXED; seed++) {
    const { violation } = simulate(drawPlan(seed, STEPS))
    expect(violation, `npm run sim -- --seed ${seed}`).toBeUndefined()
  }
})

test('P2, P3, P4, P6, E1, H3, O1, O6: fresh seeds', { timeout: (SECONDS + 60) * 1000 }, () => {
  const first = Number(process.env['HQ_SIM_SEED'] ?? Date.now() % 1_000_000_000)
  const end = Date.now() + SECONDS * 1000
  let writes = 0
  let seed = first
  for (; Date.now() < end; seed++) {
    const outcome = simulate(drawPlan(seed, STEPS))
    expect(outcome.violation, `npm run sim -- --seed ${seed}`).toBeUndefined()
    writes += outcome.writes
  }
  console.log(`simulated seeds ${first}–${seed - 1}: ${writes} writes`)
})
