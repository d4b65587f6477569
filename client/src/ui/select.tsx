import { Check, ChevronDown, type LucideIcon } from 'lucide-react'
import { Select as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { Field, type FieldProps } from './field.tsx'

export type SelectOption<V extends string = string> = {
  value: V
  label: string
  icon?: ReactNode
  hint?: string | undefined
  disabled?: boolean | undefined
}

export type SelectProps<V extends string> = FieldProps & {
  /** `null`: nothing chosen yet. */
  value: V | null
  onValueChange: (value: V) => void
  options: readonly SelectOption<V>[]
  placeholder?: string
  icon?: LucideIcon | undefined
  disabled?: boolean
}

/** One of a few. For more than about ten, or for people and agents, use Combobox. */
export function Select<V extends string>(props: SelectProps<V>) {
  const {
    label,
    hideLabel,
    hint,
    error,
    optional,
    className,
    value,
    onValueChange,
    options,
    placeholder,
    disabled = false,
  } = props
  const chosen = options.find((option) => option.value === value)
  return (
    <Field {...{ label, hideLabel, hint, error, optional, className }}>
      {(control) => (
        <Radix.Root value={value ?? ''} onValueChange={(next) => onValueChange(next as V)} disabled={disabled}>
          <Radix.Trigger {...control} className="control flex items-center gap-2 px-2.5 text-left select-none">
            <span className="flex min-w-0 flex-1 items-center gap-2 truncate">
              {chosen ? (
                <>
                  {chosen.icon}
                  <Radix.Value aria-label={chosen.label}>{chosen.label}</Radix.Value>
                </>
              ) : (
                <span className="text-text-3">{placeholder ?? 'Choose…'}</span>
              )}
            </span>
            <ChevronDown className="size-3.5 shrink-0 text-text-3" aria-hidden="true" />
          </Radix.Trigger>
          <Radix.Portal>
            <Radix.Content
              position="popper"
              sideOffset={4}
              collisionPadding={8}
              className="float pop z-50 max-h-(--radix-select-content-available-height) min-w-(--radix-select-trigger-width) overflow-hidden"
            >
              <Radix.Viewport className="p-1">
                {options.map((option) => (
                  <Radix.Item
                    key={option.value}
                    value={option.value}
                    disabled={option.disabled ?? false}
                    className="menu-item pr-2"
                  >
                    {option.icon}
                    <Radix.ItemText>{option.label}</Radix.ItemText>
                    {option.hint && <span className="text-xs text-text-3">{option.hint}</span>}
                    <span className="ml-auto grid w-4 place-items-center pl-3">
                      <Radix.ItemIndicator>
                        <Check className="size-3.5 text-accent-ink" aria-hidden="true" />
                      </Radix.ItemIndicator>
                    </span>
                  </Radix.Item>
                ))}
              </Radix.Viewport>
            </Radix.Content>
          </Radix.Portal>
        </Radix.Root>
      )}
    </Field>
  )
}
