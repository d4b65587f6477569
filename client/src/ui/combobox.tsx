import { Command } from 'cmdk'
import { Check, ChevronDown, Plus, X } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { cx } from './cx.ts'
import { Field, type FieldProps } from './field.tsx'
import { Popover } from './popover.tsx'

export type ComboboxOption = {
  value: string
  label: string
  icon?: ReactNode
  hint?: string | undefined
  /** More words to find it by. */
  keywords?: string[] | undefined
  group?: string | undefined
}

type Common = FieldProps & {
  options: readonly ComboboxOption[]
  placeholder?: string
  searchPlaceholder?: string
  empty?: string
  /** Offers "Create “…”" for text that matches nothing exactly. */
  onCreate?: ((text: string) => void) | undefined
  /** The options are a window that the owner fills: called on every keystroke, and nothing is filtered here. */
  onSearch?: ((text: string) => void) | undefined
  disabled?: boolean
}
export type ComboboxProps = Common &
  (
    | { multiple?: false; value: string | null; onValueChange: (value: string | null) => void; clearable?: boolean }
    | { multiple: true; value: readonly string[]; onValueChange: (value: string[]) => void }
  )

/** One or several of many, found by typing. */
export function Combobox(props: ComboboxProps) {
  const { label, hideLabel, hint, error, optional, className, options, placeholder = 'Choose…', disabled } = props
  const [open, setOpen] = useState(false)
  const values: readonly string[] = props.multiple ? props.value : props.value === null ? [] : [props.value]
  const chosen = values.map((value) => options.find((option) => option.value === value) ?? { value, label: value })

  const toggle = (value: string) => {
    if (props.multiple) {
      props.onValueChange(values.includes(value) ? values.filter((v) => v !== value) : [...values, value])
    } else {
      props.onValueChange(props.clearable && props.value === value ? null : value)
      setOpen(false)
    }
  }

  return (
    <Field {...{ label, hideLabel, hint, error, optional, className }}>
      {(control) => (
        <Popover
          label={label}
          open={open}
          onOpenChange={setOpen}
          className="w-(--radix-popover-trigger-width) min-w-60 overflow-hidden p-0"
          trigger={
            <button
              type="button"
              {...control}
              // biome-ignore lint/a11y/useAriaPropsForRole: aria-expanded and aria-controls come from the popover's trigger
              role="combobox"
              disabled={disabled}
              className="control flex items-center gap-2 px-2.5 text-left select-none"
            >
              <span className={cx('flex min-w-0 flex-1 items-center gap-1.5', props.multiple && 'flex-wrap py-1')}>
                {chosen.length === 0 && <span className="truncate text-text-3">{placeholder}</span>}
                {props.multiple
                  ? chosen.map((option) => (
                      <span
                        key={option.value}
                        className="flex h-5 max-w-full items-center gap-1 rounded-sm bg-surface-3 px-1.5 text-xs"
                      >
                        {option.icon}
                        <span className="truncate">{option.label}</span>
                      </span>
                    ))
                  : chosen.map((option) => (
                      <span key={option.value} className="flex min-w-0 items-center gap-2">
                        {option.icon}
                        <span className="truncate">{option.label}</span>
                      </span>
                    ))}
              </span>
              <ChevronDown className="size-3.5 shrink-0 text-text-3" aria-hidden="true" />
            </button>
          }
        >
          <Choices {...props} values={values} onToggle={toggle} onClose={() => setOpen(false)} />
        </Popover>
      )}
    </Field>
  )
}

type ChoicesProps = Common & { values: readonly string[]; onToggle: (value: string) => void; onClose: () => void }

function Choices({
  label,
  options,
  values,
  onToggle,
  onClose,
  onCreate,
  onSearch,
  searchPlaceholder,
  empty,
}: ChoicesProps) {
  const [text, setText] = useState('')
  const groups = Map.groupBy(options, (option) => option.group ?? '')
  const exact = options.some((option) => option.label.toLowerCase() === text.trim().toLowerCase())
  return (
    <Command label={label} shouldFilter={!onSearch} loop>
      <div className="flex items-center gap-1 border-b border-line pr-1">
        <Command.Input
          value={text}
          onValueChange={(next) => {
            setText(next)
            onSearch?.(next)
          }}
          placeholder={searchPlaceholder ?? 'Find…'}
          className="h-(--control-lg) min-w-0 flex-1 bg-transparent px-3 outline-none touch:text-lg"
        />
        {text && (
          <button
            type="button"
            aria-label="Clear"
            onClick={() => setText('')}
            className="grid size-6 place-items-center text-text-3"
          >
            <X className="size-3.5" aria-hidden="true" />
          </button>
        )}
      </div>
      <Command.List label={label} className="max-h-64 overflow-auto p-1">
        <Command.Empty className="px-2 py-3 text-text-3">{empty ?? 'Nothing matches.'}</Command.Empty>
        {[...groups].map(([group, members]) => (
          <Command.Group
            key={group}
            heading={group || undefined}
            className="[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:py-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:text-text-3"
          >
            {members.map((option) => (
              <Command.Item
                key={option.value}
                value={option.value}
                keywords={[option.label, ...(option.keywords ?? [])]}
                onSelect={() => onToggle(option.value)}
                className="menu-item"
              >
                {option.icon}
                <span className="truncate">{option.label}</span>
                {option.hint && <span className="truncate text-xs text-text-3">{option.hint}</span>}
                {values.includes(option.value) && (
                  <>
                    <Check className="ml-auto size-3.5 shrink-0 text-accent-ink" aria-hidden="true" />
                    <span className="sr-only">chosen</span>
                  </>
                )}
              </Command.Item>
            ))}
          </Command.Group>
        ))}
        {onCreate && text.trim() !== '' && !exact && (
          <Command.Item
            forceMount
            value={`create ${text}`}
            onSelect={() => {
              onCreate(text.trim())
              onClose()
            }}
            className="menu-item"
          >
            <Plus className="size-4 text-text-3" aria-hidden="true" />
            Create “{text.trim()}”
          </Command.Item>
        )}
      </Command.List>
    </Command>
  )
}
