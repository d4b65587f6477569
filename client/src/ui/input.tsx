import type { LucideIcon } from 'lucide-react'
import type { ComponentProps, ReactNode } from 'react'
import { cx } from './cx.ts'
import { Field, type FieldProps } from './field.tsx'

export type InputProps = FieldProps &
  Omit<ComponentProps<'input'>, keyof FieldProps | 'id'> & {
    icon?: LucideIcon | undefined
    /** Inside the field's right end: a unit, a Kbd, a small IconButton. */
    trailing?: ReactNode
    mono?: boolean
  }

/** One line of text. */
export function Input({
  label,
  hideLabel,
  hint,
  error,
  optional,
  className,
  icon: Icon,
  trailing,
  mono,
  ...rest
}: InputProps) {
  return (
    <Field {...{ label, hideLabel, hint, error, optional, className }}>
      {(control) => (
        <div className="control flex items-center gap-2 px-2.5">
          {Icon && <Icon className="size-4 shrink-0 text-text-3" strokeWidth={1.75} aria-hidden="true" />}
          <input
            type="text"
            {...rest}
            {...control}
            className={cx('min-w-0 flex-1 bg-transparent py-1 outline-none', mono && 'font-mono text-xs')}
          />
          {trailing && <span className="flex shrink-0 items-center text-xs text-text-3">{trailing}</span>}
        </div>
      )}
    </Field>
  )
}
