/**
 * Hybrid logical clock: says which of two changes came later, also when machines' clocks differ.
 *
 * Text form `<12 hex ms>-<4 hex counter>-<replica id>` sorts like the clock. In a replica the clock is kept in `sync.replica` and moved in SQL,
 * within the transaction of the change (`sync.finish`); these functions are the same rules for code and the server.
 *
 * H1 `tick` always gives a later time than it was given, whatever the machine's clock says.
 * H2 Two clocks are equal only if they are of the same replica and the same tick.
 * H3 A time further ahead than the allowed drift is clamped to now, not refused: a wrong clock must neither win for ever nor lose data.
 */
export interface Hlc {
  readonly ms: number
  readonly counter: number
}

const MAX_COUNTER = 0xffff

export const tick = (last: Hlc, now: number): Hlc => {
  if (now > last.ms) return { ms: now, counter: 0 }
  if (last.counter < MAX_COUNTER) return { ms: last.ms, counter: last.counter + 1 }
  return { ms: last.ms + 1, counter: 0 }
}

export const hlcToText = ({ ms, counter }: Hlc, replicaId: string): string =>
  `${ms.toString(16).padStart(12, '0')}-${counter.toString(16).padStart(4, '0')}-${replicaId}`

const HLC = /^([0-9a-f]{12})-([0-9a-f]{4})-([0-9a-f-]{36})$/

export const textToHlc = (text: string): (Hlc & { readonly replicaId: string }) | undefined => {
  const match = HLC.exec(text)
  if (!match) return undefined
  const [, ms = '', counter = '', replicaId = ''] = match
  return { ms: Number.parseInt(ms, 16), counter: Number.parseInt(counter, 16), replicaId }
}

/** Negative: `a` is earlier. */
export const compareHlc = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

export const clampHlc = (text: string, now: number, maxDriftMs: number): string => {
  const hlc = textToHlc(text)
  if (!hlc || hlc.ms <= now + maxDriftMs) return text
  return hlcToText({ ms: now, counter: hlc.counter }, hlc.replicaId)
}
