/**
 * Slows down guessing. Pure but for its memory; time is an argument.
 *
 *  1. Only failures count: ten within 15 minutes for one address and email, fifty for one address.
 *  2. It forgets: memory is bounded, and a success clears the pair.
 */
const WINDOW_MS = 15 * 60_000
const PER_PAIR = 10
const PER_ADDRESS = 50
const MAX_KEYS = 10_000

export interface Attempts {
  /** Seconds to wait, or 0 if one may try. */
  wait(address: string, email: string, now: number): number
  failed(address: string, email: string, now: number): void
  succeeded(address: string, email: string): void
}

export function createAttempts(): Attempts {
  const failures = new Map<string, number[]>()
  const recent = (key: string, now: number): number[] => (failures.get(key) ?? []).filter((at) => at > now - WINDOW_MS)
  const waitFor = (key: string, limit: number, now: number): number => {
    const times = recent(key, now)
    const oldest = times.at(-limit)
    return oldest === undefined ? 0 : Math.ceil((oldest + WINDOW_MS - now) / 1000)
  }
  const record = (key: string, now: number): void => {
    const times = [...recent(key, now), now]
    failures.delete(key)
    failures.set(key, times)
    for (const oldest of failures.keys()) {
      if (failures.size <= MAX_KEYS) break
      failures.delete(oldest)
    }
  }
  const pair = (address: string, email: string): string => `${address} ${email.trim().toLowerCase()}`
  return {
    wait: (address, email, now) =>
      Math.max(waitFor(pair(address, email), PER_PAIR, now), waitFor(address, PER_ADDRESS, now)),
    failed(address, email, now) {
      record(pair(address, email), now)
      record(address, now)
    },
    succeeded: (address, email) => void failures.delete(pair(address, email)),
  }
}
