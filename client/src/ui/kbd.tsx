import { useSyncExternalStore } from 'react'
import { cx } from './cx.ts'

const never = () => () => undefined
const isApple = () => /Mac|iPhone|iPad/.test(navigator.platform)

/** True on Apple's machines, false in Node. */
export function useApple(): boolean {
  return useSyncExternalStore(never, isApple, () => false)
}

const NAMES: Record<string, [apple: string, other: string]> = {
  mod: ['⌘', 'Ctrl'],
  shift: ['⇧', 'Shift'],
  alt: ['⌥', 'Alt'],
  enter: ['↵', '↵'],
  escape: ['Esc', 'Esc'],
  backspace: ['⌫', '⌫'],
  arrowup: ['↑', '↑'],
  arrowdown: ['↓', '↓'],
  arrowleft: ['←', '←'],
  arrowright: ['→', '→'],
  space: ['Space', 'Space'],
}

/** `mod+k` → ['⌘', 'K'] ; `g t` → ['G', 'T']. */
export function keyNames(keys: string, apple: boolean): string[] {
  return keys.split(/[+ ]/).map((key) => NAMES[key.toLowerCase()]?.[apple ? 0 : 1] ?? key.toUpperCase())
}

/** A shortcut as key caps. `keys` as in ui/keyboard.ts: `mod+k`, `shift+enter`, or a sequence `g t`. */
export function Kbd({ keys, className }: { keys: string; className?: string | undefined }) {
  const names = keyNames(keys, useApple())
  const sequence = keys.includes(' ')
  return (
    <kbd className={cx('inline-flex items-center gap-0.5 font-sans text-2xs text-text-3', className)}>
      {names.map((name, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the caps of one shortcut never reorder
        <span key={i} className="inline-flex items-center gap-0.5">
          {sequence && i > 0 && <span className="px-px">then</span>}
          <span className="inline-grid h-4 min-w-4 place-items-center rounded-xs border border-line-strong bg-surface-1 px-1 leading-none">
            {name}
          </span>
        </span>
      ))}
    </kbd>
  )
}
