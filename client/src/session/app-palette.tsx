/**
 * ⌘K. Screens add what they can do with `usePalette`; going places and the session's own actions come with the layout.
 * Groups stand in the order of registration, so the screen on top comes first.
 */
import { useEffect, useSyncExternalStore } from 'react'
import { CommandPalette, type PaletteGroup } from '../ui/command-palette.tsx'

const registered = new Map<symbol, readonly PaletteGroup[]>()
const listeners = new Set<() => void>()
let snapshot: readonly PaletteGroup[] = []

function publish(): void {
  snapshot = [...registered.values()].reverse().flat()
  for (const listener of listeners) listener()
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Offers groups in the palette while the calling component is mounted. Memoise `groups`. */
export function usePalette(groups: readonly PaletteGroup[]): void {
  useEffect(() => {
    const key = Symbol('palette')
    registered.set(key, groups)
    publish()
    return () => {
      registered.delete(key)
      publish()
    }
  }, [groups])
}

let ask: (open: boolean) => void = () => undefined

/** Opens the palette, from anywhere. */
export const openPalette = (): void => ask(true)

export function AppPalette({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const groups = useSyncExternalStore(
    subscribe,
    () => snapshot,
    () => snapshot,
  )
  useEffect(() => {
    ask = onOpenChange
  }, [onOpenChange])
  return <CommandPalette open={open} onOpenChange={onOpenChange} groups={groups} />
}
