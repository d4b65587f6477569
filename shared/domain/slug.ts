/** Names that stand in branches, paths and addresses. Pure; the wizard, the server and the gateway ask the same rule. */

/** Names with a meaning of their own: in paths, branches and addresses, or after an @. */
const RESERVED = new Set(
  (
    'new default template templates main master head archive system all me hq admin api ' +
    'channel everyone here human team user'
  ).split(' '),
)

/** What is wrong with an agent's slug, in a sentence, or undefined: 2–40 characters of a–z, 0–9 and -, beginning and ending with none of the last, not reserved. */
export function slugProblem(slug: string): string | undefined {
  if (slug.length < 2 || slug.length > 40) return 'A slug has 2 to 40 characters.'
  if (!/^[a-z0-9-]+$/.test(slug)) return 'A slug has only small letters a–z, digits and hyphens.'
  if (!/^[a-z0-9].*[a-z0-9]$/.test(slug)) return 'A slug begins and ends with a letter or a digit.'
  if (RESERVED.has(slug)) return `“${slug}” is reserved. Take another one.`
  return undefined
}

/** A slug made from a name: "Ada Lovelace" → "ada-lovelace"; empty when nothing of the name can stand in one. */
export const slugFrom = (name: string): string =>
  name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 40)
    .replace(/-+$/, '')
