import { X } from 'lucide-react'
import { Dialog as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { cx } from './cx.ts'
import { useFocusReturn } from './focus.ts'
import { IconButton } from './icon-button.tsx'

export type SheetProps = {
  open: boolean
  onOpenChange: (open: boolean) => void
  title: string
  hideTitle?: boolean
  side?: 'right' | 'bottom' | 'left'
  actions?: ReactNode
  children: ReactNode
}

/** A panel from an edge: the inspector on a phone, a log that is looked into. */
export function Sheet({ open, onOpenChange, title, hideTitle, side = 'right', actions, children }: SheetProps) {
  const focus = useFocusReturn()
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-(--scrim) data-[state=open]:animate-[fade_160ms_ease-out]" />
        <Radix.Content
          aria-describedby={undefined}
          onOpenAutoFocus={focus.onOpenAutoFocus}
          onCloseAutoFocus={focus.onCloseAutoFocus}
          className={cx(
            'float fixed z-40 flex flex-col overflow-hidden rounded-none outline-none',
            side === 'bottom' &&
              'inset-x-0 bottom-0 max-h-[86dvh] rounded-t-[14px] pb-[env(safe-area-inset-bottom)] data-[state=open]:animate-[from-bottom_160ms_var(--ease)]',
            side === 'right' &&
              'inset-y-0 right-0 w-[min(440px,92vw)] data-[state=open]:animate-[from-right_160ms_var(--ease)]',
            side === 'left' &&
              'inset-y-0 left-0 w-[min(288px,86vw)] data-[state=open]:animate-[fade_160ms_var(--ease)]',
          )}
        >
          {hideTitle && !actions ? (
            <Radix.Title className="sr-only">{title}</Radix.Title>
          ) : (
            <header className="flex h-12 shrink-0 items-center gap-1 border-b border-line pr-2 pl-4">
              <Radix.Title className={cx('min-w-0 flex-1 truncate font-semibold', hideTitle && 'sr-only')}>
                {title}
              </Radix.Title>
              {actions}
              <Radix.Close asChild>
                <IconButton label="Close" icon={X} tooltip={false} className="ml-auto" />
              </Radix.Close>
            </header>
          )}
          <div className="min-h-0 flex-1 overflow-auto">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
