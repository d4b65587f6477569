import type { LucideIcon } from 'lucide-react'
import type { ComponentProps, ReactNode } from 'react'
import { cx } from './cx.ts'
import { Kbd } from './kbd.tsx'
import { Spinner } from './spinner.tsx'

export type ButtonVariant = 'primary' | 'secondary' | 'ghost' | 'danger'
export type ButtonSize = 'sm' | 'md' | 'lg'

const BASE =
  'inline-flex shrink-0 items-center justify-center gap-1.5 rounded-control font-medium whitespace-nowrap select-none ' +
  'transition-colors disabled:opacity-50 aria-disabled:opacity-50 [&_svg]:shrink-0'
const SIZE: Record<ButtonSize, string> = {
  sm: 'h-(--control-sm) px-2 text-xs [&_svg]:size-3.5',
  md: 'h-(--control) px-2.5 [&_svg]:size-4',
  lg: 'h-(--control-lg) px-3.5 [&_svg]:size-4',
}
const VARIANT: Record<ButtonVariant, string> = {
  primary: 'bg-accent text-on-accent shadow-control not-disabled:hover:bg-accent-hover not-disabled:active:bg-accent',
  secondary:
    'border border-line-strong bg-surface-1 text-text-1 shadow-control not-disabled:hover:bg-surface-2 not-disabled:active:bg-surface-3 ' +
    'data-[state=open]:bg-surface-2',
  ghost:
    'text-text-2 not-disabled:hover:bg-surface-3 not-disabled:hover:text-text-1 data-[state=open]:bg-surface-3 data-[state=open]:text-text-1',
  danger: 'border border-danger/45 bg-surface-1 text-danger-ink shadow-control not-disabled:hover:bg-danger-soft',
}

/** The look alone, for links that act like buttons. */
export function buttonClass(variant: ButtonVariant = 'secondary', size: ButtonSize = 'md'): string {
  return cx(BASE, SIZE[size], VARIANT[variant])
}

export type ButtonProps = Omit<ComponentProps<'button'>, 'children'> & {
  variant?: ButtonVariant
  size?: ButtonSize
  icon?: LucideIcon | undefined
  shortcut?: string | undefined
  /** The action runs somewhere else: shows a spinner, refuses another click, keeps focus. */
  busy?: boolean
  children: ReactNode
}

/** A button with words. One `primary` per screen. */
export function Button(props: ButtonProps) {
  const {
    variant = 'secondary',
    size = 'md',
    icon: Icon,
    shortcut,
    busy,
    children,
    className,
    onClick,
    ...rest
  } = props
  return (
    <button
      type="button"
      {...rest}
      onClick={busy ? undefined : onClick}
      aria-busy={busy || undefined}
      aria-disabled={busy || undefined}
      className={cx(BASE, SIZE[size], VARIANT[variant], className)}
    >
      {busy ? <Spinner /> : Icon && <Icon strokeWidth={1.75} aria-hidden="true" />}
      {children}
      {shortcut && (
        <Kbd
          keys={shortcut}
          className={cx(
            'ml-1 touch:hidden',
            variant === 'primary' && '[&_span]:border-on-accent/40 [&_span]:bg-transparent [&_span]:text-on-accent',
          )}
        />
      )}
    </button>
  )
}
