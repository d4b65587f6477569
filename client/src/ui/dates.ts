/**
 * Calendar days as text, `YYYY-MM-DD`, without a time zone: what a due date is. Everything is computed in UTC, so
 * no day is ever lost to a clock change. `today` comes from the caller.
 */
export type Day = string

const MS = 86_400_000
const DAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

const toMs = (day: Day): number => Date.parse(`${day}T00:00:00Z`)
const fromMs = (ms: number): Day => new Date(ms).toISOString().slice(0, 10)

/** The day on this machine's calendar at `at`. */
export function localDay(at: Date): Day {
  const two = (n: number) => String(n).padStart(2, '0')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
}

export function addDays(day: Day, days: number): Day {
  return fromMs(toMs(day) + days * MS)
}

/** Same day of another month, or that month's last day. */
export function addMonths(day: Day, months: number): Day {
  const date = new Date(toMs(day))
  const first = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1))
  const last = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate()
  first.setUTCDate(Math.min(date.getUTCDate(), last))
  return first.toISOString().slice(0, 10)
}

/** 0 Sunday … 6 Saturday. */
export function weekday(day: Day): number {
  return new Date(toMs(day)).getUTCDay()
}

export function daysBetween(from: Day, to: Day): number {
  return Math.round((toMs(to) - toMs(from)) / MS)
}

export function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(toMs(text)) && fromMs(toMs(text)) === text
}

/** Six weeks that contain the month of `day`, each starting on `firstWeekday`. */
export function monthGrid(day: Day, firstWeekday = 1): Day[][] {
  const first = `${day.slice(0, 7)}-01`
  const start = addDays(first, -((weekday(first) - firstWeekday + 7) % 7))
  return Array.from({ length: 6 }, (_, week) => Array.from({ length: 7 }, (_, i) => addDays(start, week * 7 + i)))
}

/**
 * What a person may type: today, tomorrow, a weekday ("fri": the next one), "in 3 days", "+2w", "12 dec", "dec 12",
 * "12.12.", "2026-12-01". A day and month without a year is the next such day. Null when it says nothing.
 */
export function parseDay(text: string, today: Day): Day | null {
  const t = text.trim().toLowerCase()
  if (t === '') return null
  if (isDay(t)) return t
  if (t === 'today') return today
  if (t.length >= 3 && 'tomorrow'.startsWith(t)) return addDays(today, 1)
  if (t === 'next week') return addDays(today, (8 - weekday(today)) % 7 || 7)
  const weekdayAt = t.length >= 3 ? DAYS.findIndex((name) => name.startsWith(t.replace(/^next /, ''))) : -1
  if (weekdayAt >= 0) return addDays(today, (weekdayAt - weekday(today) + 7) % 7 || 7)
  const offset = /^(?:in |\+)?(\d{1,3}) ?(d|day|days|w|week|weeks|m|month|months)$/.exec(t)
  if (offset) {
    const n = Number(offset[1])
    const unit = offset[2]?.[0]
    return unit === 'm' ? addMonths(today, n) : addDays(today, unit === 'w' ? n * 7 : n)
  }
  const named = /^(\d{1,2})\.? ?([a-z]{3})[a-z]*\.?$/.exec(t) ?? null
  const reversed = /^([a-z]{3})[a-z]* (\d{1,2})$/.exec(t)
  const numeric = /^(\d{1,2})\.(\d{1,2})\.?$/.exec(t)
  const date = named?.[1] ?? reversed?.[2] ?? numeric?.[1]
  const month = numeric ? Number(numeric[2]) : MONTHS.indexOf(named?.[2] ?? reversed?.[1] ?? '') + 1
  if (!date || month < 1 || month > 12) return null
  const year = Number(today.slice(0, 4))
  // Four years ahead, for the 29th of February.
  for (let y = year; y <= year + 4; y++) {
    const day = `${y}-${String(month).padStart(2, '0')}-${date.padStart(2, '0')}`
    if (isDay(day) && day >= today) return day
  }
  return null
}
