import { X } from 'lucide-react'
import { Dialog as Radix, AlertDialog as RadixAlert } from 'radix-ui'
import type { ReactNode } from 'react'
import { Button } from './button.tsx'
import { cx } from './cx.ts'
import { useFocusReturn } from './focus.ts'
import { IconButton } from './icon-button.tsx'

const SCRIM = 'fixed inset-0 z-40 bg-(--scrim) data-[state=open]:animate-[fade_160ms_ease-out]'
const PANEL =
  'float fixed left-1/2 z-40 flex w-[calc(100vw-24px)] -translate-x-1/2 flex-col outline-none ' +
  'data-[state=open]:animate-[rise_160ms_var(--ease)]'

export type DialogProps = {
  open: boolean
  onOpenChange: (open: boolean) => void
  title: string
  description?: ReactNode
  children?: ReactNode
  /** Buttons, right aligned; the primary one last. */
  footer?: ReactNode
  size?: 'sm' | 'md' | 'lg'
}

const WIDTH = { sm: 'max-w-[400px]', md: 'max-w-[560px]', lg: 'max-w-[820px]' }

/** A task that needs the whole attention. Title, a scrolling middle, a footer that stays. */
export function Dialog({ open, onOpenChange, title, description, children, footer, size = 'md' }: DialogProps) {
  const focus = useFocusReturn()
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className={SCRIM} />
        <Radix.Content
          className={cx(PANEL, 'top-[10dvh] max-h-[80dvh]', WIDTH[size])}
          {...(description ? {} : { 'aria-describedby': undefined })}
          onOpenAutoFocus={focus.onOpenAutoFocus}
          onCloseAutoFocus={focus.onCloseAutoFocus}
        >
          <header className="flex items-start gap-3 px-5 pt-4 pb-3">
            <div className="min-w-0 flex-1">
              <Radix.Title className="text-lg font-semibold tracking-[-0.01em]">{title}</Radix.Title>
              {description && <Radix.Description className="mt-0.5 text-text-2">{description}</Radix.Description>}
            </div>
            <Radix.Close asChild>
              <IconButton label="Close" icon={X} tooltip={false} className="-mr-2" />
            </Radix.Close>
          </header>
          <div className="min-h-0 flex-1 overflow-auto px-5 pt-0.5 pb-5">{children}</div>
          {footer && (
            <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-5 py-3">{footer}</footer>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

export type ConfirmProps = {
  open: boolean
  onOpenChange: (open: boolean) => void
  title: string
  /** What will happen, and whether it can be undone. */
  children: ReactNode
  confirm: string
  onConfirm: () => void
  danger?: boolean
}

/** Asks before something that cannot be undone. Focus starts on Cancel. Anything undoable should just happen. */
export function Confirm({ open, onOpenChange, title, children, confirm, onConfirm, danger }: ConfirmProps) {
  const focus = useFocusReturn()
  return (
    <RadixAlert.Root open={open} onOpenChange={onOpenChange}>
      <RadixAlert.Portal>
        <RadixAlert.Overlay className={SCRIM} />
        <RadixAlert.Content
          onCloseAutoFocus={focus.onCloseAutoFocus}
          onOpenAutoFocus={focus.remember}
          className={cx(PANEL, 'top-[22dvh] max-h-[70dvh] max-w-[420px] overflow-auto p-5')}
        >
          <RadixAlert.Title className="text-lg font-semibold tracking-[-0.01em]">{title}</RadixAlert.Title>
          <RadixAlert.Description asChild>
            <div className="mt-1 text-text-2">{children}</div>
          </RadixAlert.Description>
          <div className="mt-5 flex justify-end gap-2">
            <RadixAlert.Cancel asChild>
              <Button>Cancel</Button>
            </RadixAlert.Cancel>
            <RadixAlert.Action asChild>
              <Button variant={danger ? 'danger' : 'primary'} onClick={onConfirm}>
                {confirm}
              </Button>
            </RadixAlert.Action>
          </div>
        </RadixAlert.Content>
      </RadixAlert.Portal>
    </RadixAlert.Root>
  )
}
