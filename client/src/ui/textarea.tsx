import type { ComponentProps, KeyboardEvent } from 'react'
import { cx } from './cx.ts'
import { Field, type FieldProps } from './field.tsx'

export type TextareaProps = FieldProps &
  Omit<ComponentProps<'textarea'>, keyof FieldProps | 'id' | 'rows'> & {
    /** It grows with its text, between these. */
    minRows?: number
    maxRows?: number
    /** ⌘↵ / Ctrl ↵. */
    onSubmit?: (() => void) | undefined
  }

/** Several lines of text, growing with them. */
export function Textarea(props: TextareaProps) {
  const {
    label,
    hideLabel,
    hint,
    error,
    optional,
    className,
    minRows = 3,
    maxRows = 14,
    onSubmit,
    onKeyDown,
    ...rest
  } = props
  const handleKey = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    onKeyDown?.(event)
    if (onSubmit && event.key === 'Enter' && (event.metaKey || event.ctrlKey) && !event.nativeEvent.isComposing) {
      event.preventDefault()
      onSubmit()
    }
  }
  return (
    <Field {...{ label, hideLabel, hint, error, optional, className }}>
      {(control) => (
        <textarea
          {...rest}
          {...control}
          rows={minRows}
          onKeyDown={handleKey}
          style={{ minHeight: minRows * 20 + 14, maxHeight: maxRows * 20 + 14 }}
          className={cx('control block resize-none px-2.5 py-1.5 [field-sizing:content]')}
        />
      )}
    </Field>
  )
}
