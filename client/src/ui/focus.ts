import { useRef } from 'react'

const FIELDS =
  '[autofocus],input:not([disabled]):not([type="hidden"]),textarea:not([disabled]),[role="combobox"]:not([disabled])'

/**
 * Focus for panels that are opened by state rather than by a Radix trigger. It starts on the first field (not on ×);
 * without fields on the panel, so that it is read from its title. On closing it goes back to where it was.
 */
export function useFocusReturn() {
  const before = useRef<HTMLElement | null>(null)
  const remember = () => {
    before.current = document.activeElement instanceof HTMLElement ? document.activeElement : null
  }
  return {
    remember,
    onOpenAutoFocus: (event: Event) => {
      remember()
      if (!(event.currentTarget instanceof HTMLElement)) return
      event.preventDefault()
      const field = event.currentTarget.querySelector<HTMLElement>(FIELDS) ?? event.currentTarget
      field.focus()
    },
    onCloseAutoFocus: (event: Event) => {
      if (!before.current?.isConnected || before.current === document.body) return
      event.preventDefault()
      before.current.focus({ preventScroll: true })
    },
  }
}
