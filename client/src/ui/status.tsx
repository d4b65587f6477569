import { cx, inkColor, type Meaning, markColor } from './cx.ts'

/** Each status has a shape of its own, so that colour is never alone. */
export type Shape =
  | 'dotted' // not started, not planned
  | 'ring' // to do, idle
  | 'quarter'
  | 'half' // in progress
  | 'three-quarter' // in review
  | 'arc' // running now
  | 'check' // done, healthy
  | 'cross' // failed, rejected
  | 'slash' // cancelled
  | 'bar' // blocked
  | 'pause'
  | 'clock' // waits for a time or for somebody
  | 'triangle' // a warning
  | 'off' // offline

/** The default shape of a meaning. */
export function shapeOf(meaning: Meaning): Shape {
  const shapes = {
    neutral: 'ring',
    good: 'check',
    busy: 'arc',
    waiting: 'clock',
    warning: 'triangle',
    danger: 'cross',
  } as const
  return shapes[meaning]
}

const glyph = {
  stroke: 'var(--glyph, var(--surface-1))',
  strokeWidth: 1.6,
  strokeLinecap: 'round',
  strokeLinejoin: 'round',
  fill: 'none',
} as const
const ring = { cx: 7, cy: 7, r: 5.5, fill: 'none', stroke: 'currentColor', strokeWidth: 1.5 } as const
const disc = { cx: 7, cy: 7, r: 6.25, fill: 'currentColor' } as const

/** A pie of `part` of the circle, inside the ring. */
function pie(part: number): string {
  const angle = part * 2 * Math.PI
  const x = 7 + 3.4 * Math.sin(angle)
  const y = 7 - 3.4 * Math.cos(angle)
  return `M7 7V3.6A3.4 3.4 0 ${part > 0.5 ? 1 : 0} 1 ${x.toFixed(2)} ${y.toFixed(2)}Z`
}

function Paths({ shape }: { shape: Shape }) {
  switch (shape) {
    case 'dotted':
      return <circle {...ring} strokeDasharray="1.6 1.86" />
    case 'ring':
      return <circle {...ring} />
    case 'quarter':
    case 'half':
    case 'three-quarter':
      return (
        <>
          <circle {...ring} />
          <path d={pie({ quarter: 0.25, half: 0.5, 'three-quarter': 0.75 }[shape])} fill="currentColor" />
        </>
      )
    case 'arc':
      return (
        <>
          <circle {...ring} opacity=".3" />
          <path
            d="M7 1.5a5.5 5.5 0 0 1 5.5 5.5"
            fill="none"
            stroke="currentColor"
            strokeWidth="1.9"
            strokeLinecap="round"
          />
          <circle cx="7" cy="7" r="2" fill="currentColor" />
        </>
      )
    case 'check':
      return (
        <>
          <circle {...disc} />
          <path d="M4.3 7.2l1.9 1.9 3.6-4" {...glyph} />
        </>
      )
    case 'cross':
      return (
        <>
          <path d="M4.6.9h4.8L13.1 4.6v4.8L9.4 13.1H4.6L.9 9.4V4.6Z" fill="currentColor" />
          <path d="M5 5l4 4M9 5L5 9" {...glyph} />
        </>
      )
    case 'slash':
      return (
        <>
          <circle {...ring} />
          <path d="M3.3 10.7l7.4-7.4" fill="none" stroke="currentColor" strokeWidth="1.5" />
        </>
      )
    case 'bar':
      return (
        <>
          <circle {...disc} />
          <path d="M4.2 7h5.6" {...glyph} strokeWidth={2} />
        </>
      )
    case 'pause':
      return (
        <>
          <circle {...ring} />
          <path d="M5.7 5v4M8.3 5v4" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round" />
        </>
      )
    case 'clock':
      return (
        <>
          <circle {...ring} />
          <path
            d="M7 4.1V7l1.9 1.3"
            fill="none"
            stroke="currentColor"
            strokeWidth="1.4"
            strokeLinecap="round"
            strokeLinejoin="round"
          />
        </>
      )
    case 'triangle':
      return (
        <>
          <path
            d="M7 1.2l5.9 10.6H1.1Z"
            fill="currentColor"
            stroke="currentColor"
            strokeWidth="1.2"
            strokeLinejoin="round"
          />
          <path d="M7 5v3M7 10v.01" {...glyph} />
        </>
      )
    case 'off':
      return (
        <>
          <path
            d="M4.1 11h5.6a2.6 2.6 0 0 0 .5-5.15A3.6 3.6 0 0 0 3.5 5.3 2.9 2.9 0 0 0 4.1 11Z"
            fill="none"
            stroke="currentColor"
            strokeWidth="1.4"
            strokeLinejoin="round"
          />
          <path d="M2 13L12 1.5" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round" />
        </>
      )
  }
}

/** The mark alone, 14 px. Give `label` when no word stands beside it. */
export function StatusShape(props: {
  shape: Shape
  meaning: Meaning
  label?: string | undefined
  className?: string | undefined
}) {
  const { shape, meaning, label, className } = props
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: titled and named when `label` is given, hidden otherwise
    <svg
      viewBox="0 0 14 14"
      className={cx('size-3.5 shrink-0', markColor[meaning], className)}
      {...(label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': true })}
    >
      {label && <title>{label}</title>}
      <Paths shape={shape} />
    </svg>
  )
}

export type StatusProps = {
  meaning: Meaning
  /** The word. */
  label: string
  shape?: Shape | undefined
  /** After the word, quieter: the one reason, a duration. */
  detail?: string | undefined
  className?: string | undefined
}

/** A status: shape and word. */
export function Status({ meaning, label, shape, detail, className }: StatusProps) {
  return (
    <span className={cx('inline-flex max-w-full min-w-0 items-center gap-1.5 align-middle', className)}>
      <StatusShape shape={shape ?? shapeOf(meaning)} meaning={meaning} />
      <span className={cx('shrink-0 truncate', inkColor[meaning])}>{label}</span>
      {detail && <span className="min-w-0 truncate text-text-3">{detail}</span>}
    </span>
  )
}
