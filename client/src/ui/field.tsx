import { type ReactNode, useId } from 'react'
import { cx } from './cx.ts'

export type FieldProps = {
  label: string
  /** Spoken, not shown (a search field beside its icon). */
  hideLabel?: boolean | undefined
  hint?: ReactNode
  /** What is wrong and what to do. Replaces the hint, is announced. */
  error?: string | null | undefined
  optional?: boolean | undefined
  className?: string | undefined
}

export type ControlAttributes = {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
}

/** Label above, control, hint or error below; ties the three together for assistive technology. */
export function Field(props: FieldProps & { children: (control: ControlAttributes) => ReactNode }) {
  const { label, hideLabel, hint, error, optional, className, children } = props
  const id = useId()
  const note = error ?? hint
  return (
    <div className={cx('flex min-w-0 flex-col gap-1.5', className)}>
      <label htmlFor={id} className={hideLabel ? 'sr-only' : 'label flex items-baseline justify-between'}>
        {label}
        {optional && <span className="font-normal text-text-3">optional</span>}
      </label>
      {children({
        id,
        'aria-describedby': note ? `${id}-note` : undefined,
        'aria-invalid': error ? true : undefined,
      })}
      {note && (
        <p
          id={`${id}-note`}
          role={error ? 'alert' : undefined}
          className={cx('text-xs', error ? 'text-danger-ink' : 'text-text-3')}
        >
          {note}
        </p>
      )}
    </div>
  )
}
