import { cx, type Meaning, solidColor } from './cx.ts'

export type MeterProps = {
  label: string
  value: number
  max: number
  /** What is written at the right: "$4.20 of $10". */
  text: string
  hideLabel?: boolean
  /** Left out: good below 80 %, warning below 100 %, danger from there. */
  meaning?: Meaning | undefined
  className?: string | undefined
}

/** How much of something limited is used: a budget, a disk. */
export function Meter({ label, value, max, text, hideLabel, meaning, className }: MeterProps) {
  const part = max > 0 ? Math.min(1, Math.max(0, value / max)) : 0
  const tone = meaning ?? (max > 0 && value >= max ? 'danger' : part >= 0.8 ? 'warning' : 'good')
  return (
    <div className={cx('min-w-0', className)}>
      {!hideLabel && (
        <div className="mb-1 flex items-baseline justify-between gap-3">
          <span className="truncate text-text-2">{label}</span>
          <span className="nums shrink-0 text-xs text-text-3">{text}</span>
        </div>
      )}
      {/* biome-ignore lint/a11y/useSemanticElements: a native meter cannot be styled alike in every browser */}
      <div
        role="meter"
        aria-label={label}
        aria-valuenow={Math.min(value, max)}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuetext={text}
        title={hideLabel ? `${label}: ${text}` : undefined}
        className="h-1 overflow-hidden rounded-full bg-surface-3"
      >
        <div className={cx('h-full rounded-full', solidColor[tone])} style={{ width: `${part * 100}%` }} />
      </div>
    </div>
  )
}
