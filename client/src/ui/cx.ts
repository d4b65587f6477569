/** Joins class names, leaving out what is empty. Classes never override each other here, so there is no merging. */
export function cx(...parts: (string | false | null | undefined)[]): string {
  return parts.filter(Boolean).join(' ')
}

/** What a colour may mean. `neutral` is the absence of a meaning. */
export type Meaning = 'neutral' | 'good' | 'busy' | 'waiting' | 'warning' | 'danger'

/** Written out, so that Tailwind finds every class. */
export const markColor: Record<Meaning, string> = {
  neutral: 'text-text-3',
  good: 'text-good',
  busy: 'text-busy',
  waiting: 'text-waiting',
  warning: 'text-warning',
  danger: 'text-danger',
}
export const inkColor: Record<Meaning, string> = {
  neutral: 'text-text-2',
  good: 'text-good-ink',
  busy: 'text-busy-ink',
  waiting: 'text-waiting-ink',
  warning: 'text-warning-ink',
  danger: 'text-danger-ink',
}
export const softColor: Record<Meaning, string> = {
  neutral: 'bg-surface-2',
  good: 'bg-good-soft',
  busy: 'bg-busy-soft',
  waiting: 'bg-waiting-soft',
  warning: 'bg-warning-soft',
  danger: 'bg-danger-soft',
}
export const solidColor: Record<Meaning, string> = {
  neutral: 'bg-text-3',
  good: 'bg-good',
  busy: 'bg-busy',
  waiting: 'bg-waiting',
  warning: 'bg-warning',
  danger: 'bg-danger',
}

/** Eight hues for streams, people and series (`--hue-1` … `--hue-8`). */
export type Hue = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8

export function hueVar(hue: Hue): string {
  return `var(--hue-${hue})`
}

/** A hue that stays the same for the same text (a person's id, a tag). */
export function hueOf(text: string): Hue {
  let hash = 2166136261
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619)
  return (((hash >>> 8) % 8) + 1) as Hue
}
