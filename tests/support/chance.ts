/**
 * Chance for tests that can be repeated: `HQ_CHAOS_SEED` sets the seed (else a new one, which is printed), `HQ_CHAOS_ROUNDS` how many rounds of each
 * kind there are.
 */
export interface Chance {
  readonly seed: number
  /** In [0, 1). */
  next(): number
  /** A whole number in [from, to). */
  between(from: number, to: number): number
  pick<T>(of: readonly T[]): T
}

export function createChance(what: string): Chance {
  const seed = Number(process.env['HQ_CHAOS_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`${what}: HQ_CHAOS_SEED=${seed}`)
  let state = seed >>> 0
  // mulberry32
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  return {
    seed,
    next,
    between: (from, to) => from + Math.floor(next() * (to - from)),
    pick: (of) => of[Math.floor(next() * of.length)] as (typeof of)[number],
  }
}

export const rounds = (usual: number): number => Number(process.env['HQ_CHAOS_ROUNDS'] ?? usual)

/** More rounds may take longer; so may a machine that does other things. */
export const limit = (usualRounds: number): { readonly timeout: number } => ({
  timeout: 150_000 + 20_000 * rounds(usualRounds),
})

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
