import { Calendar, ChevronLeft, ChevronRight, X } from 'lucide-react'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { cx } from './cx.ts'
import { addDays, addMonths, type Day, localDay, monthGrid, parseDay, weekday } from './dates.ts'
import { Field, type FieldProps } from './field.tsx'
import { IconButton } from './icon-button.tsx'
import { Popover } from './popover.tsx'

export type DateFieldProps = FieldProps & {
  /** `YYYY-MM-DD`, or null. */
  value: Day | null
  onValueChange: (value: Day | null) => void
  placeholder?: string
  disabled?: boolean
  /** For tests and demos; the machine's day otherwise. */
  today?: Day
}

const format = (day: Day, options: Intl.DateTimeFormatOptions): string =>
  new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' }).format(new Date(`${day}T00:00:00Z`))
export const longDay = (day: Day): string =>
  format(day, { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' })

/** Where a key leads from a day, as in every date grid; null for other keys. */
function step(key: string, from: Day): Day | null {
  const inWeek = (weekday(from) + 6) % 7
  switch (key) {
    case 'ArrowLeft':
      return addDays(from, -1)
    case 'ArrowRight':
      return addDays(from, 1)
    case 'ArrowUp':
      return addDays(from, -7)
    case 'ArrowDown':
      return addDays(from, 7)
    case 'PageUp':
      return addMonths(from, -1)
    case 'PageDown':
      return addMonths(from, 1)
    case 'Home':
      return addDays(from, -inWeek)
    case 'End':
      return addDays(from, 6 - inWeek)
    default:
      return null
  }
}

/** A calendar day: type it ("fri", "12 dec", "in 3 days") or pick it. */
export function DateField(props: DateFieldProps) {
  const {
    label,
    hideLabel,
    hint,
    error,
    optional,
    className,
    value,
    onValueChange,
    placeholder = 'No date',
    disabled,
  } = props
  const [open, setOpen] = useState(false)
  const today = props.today ?? localDay(new Date())
  const choose = (day: Day | null) => {
    onValueChange(day)
    setOpen(false)
  }
  return (
    <Field {...{ label, hideLabel, hint, error, optional, className }}>
      {(control) => (
        <Popover
          label={label}
          open={open}
          onOpenChange={setOpen}
          className="w-64"
          trigger={
            <button
              type="button"
              {...control}
              disabled={disabled}
              className="control flex items-center gap-2 px-2.5 text-left select-none"
            >
              <Calendar className="size-4 shrink-0 text-text-3" strokeWidth={1.75} aria-hidden="true" />
              <span className={cx('nums truncate', !value && 'text-text-3')}>
                {value ? longDay(value) : placeholder}
              </span>
            </button>
          }
        >
          <DatePicker value={value} onChoose={choose} today={today} label={label} />
        </Popover>
      )}
    </Field>
  )
}

/** The panel itself, for menus that set a date. */
export function DatePicker(props: {
  value: Day | null
  onChoose: (day: Day | null) => void
  today: Day
  label: string
}) {
  const { value, onChoose, today, label } = props
  const [cursor, setCursor] = useState<Day>(value ?? today)
  const [text, setText] = useState('')
  const grid = useRef<HTMLTableElement>(null)
  const moved = useRef(false)
  const typed = parseDay(text, today)
  const shown = typed ?? cursor

  useEffect(() => {
    if (moved.current) grid.current?.querySelector<HTMLElement>(`[data-day="${cursor}"]`)?.focus()
    moved.current = false
  }, [cursor])

  const onGridKey = (event: KeyboardEvent) => {
    const next = step(event.key, cursor)
    if (!next) return
    event.preventDefault()
    moved.current = true
    setCursor(next)
  }
  const quick: [string, Day][] = [
    ['Today', today],
    ['Tomorrow', addDays(today, 1)],
    ['Monday', addDays(today, (8 - weekday(today)) % 7 || 7)],
  ]
  const weeks = monthGrid(shown)
  return (
    <div>
      <input
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && typed) onChoose(typed)
          if (event.key === 'ArrowDown') {
            event.preventDefault()
            grid.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus()
          }
        }}
        aria-label={`${label}: type a day`}
        placeholder="fri, 12 dec, in 3 days…"
        className="h-9 w-full border-b border-line bg-transparent px-3 outline-none touch:h-11 touch:text-lg"
      />
      <div className="p-2">
        <div className="flex gap-1 pb-2">
          {quick.map(([name, day]) => (
            <button
              key={name}
              type="button"
              onClick={() => onChoose(day)}
              className="h-6 flex-1 rounded-sm bg-surface-2 text-xs hover:bg-surface-3 touch:h-10"
            >
              {name}
            </button>
          ))}
          {value && (
            <button
              type="button"
              onClick={() => onChoose(null)}
              aria-label="Remove the date"
              className="grid size-6 place-items-center rounded-sm text-text-3 hover:bg-surface-3 touch:size-10"
            >
              <X className="size-3.5" aria-hidden="true" />
            </button>
          )}
        </div>
        <div className="flex items-center pb-1">
          <span aria-live="polite" className="flex-1 px-1 font-medium">
            {format(shown, { month: 'long', year: 'numeric' })}
          </span>
          <IconButton
            size="sm"
            label="Earlier month"
            icon={ChevronLeft}
            onClick={() => setCursor(addMonths(shown, -1))}
          />
          <IconButton
            size="sm"
            label="Later month"
            icon={ChevronRight}
            onClick={() => setCursor(addMonths(shown, 1))}
          />
        </div>
        <table
          ref={grid}
          aria-label={format(shown, { month: 'long', year: 'numeric' })}
          onKeyDown={onGridKey}
          className="nums w-full"
        >
          <thead>
            <tr>
              {weeks[0]?.map((day) => (
                <th
                  key={day}
                  scope="col"
                  abbr={format(day, { weekday: 'long' })}
                  className="h-6 text-2xs font-normal text-text-3"
                >
                  {format(day, { weekday: 'short' }).slice(0, 2)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {weeks.map((week) => (
              <tr key={week[0]}>
                {week.map((day) => (
                  <td key={day} className="p-0 text-center">
                    <button
                      type="button"
                      data-day={day}
                      tabIndex={day === shown ? 0 : -1}
                      aria-label={longDay(day)}
                      aria-pressed={day === (typed ?? value)}
                      aria-current={day === today ? 'date' : undefined}
                      onClick={() => onChoose(day)}
                      className={cx(
                        'h-7 w-full rounded-sm text-xs touch:h-10',
                        day === (typed ?? value) ? 'bg-accent text-on-accent' : 'hover:bg-surface-3',
                        day !== (typed ?? value) && day.slice(0, 7) !== shown.slice(0, 7) && 'text-text-3',
                        day === today && day !== (typed ?? value) && 'font-semibold text-accent-ink',
                      )}
                    >
                      {Number(day.slice(8))}
                    </button>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  )
}
