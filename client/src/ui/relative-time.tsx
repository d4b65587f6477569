import { useSyncExternalStore } from 'react'

/** One clock for the whole page: ticks every 15 s while anything listens. */
const listeners = new Set<() => void>()
let now = 0
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  if (timer === undefined) {
    now = Date.now()
    timer = setInterval(() => {
      now = Date.now()
      for (const each of listeners) each()
    }, 15_000)
  }
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
  }
}

/** Milliseconds since 1970, at most 15 s old. */
export function useNow(): number {
  return useSyncExternalStore(
    subscribe,
    () => {
      if (now === 0 || timer === undefined) now = Math.max(now, Math.floor(Date.now() / 15_000) * 15_000)
      return now
    },
    () => 0,
  )
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** "just now", "5 min", "3 h", "2 d", "12 Nov", "12 Nov 2025"; with `in` or `ago` where `words` asks for it. */
export function relative(at: number, from: number, words: boolean): string {
  const gap = Math.abs(from - at)
  const wrap = (text: string) => (words ? (at > from ? `in ${text}` : `${text} ago`) : text)
  // The page's clock is up to 15 s old and clocks differ: what seems to be a little ahead has just happened.
  if (gap < MINUTE) return 'just now'
  if (gap < HOUR) return wrap(`${Math.floor(gap / MINUTE)} min`)
  if (gap < DAY) return wrap(`${Math.floor(gap / HOUR)} h`)
  if (gap < 7 * DAY) return wrap(`${Math.floor(gap / DAY)} d`)
  const sameYear = new Date(at).getFullYear() === new Date(from).getFullYear()
  return new Intl.DateTimeFormat('en-GB', {
    day: 'numeric',
    month: 'short',
    ...(sameYear ? {} : { year: 'numeric' }),
  }).format(at)
}

/** "320 ms", "4.2 s", "3 min 5 s", "2 h 10 min". */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < MINUTE) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${Math.floor((ms % MINUTE) / 1000)} s`
  return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`
}

export type RelativeTimeProps = {
  /** Milliseconds, a Date, or an ISO timestamp. */
  at: number | string | Date
  /** "3 h ago" rather than "3 h". */
  words?: boolean
  className?: string | undefined
}

/** A time as people say it, kept current; the exact time on hover. */
export function RelativeTime({ at, words = false, className }: RelativeTimeProps) {
  const current = useNow()
  const ms = typeof at === 'number' ? at : new Date(at).getTime()
  if (Number.isNaN(ms)) return <span className={className}>unknown</span>
  const exact = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'medium' }).format(ms)
  return (
    <time dateTime={new Date(ms).toISOString()} title={exact} className={`nums whitespace-nowrap ${className ?? ''}`}>
      {relative(ms, current, words)}
    </time>
  )
}
