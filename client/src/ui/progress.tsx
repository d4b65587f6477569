import { Progress as Radix } from 'radix-ui'
import { cx } from './cx.ts'

export type ProgressProps = {
  label: string
  hideLabel?: boolean
  /** Null: how much is unknown. */
  value: number | null
  max?: number
  /** "4,120 of 9,800 rows". */
  detail?: string | undefined
  meaning?: 'busy' | 'danger' | 'good'
  className?: string | undefined
}

const TONE = { busy: 'bg-accent', danger: 'bg-danger', good: 'bg-good' }

/** A long job's line, with counts. */
export function Progress({ label, hideLabel, value, max = 100, detail, meaning = 'busy', className }: ProgressProps) {
  const part = value === null ? null : Math.min(100, Math.max(0, (value / Math.max(max, 1)) * 100))
  return (
    <div className={cx('min-w-0', className)}>
      {!(hideLabel && !detail) && (
        <div className="mb-1.5 flex items-baseline justify-between gap-3">
          <span className={cx('truncate', hideLabel && 'sr-only')}>{label}</span>
          {detail && <span className="nums shrink-0 text-xs text-text-3">{detail}</span>}
        </div>
      )}
      <Radix.Root
        value={part}
        max={100}
        aria-label={label}
        getValueLabel={(v, m) => detail ?? `${Math.round((v / m) * 100)} %`}
        className="relative h-1 overflow-hidden rounded-full bg-surface-3"
      >
        <Radix.Indicator
          className={cx(
            'h-full rounded-full transition-[width]',
            TONE[meaning],
            part === null && 'w-1/3 animate-[slide_1400ms_ease-in-out_infinite]',
          )}
          style={part === null ? undefined : { width: `${part}%` }}
        />
      </Radix.Root>
    </div>
  )
}
