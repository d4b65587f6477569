import { Popover as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { cx } from './cx.ts'

export type PopoverProps = {
  /** One element that takes a ref and props. */
  trigger: ReactNode
  children: ReactNode
  /** The dialog's spoken name. */
  label: string
  open?: boolean
  onOpenChange?: (open: boolean) => void
  side?: 'top' | 'right' | 'bottom' | 'left'
  align?: 'start' | 'center' | 'end'
  className?: string | undefined
}

/** A small panel at its trigger. Closes on Escape and outside clicks, gives focus back. */
export function Popover(props: PopoverProps) {
  const { trigger, children, label, open, onOpenChange, side = 'bottom', align = 'start', className } = props
  return (
    <Radix.Root {...(open === undefined ? {} : { open })} {...(onOpenChange ? { onOpenChange } : {})}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          aria-label={label}
          side={side}
          align={align}
          sideOffset={4}
          collisionPadding={8}
          className={cx(
            'float pop z-50 max-h-(--radix-popover-content-available-height) max-w-[calc(100vw-16px)] overflow-auto outline-none',
            className ?? 'w-72 p-3',
          )}
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
