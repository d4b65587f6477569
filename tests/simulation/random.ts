/** Small seeded generators (mulberry32): the same seed gives the same run. */
export interface Random {
  /** In [0, 1). */
  next(): number
  below(limit: number): number
  chance(probability: number): boolean
  pick<T>(items: readonly T[]): T | undefined
  uuid(): string
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const hex = (digits: number): string =>
    Array.from({ length: digits }, () => Math.floor(next() * 16).toString(16)).join('')
  return {
    next,
    below: (limit) => Math.floor(next() * limit),
    chance: (probability) => next() < probability,
    pick: (items) => items[Math.floor(next() * items.length)],
    uuid: () => `${hex(8)}-${hex(4)}-7${hex(3)}-8${hex(3)}-${hex(12)}`,
  }
}

/** A number out of several, so that each device and each purpose has its own stream of chance. */
export function mixSeed(...parts: readonly (number | string)[]): number {
  let hash = 0x811c9dc5
  for (const character of parts.join('/')) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193)
  return hash >>> 0
}
