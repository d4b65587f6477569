/**
 * Mentions. An agent is `@its-slug`, a person `@Their Name`; what is stored beside the body is an agent's slug or a person's id. Pure.
 *
 * M1 The longest handle wins (`@Ana Lopez` is not `@Ana`), whatever the case; a handle ends where a word ends.
 * M2 An @ inside a word (an e-mail address) and everything in code is text.
 * M3 A person chosen from the list is that person, also when two have the same name.
 */
import type { Actor } from '../../ui/avatar.tsx'

export interface Mentionable {
  /** What is stored: slug of an agent, id of a person. */
  readonly key: string
  /** What is written after the @. */
  readonly handle: string
  readonly actor: Actor
}

export interface Mention {
  readonly start: number
  readonly end: number
  readonly who: Mentionable
}

const isWord = (char: string | undefined): boolean => char !== undefined && /[\p{L}\p{N}_-]/u.test(char)
/** Scripts that write without spaces: a name may be followed by more text directly. */
const unspaced = (char: string | undefined): boolean =>
  char !== undefined && /[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]/.test(char)

/** Every mention in plain text, in order (M1, M2 without code). */
export function mentionsIn(text: string, candidates: readonly Mentionable[]): Mention[] {
  const byLength = [...candidates].sort((a, b) => b.handle.length - a.handle.length)
  const found: Mention[] = []
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    const before = text[at - 1]
    if (isWord(before) && !unspaced(before)) continue
    const who = byLength.find(({ handle }) => {
      const end = at + 1 + handle.length
      return (
        handle !== '' &&
        text.slice(at + 1, end).toLowerCase() === handle.toLowerCase() &&
        (!isWord(text[end]) || unspaced(text[end]) || (text[end] === '-' && !isWord(text[end + 1])))
      )
    })
    if (!who) continue
    found.push({ start: at, end: at + 1 + who.handle.length, who })
    at += who.handle.length
  }
  return found
}

/** Code, blanked out so that positions stay. */
const withoutCode = (body: string): string =>
  body.replace(/```[\s\S]*?(?:```|$)|`[^`\n]+`/g, (code) => ' '.repeat(code.length))

/** What to store in `comments.mentions`, each once, in order. `chosen`: picked from the list while writing (M3). */
export function mentionKeys(
  body: string,
  candidates: readonly Mentionable[],
  chosen: readonly Mentionable[] = [],
): string[] {
  const picked = new Map(chosen.map((who) => [who.handle.toLowerCase(), who.key]))
  const found = mentionsIn(withoutCode(body), candidates)
  return [...new Set(found.map(({ who }) => picked.get(who.handle.toLowerCase()) ?? who.key))]
}

/** The `@…` that is being typed at the caret, or undefined. */
export function typedMention(
  text: string,
  caret: number,
): { readonly start: number; readonly query: string } | undefined {
  const before = text.slice(0, caret)
  const start = before.lastIndexOf('@')
  if (start < 0) return undefined
  const previous = before[start - 1]
  if (isWord(previous) && !unspaced(previous)) return undefined
  const query = before.slice(start + 1)
  return /^[^\s@]*(?: [^\s@]*)?$/u.test(query) && query.length <= 40 ? { start, query } : undefined
}

/** Without accents and case: "lo" finds López. */
const fold = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase()

/** Those whom a query may mean, best first: beginnings of the handle or a word of the name, then anything inside. */
export function matching(query: string, candidates: readonly Mentionable[], limit = 6): Mentionable[] {
  const wanted = fold(query)
  const score = ({ handle, actor }: Mentionable): number => {
    const names = [fold(handle), fold(actor.name)]
    if (names.some((name) => name.startsWith(wanted))) return 0
    if (names.some((name) => name.split(/[\s-]+/).some((word) => word.startsWith(wanted)))) return 1
    return names.some((name) => name.includes(wanted)) ? 2 : 9
  }
  return candidates
    .map((who, i) => ({ who, i, score: score(who) }))
    .filter((each) => each.score < 9)
    .sort((a, b) => a.score - b.score || a.i - b.i)
    .slice(0, limit)
    .map(({ who }) => who)
}
