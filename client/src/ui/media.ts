import { useCallback, useSyncExternalStore } from 'react'

/** A media query, live. False in Node. */
export function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (listener: () => void) => {
      const list = window.matchMedia(query)
      list.addEventListener('change', listener)
      return () => list.removeEventListener('change', listener)
    },
    [query],
  )
  return useSyncExternalStore(
    subscribe,
    () => window.matchMedia(query).matches,
    () => false,
  )
}

export const usePhone = () => useMedia('(max-width: 719px)')
export const useCoarse = () => useMedia('(pointer: coarse)')

/** The height of a list row, px: 32, or 44 where fingers point. Same as `--row`. */
export const useRowHeight = () => (useCoarse() ? 44 : 32)
