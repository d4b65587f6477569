import type { ReactNode } from 'react'
import { cx } from './cx.ts'
import { Drawing, type DrawingName } from './drawings.tsx'

export type EmptyStateProps = {
  drawing: DrawingName
  title: string
  /** One sentence: what belongs here, and how it comes here. */
  children: ReactNode
  /** One action. */
  action?: ReactNode
  className?: string | undefined
}

/** Nothing here yet: a drawing, a sentence, an action. */
export function EmptyState({ drawing, title, children, action, className }: EmptyStateProps) {
  return (
    <div className={cx('flex flex-col items-center justify-center px-6 py-12 text-center', className)}>
      <Drawing name={drawing} />
      <h2 className="mt-3 text-md font-semibold">{title}</h2>
      <p className="mt-1 max-w-[44ch] text-balance text-text-2">{children}</p>
      {action && <div className="mt-4 flex gap-2">{action}</div>}
    </div>
  )
}
