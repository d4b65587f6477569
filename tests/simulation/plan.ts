/**
 * What shall happen in a run: a list of actions, drawn from a seed. A run is decided by seed and actions alone, so that a failing run can be made
 * shorter by leaving actions out, kept as a file, and replayed.
 */
import { createRandom, mixSeed, type Random } from './random.ts'

/** `at`: milliseconds since the start. `device`: its number, modulo how many there are by then. `dice`: what else has to be chosen, in [0, 1). */
export type Action = { readonly at: number; readonly device: number; readonly dice: readonly number[] } & (
  | { readonly kind: 'write' | 'burst' | 'discard' | 'clone' }
  /** The device hears and says nothing for so long. */
  | { readonly kind: 'offline'; readonly forMs: number }
  /** Answers and requests of the device get lost, cut, doubled, late or never answered, for so long. */
  | { readonly kind: 'bad_network'; readonly forMs: number; readonly probability: number }
  | { readonly kind: 'crash'; readonly forMs: number }
  | { readonly kind: 'clock'; readonly skewMs: number }
  | { readonly kind: 'sign_out' | 'remove'; readonly forMs: number }
  | { readonly kind: 'demote'; readonly forMs: number }
  | { readonly kind: 'rotate' | 'prune' | 'backup' | 'restore' }
  | { readonly kind: 'server_crash'; readonly forMs: number }
)

export interface Plan {
  readonly seed: number
  readonly actions: readonly Action[]
}

const WEIGHTS: readonly (readonly [Action['kind'], number])[] = [
  ['write', 60],
  ['burst', 4],
  ['offline', 6],
  ['bad_network', 6],
  ['crash', 5],
  ['clock', 2],
  ['sign_out', 1],
  ['remove', 1],
  ['demote', 1],
  ['discard', 2],
  ['clone', 2],
  ['rotate', 3],
  ['prune', 2],
  ['backup', 2],
  ['restore', 1],
  ['server_crash', 2],
]
const TOTAL = WEIGHTS.reduce((sum, [, weight]) => sum + weight, 0)
const DAY_MS = 86_400_000

export function drawPlan(seed: number, steps: number): Plan {
  const random = createRandom(mixSeed(seed, 'plan'))
  const actions: Action[] = []
  let at = 0
  for (let step = 0; step < steps; step++) {
    at += random.chance(0.7) ? random.below(40) : random.below(2_000)
    actions.push(draw(random, at, random.below(60)))
  }
  return { seed, actions }
}

function draw(random: Random, at: number, device: number): Action {
  const kind = weighted(random.next() * TOTAL)
  const dice = Array.from({ length: 6 }, () => random.next())
  const forMs = random.chance(0.2) ? random.below(60_000) : random.below(3_000)
  switch (kind) {
    case 'bad_network':
      return { kind, at, device, dice, forMs, probability: random.next() * 0.6 }
    case 'clock':
      return { kind, at, device, dice, skewMs: Math.round((random.next() * 2 - 1) * DAY_MS) }
    case 'offline':
    case 'crash':
    case 'sign_out':
    case 'remove':
    case 'demote':
    case 'server_crash':
      return { kind, at, device, dice, forMs }
    default:
      return { kind, at, device, dice }
  }
}

function weighted(at: number): Action['kind'] {
  let left = at
  for (const [kind, weight] of WEIGHTS) {
    left -= weight
    if (left < 0) return kind
  }
  return 'write'
}
