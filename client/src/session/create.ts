/** What C does: whatever a feature registered for it. One at a time; the last one mounted wins. */
import { useEffect, useRef, useSyncExternalStore } from 'react'

const makers: (() => void)[] = []
const listeners = new Set<() => void>()

function publish(): void {
  for (const listener of listeners) listener()
}

/** The calling component offers to create something while it is mounted (C, and the button beside the search). */
export function useCreate(create: () => void): void {
  const latest = useRef(create)
  useEffect(() => {
    latest.current = create
  })
  useEffect(() => {
    const maker = () => latest.current()
    makers.push(maker)
    publish()
    return () => {
      makers.splice(makers.indexOf(maker), 1)
      publish()
    }
  }, [])
}

export const createSomething = (): void => makers.at(-1)?.()

export const useCanCreate = (): boolean =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => makers.length > 0,
    () => false,
  )
