/**
 * How long one stream waits before its next request when its answers bring nothing: pure.
 *
 * Electric's client repeats some questions at once, for ever (a long poll that does not hold, a 409 after every snapshot, a handle that never changes). A
 * server that is out of order must not be asked hundreds of times a second by everyone.
 *
 * Q1 What brings changes is never slowed, nor are the parts of a snapshot.
 * Q2 What starts over, or is answered at once with nothing, costs; after a few of them each next request waits twice as long.
 * Q3 One answer that brought changes, or was held as it should be, makes good for all.
 */
export interface Pace {
  readonly debt: number
  /** A stream asks for the beginning once; every other time it starts over. */
  readonly begun: boolean
}

export const newPace: Pace = { debt: 0, begun: false }

export interface Exchange {
  /** Of the request. */
  readonly offset: string | null
  readonly live: boolean
  readonly status: number
  /** The answer's `electric-offset`. */
  readonly reached: string | null
  readonly tookMs: number
}

const FREE = 2
const FIRST_MS = 400
const MOST_MS = 4_000
/** A long poll that was held for so long is one. */
const HELD_MS = 1_000

export function paced(pace: Pace, { offset, live, status, reached, tookMs }: Exchange): Pace {
  const first = offset === '-1' && !pace.begun
  const begun = pace.begun || offset === '-1'
  if (status === 409 || status === 400) return { debt: pace.debt + 1, begun }
  if (status !== 200 && status !== 204) return { ...pace, begun }
  if (offset === '-1') return { debt: first ? pace.debt : pace.debt + 1, begun }
  const moved = reached !== null && reached !== offset
  if (live && (moved || tookMs >= HELD_MS)) return { debt: 0, begun }
  return { debt: moved ? pace.debt : pace.debt + 1, begun }
}

/** Milliseconds to wait before the next request. */
export const pauseMs = ({ debt }: Pace): number =>
  debt <= FREE ? 0 : Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(debt - FREE - 1, 16))
