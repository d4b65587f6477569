import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { cx, type Meaning, softColor } from './cx.ts'
import { IconButton } from './icon-button.tsx'
import { type Shape, StatusShape, shapeOf } from './status.tsx'

export type BannerProps = {
  meaning: Exclude<Meaning, 'neutral'>
  shape?: Shape | undefined
  /** What. */
  title: string
  /** Why, and what now. */
  children?: ReactNode
  /** The way out: a Button or a link. */
  action?: ReactNode
  onDismiss?: (() => void) | undefined
  /** `edge`: across the top of a screen, square; `card`: within it. */
  look?: 'card' | 'edge'
  className?: string | undefined
}

/** Something about the whole screen that a person should know: demo model, missing runtime, a rejected change. */
export function Banner({ meaning, shape, title, children, action, onDismiss, look = 'card', className }: BannerProps) {
  return (
    <section
      aria-label={title}
      className={cx(
        'flex flex-wrap items-start gap-x-3 gap-y-2 px-3 py-2.5 [--glyph:var(--surface-1)]',
        softColor[meaning],
        look === 'card' ? 'rounded-card' : 'border-b border-line px-4 py-2',
        className,
      )}
    >
      <StatusShape shape={shape ?? shapeOf(meaning)} meaning={meaning} className="mt-[3px]" />
      <div className="min-w-0 flex-1 basis-52">
        <p className="font-medium">{title}</p>
        {children && <div className="text-text-2">{children}</div>}
      </div>
      {(action || onDismiss) && (
        <div className="flex items-center gap-1">
          {action}
          {onDismiss && <IconButton size="sm" label="Dismiss" icon={X} onClick={onDismiss} />}
        </div>
      )}
    </section>
  )
}
