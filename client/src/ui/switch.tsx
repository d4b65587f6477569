import { Switch as Radix } from 'radix-ui'
import { type ReactNode, useId } from 'react'
import { cx } from './cx.ts'

export type SwitchProps = {
  checked: boolean
  onCheckedChange: (checked: boolean) => void
  label: string
  hint?: ReactNode
  disabled?: boolean
  className?: string | undefined
}

/** A setting that takes effect at once: label left, switch right. */
export function Switch({ checked, onCheckedChange, label, hint, disabled = false, className }: SwitchProps) {
  const id = useId()
  return (
    <div className={cx('flex items-center justify-between gap-4 touch:min-h-11', className)}>
      <div className="min-w-0">
        <label htmlFor={id} className={cx('block', disabled && 'text-text-3')}>
          {label}
        </label>
        {hint && (
          <p id={`${id}-hint`} className="text-xs text-text-3">
            {hint}
          </p>
        )}
      </div>
      <Radix.Root
        id={id}
        checked={checked}
        onCheckedChange={onCheckedChange}
        disabled={disabled}
        aria-describedby={hint ? `${id}-hint` : undefined}
        className={cx(
          'relative h-[18px] w-[30px] shrink-0 rounded-full bg-text-3 transition-colors data-[state=checked]:bg-accent disabled:opacity-45',
          'touch:h-[26px] touch:w-[44px]',
        )}
      >
        <Radix.Thumb
          className={cx(
            'block size-[14px] translate-x-[2px] rounded-full bg-on-accent transition-transform touch:size-[22px]',
            'data-[state=checked]:translate-x-[14px] touch:data-[state=checked]:translate-x-[20px]',
          )}
        />
      </Radix.Root>
    </div>
  )
}
