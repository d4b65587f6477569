import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { cx, type Hue, hueVar, inkColor, type Meaning, softColor } from './cx.ts'

export type BadgeProps = {
  children: ReactNode
  /** Tints it. Without a meaning it is a hairline pill. */
  meaning?: Meaning | undefined
  /** A stream's or tag's dot. */
  hue?: Hue | undefined
  icon?: ReactNode
  onRemove?: (() => void) | undefined
  removeLabel?: string
  className?: string | undefined
}

/** A small fact: a tag, a stream, a state that is no status. */
export function Badge({ children, meaning, hue, icon, onRemove, removeLabel, className }: BadgeProps) {
  return (
    <span
      className={cx(
        'inline-flex h-5 max-w-full min-w-0 shrink-0 items-center gap-1.5 px-1.5 text-xs whitespace-nowrap',
        meaning
          ? cx('rounded-sm font-medium', softColor[meaning], inkColor[meaning])
          : 'rounded-full border border-line px-2 text-text-2',
        className,
      )}
    >
      {hue && <span className="size-2 shrink-0 rounded-full" style={{ background: hueVar(hue) }} aria-hidden="true" />}
      {icon}
      <span className="truncate">{children}</span>
      {onRemove && (
        <button
          type="button"
          onClick={onRemove}
          aria-label={removeLabel ?? 'Remove'}
          className="-mr-1 grid size-4 place-items-center rounded-sm hover:text-text-1"
        >
          <X className="size-3" aria-hidden="true" />
        </button>
      )}
    </span>
  )
}

/** A number beside a name. `urgent` for what needs a person. */
export function Count({ value, urgent, label }: { value: number; urgent?: boolean; label?: string }) {
  return (
    <span
      className={cx(
        'nums inline-grid h-4 min-w-4 place-items-center rounded-full px-1 text-2xs',
        urgent ? 'bg-accent font-medium text-on-accent' : 'text-text-3',
      )}
    >
      <span aria-hidden={label ? true : undefined}>{value > 999 ? '999+' : value}</span>
      {label && <span className="sr-only">{label}</span>}
    </span>
  )
}
