/**
 * Due dates. `tasks.due_date` is an instant; people think in days of the workspace's time zone. Pure: zone and clock are arguments.
 *
 * D1 A day becomes 23:59 of that day in the zone; reading it back gives the same day in the same zone.
 * D2 Overdue is derived: the instant has passed and the task is open. It is never stored.
 */
import { addDays, type Day, daysBetween, weekday } from '../../ui/dates.ts'

const MINUTE = 60_000
const formats = new Map<string, Intl.DateTimeFormat>()

function partsOf(at: number, zone: string): { day: Day; hour: number; minute: number } {
  let format = formats.get(zone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-GB', {
      timeZone: safeZone(zone),
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    })
    formats.set(zone, format)
  }
  const part: Record<string, string> = {}
  for (const { type, value } of format.formatToParts(at)) part[type] = value
  return {
    day: `${part['year']}-${part['month']}-${part['day']}`,
    hour: Number(part['hour']),
    minute: Number(part['minute']),
  }
}

/** A zone this machine does not know counts as UTC, so that one bad setting never breaks a list. */
function safeZone(zone: string): string {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return zone
  } catch {
    // Unknown zone: see above.
    return 'UTC'
  }
}

/** The calendar day of an instant in `zone`. */
export const dayIn = (at: number | string, zone: string): Day =>
  partsOf(typeof at === 'number' ? at : Date.parse(at), zone).day

/** The instant (ms since 1970) at which the clocks of `zone` show `hour:minute` of `day`. */
export function instantOf(day: Day, hour: number, minute: number, zone: string): number {
  const wanted = Date.parse(`${day}T00:00:00Z`) + (hour * 60 + minute) * MINUTE
  let guess = wanted
  // The offset at the guess, then at the better guess: enough for every zone, also across a clock change.
  for (let i = 0; i < 2; i++) {
    const shown = partsOf(guess, zone)
    const asUtc = Date.parse(`${shown.day}T00:00:00Z`) + (shown.hour * 60 + shown.minute) * MINUTE
    guess += wanted - asUtc
  }
  return guess
}

/** D1: what is stored for a day, as ISO. */
export const dueOfDay = (day: Day, zone: string): string => new Date(instantOf(day, 23, 59, zone)).toISOString()

export type DueTask = { readonly due_date: string | null; readonly status: string }

/** D2. */
export const isOverdue = (task: DueTask, now: number): boolean =>
  task.due_date !== null && isOpen(task.status) && Date.parse(task.due_date) < now

export const isOpen = (status: string): boolean => status !== 'done' && status !== 'cancelled'

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

const dayFormat = (options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' })
const SHORT = dayFormat({ day: 'numeric', month: 'short' })
const LONG = dayFormat({ day: 'numeric', month: 'short', year: 'numeric' })

/** "Today", "Tomorrow", "Friday", "12 Nov", "12 Nov 2027"; with the hour when it is not the end of the day. */
export function dueLabel(due: string, zone: string, now: number): string {
  const at = partsOf(Date.parse(due), zone)
  const today = partsOf(now, zone).day
  const time =
    at.hour === 23 && at.minute >= 59
      ? ''
      : ` ${String(at.hour).padStart(2, '0')}:${String(at.minute).padStart(2, '0')}`
  const gap = daysBetween(today, at.day)
  if (gap === 0) return `Today${time}`
  if (gap === 1) return `Tomorrow${time}`
  if (gap === -1) return `Yesterday${time}`
  if (gap > 1 && gap < 7) return `${WEEKDAYS[weekday(at.day)]}${time}`
  const date = new Date(`${at.day}T00:00:00Z`)
  return at.day.slice(0, 4) === today.slice(0, 4) ? SHORT.format(date) : LONG.format(date)
}

/** "2 days overdue", "overdue since 14:00": for the detail page. */
export function overdueLabel(due: string, zone: string, now: number): string {
  const days = daysBetween(dayIn(due, zone), dayIn(now, zone))
  if (days <= 0) return 'Overdue'
  return days === 1 ? '1 day overdue' : `${days} days overdue`
}

/** Ends of today and of the coming seven days in the zone, as ISO: the borders of the due groups. */
export function dueBorders(now: number, zone: string): { readonly today: string; readonly week: string } {
  const today = dayIn(now, zone)
  return {
    today: new Date(instantOf(addDays(today, 1), 0, 0, zone)).toISOString(),
    week: new Date(instantOf(addDays(today, 7), 0, 0, zone)).toISOString(),
  }
}
