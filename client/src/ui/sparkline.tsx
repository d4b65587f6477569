import { cx, type Hue, hueVar } from './cx.ts'

export type SparklineProps = {
  values: readonly number[]
  /** Says what it shows, with its last value: "Cost per day, today $1.20". */
  label: string
  kind?: 'line' | 'bars'
  /** Accent when left out. */
  hue?: Hue | undefined
  width?: number
  height?: number
  className?: string | undefined
}

/** The shape of a series, without axes. Starts at zero, so that heights compare. */
export function Sparkline({ values, label, kind = 'line', hue, width = 96, height = 24, className }: SparklineProps) {
  const color = hue ? hueVar(hue) : 'var(--accent)'
  const top = Math.max(...values, 0) || 1
  const y = (v: number) => height - 1.5 - (Math.max(0, v) / top) * (height - 4)
  const step = values.length > 1 ? (width - 4) / (values.length - 1) : 0
  const points = values.map((v, i) => `${(2 + i * step).toFixed(1)},${y(v).toFixed(1)}`)
  const slot = width / Math.max(values.length, 1)
  const last = values.at(-1)
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      className={cx('shrink-0 overflow-visible', className)}
    >
      <title>{label}</title>
      {kind === 'bars' ? (
        values.map((v, i) => (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a series' places are its identity
            key={i}
            x={i * slot + 0.5}
            width={Math.max(1, slot - 1.5)}
            y={v > 0 ? Math.min(y(v), height - 2) : height - 1}
            height={v > 0 ? Math.max(2, height - y(v)) : 1}
            rx={1}
            fill={v > 0 ? color : 'var(--line-strong)'}
          />
        ))
      ) : (
        <>
          {values.length > 1 && (
            <path
              d={`M${points.join('L')}L${2 + (values.length - 1) * step},${height}L2,${height}Z`}
              fill={color}
              opacity=".1"
            />
          )}
          <polyline
            points={points.join(' ')}
            fill="none"
            stroke={color}
            strokeWidth="1.5"
            strokeLinejoin="round"
            strokeLinecap="round"
          />
          {last !== undefined && <circle cx={2 + (values.length - 1) * step} cy={y(last)} r="2" fill={color} />}
        </>
      )}
    </svg>
  )
}
