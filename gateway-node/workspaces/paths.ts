/**
 * Names and paths that come from rows, requests and agents, made safe before they touch the disk (W3).
 *
 *  P1 A slug is 2–40 of `a-z 0-9 -`, beginning and ending with a letter or digit: safe as a folder, as part of a git ref and in a URL.
 *  P2 A path is refused when it is absolute, empty, has `..`, a backslash, a NUL or control character, or names `.git` in any spelling.
 *  P3 The real place of a path (all links followed, the deepest part that exists) lies inside the real root.
 */
import { lstat, realpath } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'
import { WorkspaceError } from './contract.ts'

const SLUG = /^[a-z0-9][a-z0-9-]{0,38}[a-z0-9]$/

/** Throws `slug_invalid` (P1). */
export function assertSlug(slug: string): void {
  if (SLUG.test(slug)) return
  throw new WorkspaceError(
    'slug_invalid',
    `"${shorten(slug)}" can't be an agent's slug: it needs 2 to 40 of the characters a–z, 0–9 and -, beginning and ending with a letter or digit.`,
  )
}

/** A workspace's slug as the first part of a branch name: never `template`, which holds the templates. */
export function branchPrefix(workspaceSlug: string): string {
  const clean = workspaceSlug
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 60)
    .replace(/-+$/, '')
  if (clean === '') return 'workspace'
  return clean === 'template' ? 'workspace-template' : clean
}

/** Parts of a relative path, or null when it is refused (P2). */
export function safeParts(path: string): string[] | null {
  if (path === '' || path.length > 1024 || isAbsolute(path) || hasForbiddenCharacter(path)) return null
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.length === 0 || path.endsWith('/')) return null
  for (const part of parts) if (part === '..' || isGitFolder(part) || part.length > 255) return null
  return parts
}

/** Absolute path inside `root`, or `path_refused` (P2, P3). The file need not exist. */
export async function resolveInside(root: string, path: string): Promise<string> {
  const parts = safeParts(path)
  if (!parts) throw refused(path)
  const realRoot = await realpath(root)
  let place = realRoot
  for (const part of parts) {
    place = join(place, part)
    const entry = await lstat(place).catch(missing)
    // What doesn't exist can be no link; nor can anything below it.
    if (!entry) return join(realRoot, ...parts)
    if (!entry.isSymbolicLink()) continue
    const target = await realpath(place).catch((error) => (isCode(error, 'ELOOP') ? undefined : missing(error)))
    if (target === undefined || !isInside(realRoot, target)) throw refused(path)
  }
  return join(realRoot, ...parts)
}

export function isInside(root: string, path: string): boolean {
  const way = relative(root, path)
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

/** `.git` as some file systems also read it: other case, trailing dots and spaces, NTFS streams and short names. */
function isGitFolder(part: string): boolean {
  const name = part
    .toLowerCase()
    .replace(/:.*$/, '')
    .replaceAll(/[. ]+$/g, '')
  return name === '.git' || name === 'git~1'
}

function hasForbiddenCharacter(path: string): boolean {
  for (const character of path) {
    const code = character.codePointAt(0) ?? 0
    if (code < 0x20 || code === 0x7f || character === '\\') return true
  }
  return false
}

const refused = (path: string): WorkspaceError =>
  new WorkspaceError(
    'path_refused',
    `"${shorten(path)}" isn't a path inside the agent's workspace. Use a relative path without "..", such as notes/plan.md.`,
  )

const shorten = (text: string): string => JSON.stringify(text.slice(0, 120)).slice(1, -1)

function missing(error: unknown): undefined {
  if (isCode(error, 'ENOENT') || isCode(error, 'ENOTDIR')) return undefined
  throw error
}

export const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
