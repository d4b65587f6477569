import type { ReactNode } from 'react'
import { Toaster as SonnerToaster, toast as sonner } from 'sonner'
import { Button } from './button.tsx'
import type { Meaning } from './cx.ts'
import { StatusShape, shapeOf } from './status.tsx'

export type ToastOptions = {
  title: string
  description?: ReactNode
  meaning?: Meaning
  /** One way out: Undo, Open, Retry. */
  action?: { label: string; onClick: () => void }
  /** Stays until dismissed. For what a person must not miss, prefer a Banner or the sync page. */
  sticky?: boolean
  /** Replaces the toast with the same id. */
  id?: string
}

/** Says that something happened, in one line, with at most one action. Gone after 5 s. */
export function toast({ title, description, meaning = 'neutral', action, sticky, id }: ToastOptions): void {
  sonner.custom(
    (handle) => (
      <div className="float flex w-full items-start gap-2.5 px-3 py-2.5 sm:w-[356px]">
        {meaning !== 'neutral' && <StatusShape shape={shapeOf(meaning)} meaning={meaning} className="mt-[3px]" />}
        <div className="min-w-0 flex-1">
          <p className="font-medium">{title}</p>
          {description && <div className="text-text-2">{description}</div>}
        </div>
        {action && (
          <Button
            size="sm"
            onClick={() => {
              sonner.dismiss(handle)
              action.onClick()
            }}
          >
            {action.label}
          </Button>
        )}
      </div>
    ),
    { duration: sticky ? Number.POSITIVE_INFINITY : 5000, ...(id ? { id } : {}) },
  )
}

/** Wraps nothing; stands once in the app. */
export function Toaster() {
  return (
    <SonnerToaster
      position="bottom-right"
      offset={16}
      mobileOffset={{ bottom: 72 }}
      gap={8}
      visibleToasts={3}
      containerAriaLabel="Messages"
      toastOptions={{ unstyled: true, className: 'w-full sm:w-[356px]' }}
      style={{ fontFamily: 'inherit' }}
    />
  )
}
