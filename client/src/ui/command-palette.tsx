import { Command } from 'cmdk'
import { type LucideIcon, Search } from 'lucide-react'
import { Dialog as Radix } from 'radix-ui'
import { type ReactNode, useEffect, useState } from 'react'
import { useFocusReturn } from './focus.ts'
import { Kbd } from './kbd.tsx'

export type PaletteItem = {
  id: string
  label: string
  onSelect: () => void
  icon?: LucideIcon | undefined
  /** In place of an icon: an avatar, a status. */
  leading?: ReactNode
  hint?: string | undefined
  keywords?: string[] | undefined
  shortcut?: string | undefined
  /** Typed more than once: leave the palette open. */
  keepOpen?: boolean
}
export type PaletteGroup = {
  heading: string
  items: readonly PaletteItem[]
  /** The owner searched for these (rows of the replica): shown as they come, not filtered here. */
  found?: boolean
}

export type CommandPaletteProps = {
  open: boolean
  onOpenChange: (open: boolean) => void
  groups: readonly PaletteGroup[]
  placeholder?: string
  /** Every keystroke, for groups with `found`. */
  onQueryChange?: (text: string) => void
  /** What the actions are about: "3 tasks", an agent's name. */
  scope?: ReactNode
  empty?: ReactNode
}

/** ⌘K: go anywhere, find anything, do anything to what is selected. */
export function CommandPalette(props: CommandPaletteProps) {
  const { open, onOpenChange, groups, placeholder = 'Go to, find, or do…', onQueryChange, scope, empty } = props
  const [text, setText] = useState('')
  const focus = useFocusReturn()
  useEffect(() => {
    if (open) setText('')
  }, [open])
  const change = (next: string) => {
    setText(next)
    onQueryChange?.(next)
  }
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-50 bg-(--scrim) data-[state=open]:animate-[fade_120ms_ease-out]" />
        <Radix.Content
          aria-describedby={undefined}
          onOpenAutoFocus={focus.onOpenAutoFocus}
          onCloseAutoFocus={focus.onCloseAutoFocus}
          className="float fixed top-[12dvh] left-1/2 z-50 w-[calc(100vw-24px)] max-w-[620px] -translate-x-1/2 overflow-hidden outline-none data-[state=open]:animate-[rise_120ms_var(--ease)]"
        >
          <Radix.Title className="sr-only">Command palette</Radix.Title>
          <Command label="Commands" loop>
            <div className="flex items-center gap-2.5 border-b border-line px-4">
              <Search className="size-4 shrink-0 text-text-3" aria-hidden="true" />
              {scope && (
                <span className="shrink-0 rounded-sm bg-accent-soft px-1.5 text-xs text-accent-ink">{scope}</span>
              )}
              <Command.Input
                value={text}
                onValueChange={change}
                placeholder={placeholder}
                className="h-12 min-w-0 flex-1 bg-transparent text-read outline-none touch:text-lg"
              />
              <Kbd keys="escape" className="touch:hidden" />
            </div>
            <Command.List label="Results" className="max-h-[min(420px,60dvh)] scroll-py-2 overflow-auto p-2">
              <Command.Empty className="px-2 py-8 text-center text-text-3">{empty ?? 'Nothing matches.'}</Command.Empty>
              {groups.map((group) => (
                <Command.Group
                  key={group.heading}
                  heading={group.heading}
                  forceMount={group.found ?? false}
                  className="pb-1 [&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:pt-1.5 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:text-text-3"
                >
                  {group.items.map(({ icon: Icon, ...item }) => (
                    <Command.Item
                      key={item.id}
                      value={item.id}
                      keywords={[item.label, ...(item.keywords ?? [])]}
                      forceMount={group.found ?? false}
                      onSelect={() => {
                        if (!item.keepOpen) onOpenChange(false)
                        item.onSelect()
                      }}
                      className="menu-item min-h-9 touch:min-h-11"
                    >
                      {item.leading ??
                        (Icon && (
                          <Icon className="size-4 shrink-0 text-text-3" strokeWidth={1.75} aria-hidden="true" />
                        ))}
                      <span className="truncate">{item.label}</span>
                      {item.hint && <span className="min-w-0 truncate text-xs text-text-3">{item.hint}</span>}
                      {item.shortcut && <Kbd keys={item.shortcut} className="ml-auto pl-3 touch:hidden" />}
                    </Command.Item>
                  ))}
                </Command.Group>
              ))}
            </Command.List>
            <div className="flex gap-4 border-t border-line px-4 py-2 text-xs text-text-3 touch:hidden">
              <span className="flex items-center gap-1.5">
                <Kbd keys="arrowup" />
                <Kbd keys="arrowdown" /> move
              </span>
              <span className="flex items-center gap-1.5">
                <Kbd keys="enter" /> choose
              </span>
            </div>
          </Command>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
