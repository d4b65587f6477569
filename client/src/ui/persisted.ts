import { useCallback, useSyncExternalStore } from 'react'

const EVENT = 'hq:persisted'

/**
 * A small choice about the interface (sidebar closed, view chosen), kept in localStorage under `hq.` and shared
 * between components and tabs. Not for data: that lives in the replica.
 */
export function usePersisted<V extends string>(key: string, initial: V): [V, (value: V) => void] {
  const name = `hq.${key}`
  const subscribe = useCallback((listener: () => void) => {
    window.addEventListener(EVENT, listener)
    window.addEventListener('storage', listener)
    return () => {
      window.removeEventListener(EVENT, listener)
      window.removeEventListener('storage', listener)
    }
  }, [])
  const read = (): V => {
    try {
      return (localStorage.getItem(name) as V | null) ?? initial
    } catch {
      return initial // storage blocked: nothing is remembered
    }
  }
  const value = useSyncExternalStore(subscribe, read, () => initial)
  const write = useCallback(
    (next: V) => {
      try {
        localStorage.setItem(name, next)
      } catch {
        // storage blocked: nothing is remembered
      }
      window.dispatchEvent(new Event(EVENT))
    },
    [name],
  )
  return [value, write]
}
