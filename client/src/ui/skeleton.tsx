import { cx } from './cx.ts'

/** A still grey bar where something will be. Only for the very first sync, and rows a list has not read yet. */
export function Skeleton({ className }: { className?: string | undefined }) {
  return (
    <span
      aria-hidden="true"
      className={cx('block bg-surface-3', className ?? 'h-3 w-32', !className?.includes('rounded') && 'rounded-sm')}
    />
  )
}

/** A list row's skeleton; its widths differ by index, so that rows don't look stamped. */
export function SkeletonRow({ index = 0 }: { index?: number }) {
  return (
    <span aria-hidden="true" className="flex h-full items-center gap-3 px-4">
      <Skeleton className="size-3.5 rounded-full" />
      <span className="h-2.5 rounded-sm bg-surface-3" style={{ width: `${24 + ((index * 17) % 31)}%` }} />
      <Skeleton className="ml-auto h-2.5 w-10" />
    </span>
  )
}
