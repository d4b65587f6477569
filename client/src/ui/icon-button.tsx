import type { LucideIcon } from 'lucide-react'
import type { ComponentProps } from 'react'
import { cx } from './cx.ts'
import { Tooltip } from './tooltip.tsx'

export type IconButtonProps = Omit<ComponentProps<'button'>, 'children' | 'aria-label'> & {
  /** The name: read aloud, and shown as the tooltip. */
  label: string
  icon: LucideIcon
  size?: 'sm' | 'md'
  variant?: 'ghost' | 'outline'
  shortcut?: string | undefined
  /** Makes it a toggle. */
  pressed?: boolean
  side?: 'top' | 'right' | 'bottom' | 'left'
  /** Off where the icon says all (×), and where Escape must not close a tooltip first. */
  tooltip?: boolean
}

/** A square button with an icon and a spoken name. */
export function IconButton(props: IconButtonProps) {
  const {
    label,
    icon: Icon,
    size = 'md',
    variant = 'ghost',
    shortcut,
    pressed,
    side = 'bottom',
    tooltip = true,
    className,
    ...rest
  } = props
  const button = (
    <button
      type="button"
      aria-label={label}
      aria-pressed={pressed}
      {...rest}
      className={cx(
        'inline-grid shrink-0 place-items-center rounded-control text-text-3 transition-colors select-none',
        'not-disabled:hover:bg-surface-3 not-disabled:hover:text-text-1 disabled:opacity-45',
        'aria-pressed:bg-surface-3 aria-pressed:text-text-1 data-[state=open]:bg-surface-3 data-[state=open]:text-text-1',
        size === 'sm' ? 'size-(--control-sm) [&_svg]:size-3.5' : 'size-(--control) [&_svg]:size-4',
        variant === 'outline' && 'border border-line-strong bg-surface-1 text-text-2 shadow-control',
        className,
      )}
    >
      <Icon strokeWidth={1.75} aria-hidden="true" />
    </button>
  )
  if (!tooltip) return button
  return (
    <Tooltip content={label} shortcut={shortcut} side={side}>
      {button}
    </Tooltip>
  )
}
