import { useEffect, useRef, useSyncExternalStore } from 'react'

/**
 * The one keyboard layer. Components register shortcuts while they are mounted; one listener on `window` finds the
 * right one; the help dialog lists them all.
 *
 * Keys: `mod+k` (⌘ or Ctrl), `shift+x`, `c`, `?`, `enter`, or a sequence `g t` (second key within 1.2 s).
 *  1. Of several that match, the last registered whose `when` agrees runs; one runs at most.
 *  2. Nothing fires while somebody types, composes, or stands in a menu, dialog or list box, unless `everywhere`.
 *  3. What has been handled (`defaultPrevented`) is left alone.
 */
export type Shortcut = {
  keys: string
  /** "Go to Tasks": shown in the help. */
  label: string
  /** The help's section. */
  group: string
  run: (event: KeyboardEvent) => void
  when?: (() => boolean) | undefined
  /** Also in inputs and dialogs (⌘K). */
  everywhere?: boolean
  /** Works, but isn't listed. */
  hidden?: boolean
}

const SEQUENCE_MS = 1200
const registered: Shortcut[] = []
const subscribers = new Set<() => void>()
let snapshot: readonly Shortcut[] = []
let prefix: { key: string; at: number } | null = null

function changed(): void {
  snapshot = [...registered]
  for (const subscriber of subscribers) subscriber()
}

/** An event's own name, in the form of `Shortcut.keys`. Shift is left out where it only makes the character. */
export function eventKeys(event: Pick<KeyboardEvent, 'key' | 'metaKey' | 'ctrlKey' | 'altKey' | 'shiftKey'>): string {
  const key = event.key === ' ' ? 'space' : event.key.toLowerCase()
  const printable = key.length === 1
  const letter = /^[a-z]$/.test(key)
  const parts: string[] = []
  if (event.metaKey || event.ctrlKey) parts.push('mod')
  if (event.altKey) parts.push('alt')
  if (event.shiftKey && (!printable || letter)) parts.push('shift')
  return [...parts, key].join('+')
}

const BUSY = '[role="menu"],[role="listbox"],[role="dialog"],[role="alertdialog"],[cmdk-root]'

function occupied(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  if (target.isContentEditable || target.matches('input:not([type="checkbox"]):not([type="radio"]),textarea,select'))
    return true
  return target.closest(BUSY) !== null
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return
  const pressed = eventKeys(event)
  const sequence = prefix && event.timeStamp - prefix.at < SEQUENCE_MS ? `${prefix.key} ${pressed}` : null
  const blocked = occupied(event.target)
  const find = (keys: string) =>
    registered.findLast((s) => s.keys.toLowerCase() === keys && (!blocked || s.everywhere) && (s.when?.() ?? true))
  const match = (sequence && find(sequence)) || find(pressed)
  prefix = null
  if (match) {
    event.preventDefault()
    match.run(event)
  } else if (!blocked && registered.some((s) => s.keys.toLowerCase().startsWith(`${pressed} `))) {
    prefix = { key: pressed, at: event.timeStamp }
  }
}

/** Adds shortcuts until the returned function is called. */
export function registerShortcuts(shortcuts: readonly Shortcut[]): () => void {
  if (registered.length === 0) window.addEventListener('keydown', onKeyDown)
  registered.push(...shortcuts)
  changed()
  return () => {
    for (const shortcut of shortcuts) {
      const at = registered.indexOf(shortcut)
      if (at >= 0) registered.splice(at, 1)
    }
    if (registered.length === 0) window.removeEventListener('keydown', onKeyDown)
    changed()
  }
}

/** Shortcuts of a mounted component. `run` and `when` may close over the newest props; keys and labels decide re-registration. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const latest = useRef(shortcuts)
  useEffect(() => {
    latest.current = shortcuts
  })
  const identity = shortcuts
    .map((s) => [s.keys, s.label, s.group, s.everywhere, s.hidden].join('\u0000'))
    .join('\u0001')
  // biome-ignore lint/correctness/useExhaustiveDependencies: `identity` stands for the shortcuts; what they do is read late
  useEffect(
    () =>
      registerShortcuts(
        latest.current.map((shortcut, i) => ({
          ...shortcut,
          run: (event) => latest.current[i]?.run(event),
          when: () => latest.current[i]?.when?.() ?? true,
        })),
      ),
    [identity],
  )
}

/** All shortcuts in force, for the help dialog and the palette's hints. */
export function useAllShortcuts(): readonly Shortcut[] {
  return useSyncExternalStore(
    (listener) => {
      subscribers.add(listener)
      return () => subscribers.delete(listener)
    },
    () => snapshot,
    () => snapshot,
  )
}
