import { cx } from './cx.ts'

/** A quiet turning arc, 14 px. Only for work that truly runs somewhere else; local data never needs one. */
export function Spinner({ className }: { className?: string | undefined }) {
  return (
    <svg
      viewBox="0 0 16 16"
      className={cx('size-3.5 shrink-0 animate-[spin_900ms_linear_infinite]', className)}
      aria-hidden="true"
    >
      <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" strokeWidth="2" opacity=".22" />
      <path d="M8 2a6 6 0 0 1 6 6" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />
    </svg>
  )
}
