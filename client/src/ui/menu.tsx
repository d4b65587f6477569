import { Check, ChevronRight, type LucideIcon } from 'lucide-react'
import { ContextMenu as RadixContext, DropdownMenu as RadixMenu } from 'radix-ui'
import type { ReactNode } from 'react'
import { cx } from './cx.ts'
import { Kbd } from './kbd.tsx'

/** A menu described as data, so that a row's ⋯ menu, its context menu and the palette can be one list. */
export type MenuEntry =
  | {
      kind: 'item'
      label: string
      onSelect: () => void
      icon?: LucideIcon | ReactNode
      shortcut?: string | undefined
      hint?: string | undefined
      danger?: boolean
      disabled?: boolean
      /** Set: the item is a choice that is on or off. */
      checked?: boolean
    }
  | { kind: 'sub'; label: string; icon?: LucideIcon | ReactNode; items: readonly MenuEntry[]; disabled?: boolean }
  | { kind: 'label'; label: string }
  | { kind: 'separator' }

type Parts = typeof RadixMenu | typeof RadixContext

const PANEL =
  'float pop z-50 min-w-44 max-w-80 overflow-auto p-1 outline-none max-h-[min(70dvh,var(--radix-dropdown-menu-content-available-height,70dvh))]'

function isComponent(icon: LucideIcon | ReactNode): icon is LucideIcon {
  return typeof icon === 'function' || (typeof icon === 'object' && icon !== null && 'render' in icon)
}

function MenuIcon({ icon, danger }: { icon: LucideIcon | ReactNode; danger?: boolean | undefined }) {
  if (!icon) return null
  if (!isComponent(icon)) return <>{icon}</>
  const Icon = icon
  return (
    <Icon
      className={cx('size-4 shrink-0', danger ? 'text-danger' : 'text-text-3')}
      strokeWidth={1.75}
      aria-hidden="true"
    />
  )
}

function Entries({ items, parts }: { items: readonly MenuEntry[]; parts: Parts }) {
  const { Item, Label, Separator, Sub, SubTrigger, SubContent, Portal, CheckboxItem } = parts as typeof RadixMenu
  return (
    <>
      {items.map((entry, i) => {
        const key = `${entry.kind}${i}`
        if (entry.kind === 'separator') return <Separator key={key} className="mx-2 my-1 h-px bg-line" />
        if (entry.kind === 'label')
          return (
            <Label key={key} className="px-2 pt-1.5 pb-1 text-xs text-text-3">
              {entry.label}
            </Label>
          )
        if (entry.kind === 'sub')
          return (
            <Sub key={key}>
              <SubTrigger className="menu-item" disabled={entry.disabled ?? false}>
                <MenuIcon icon={entry.icon} />
                <span className="flex-1 truncate">{entry.label}</span>
                <ChevronRight className="size-3.5 text-text-3" aria-hidden="true" />
              </SubTrigger>
              <Portal>
                <SubContent className={PANEL} sideOffset={4} collisionPadding={8}>
                  <Entries items={entry.items} parts={parts} />
                </SubContent>
              </Portal>
            </Sub>
          )
        const body = (
          <>
            <MenuIcon icon={entry.icon} danger={entry.danger} />
            <span className="min-w-0 flex-1 truncate">{entry.label}</span>
            {entry.hint && <span className="truncate text-xs text-text-3">{entry.hint}</span>}
            {entry.checked && <Check className="size-3.5 shrink-0 text-accent-ink" aria-hidden="true" />}
            {entry.shortcut && <Kbd keys={entry.shortcut} className="ml-3 touch:hidden" />}
          </>
        )
        const common = {
          disabled: entry.disabled ?? false,
          onSelect: entry.onSelect,
          className: cx('menu-item', entry.danger && 'text-danger-ink'),
        }
        return entry.checked === undefined ? (
          <Item key={key} {...common}>
            {body}
          </Item>
        ) : (
          <CheckboxItem key={key} {...common} checked={entry.checked}>
            {body}
          </CheckboxItem>
        )
      })}
    </>
  )
}

export type MenuProps = {
  /** One element that takes a ref and props. */
  trigger: ReactNode
  items: readonly MenuEntry[]
  label?: string
  align?: 'start' | 'center' | 'end'
  side?: 'top' | 'right' | 'bottom' | 'left'
  open?: boolean
  onOpenChange?: (open: boolean) => void
}

/** A menu under its trigger. */
export function Menu({ trigger, items, label, align = 'start', side = 'bottom', open, onOpenChange }: MenuProps) {
  return (
    <RadixMenu.Root modal={false} {...(open === undefined ? {} : { open })} {...(onOpenChange ? { onOpenChange } : {})}>
      <RadixMenu.Trigger asChild>{trigger}</RadixMenu.Trigger>
      <RadixMenu.Portal>
        <RadixMenu.Content
          {...(label ? { 'aria-label': label } : {})}
          className={PANEL}
          align={align}
          side={side}
          sideOffset={4}
          collisionPadding={8}
          loop
        >
          <Entries items={items} parts={RadixMenu} />
        </RadixMenu.Content>
      </RadixMenu.Portal>
    </RadixMenu.Root>
  )
}

/** The same entries on right click (long press on touch). */
export function ContextMenu({ children, items }: { children: ReactNode; items: readonly MenuEntry[] }) {
  return (
    <RadixContext.Root modal={false}>
      <RadixContext.Trigger asChild>{children}</RadixContext.Trigger>
      <RadixContext.Portal>
        <RadixContext.Content className={PANEL} collisionPadding={8} loop>
          <Entries items={items} parts={RadixContext} />
        </RadixContext.Content>
      </RadixContext.Portal>
    </RadixContext.Root>
  )
}
