import { Check, Minus } from 'lucide-react'
import { Checkbox as Radix } from 'radix-ui'
import { type ReactNode, useId } from 'react'
import { cx } from './cx.ts'

export type CheckboxProps = {
  checked: boolean | 'indeterminate'
  onCheckedChange: (checked: boolean) => void
  label: string
  hideLabel?: boolean
  hint?: ReactNode
  disabled?: boolean
  tabIndex?: number
  className?: string | undefined
}

/** A tick with its label; the whole row is the target. */
export function Checkbox(props: CheckboxProps) {
  const { checked, onCheckedChange, label, hideLabel, hint, disabled = false, tabIndex, className } = props
  const id = useId()
  return (
    <div className={cx('flex items-start gap-2', !hideLabel && 'min-h-6 touch:min-h-11 touch:items-center', className)}>
      <Radix.Root
        id={id}
        checked={checked}
        onCheckedChange={(next) => onCheckedChange(next === true)}
        disabled={disabled}
        {...(tabIndex === undefined ? {} : { tabIndex })}
        aria-label={hideLabel ? label : undefined}
        aria-describedby={hint ? `${id}-hint` : undefined}
        className={cx(
          'mt-[3px] grid size-3.5 shrink-0 place-items-center rounded-sm border border-text-3 bg-surface-1 text-on-accent touch:mt-0 touch:size-5',
          'transition-colors data-[state=checked]:border-accent data-[state=checked]:bg-accent',
          'data-[state=indeterminate]:border-accent data-[state=indeterminate]:bg-accent disabled:opacity-45',
        )}
      >
        <Radix.Indicator>
          {checked === 'indeterminate' ? (
            <Minus className="size-3" strokeWidth={3} aria-hidden="true" />
          ) : (
            <Check className="size-3" strokeWidth={3} aria-hidden="true" />
          )}
        </Radix.Indicator>
      </Radix.Root>
      {!hideLabel && (
        <div className="min-w-0">
          <label htmlFor={id} className={cx(disabled && 'text-text-3')}>
            {label}
          </label>
          {hint && (
            <p id={`${id}-hint`} className="text-xs text-text-3">
              {hint}
            </p>
          )}
        </div>
      )}
    </div>
  )
}
