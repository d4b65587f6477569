/**
 * The file with an agent's secrets, `<home>/agents/<slug>.env`: the only place where a secret is in plain text.
 *
 *  F1 Readable by its owner only from the moment it exists; replaced as a whole, with file and name on the disk, so that a reader sees the old or the new one.
 *  F2 Lines are `NAME='value'` as a POSIX shell reads them. A value may have any characters but NUL.
 *  F3 No secrets, no file.
 */
import { open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { assertSlug, isCode } from '../workspaces/paths.ts'
import { writeFileAtomically } from '../workspaces/repository.ts'

export type Variables = ReadonlyMap<string, string>

export const envFilePath = (home: string, slug: string): string => {
  assertSlug(slug)
  return join(home, 'agents', `${slug}.env`)
}

export const formatEnv = (variables: Variables): string =>
  [...variables]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}='${value.replaceAll("'", `'\\''`)}'\n`)
    .join('')

export function parseEnv(text: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const [, key = '', quoted = ''] of text.matchAll(/^([A-Z][A-Z0-9_]*)='((?:[^']|'\\'')*)'$/gm))
    found.set(key, quoted.replaceAll(`'\\''`, "'"))
  return found
}

/** What an agent's programs may know; empty when it has no secrets. */
export async function readEnvFile(home: string, slug: string): Promise<Map<string, string>> {
  try {
    return parseEnv(await readFile(envFilePath(home, slug), 'utf8'))
  } catch (error) {
    if (isCode(error, 'ENOENT')) return new Map()
    throw error
  }
}

/** Writes only what differs. */
export async function writeEnvFile(home: string, slug: string, variables: Variables): Promise<void> {
  const path = envFilePath(home, slug)
  if (variables.size === 0) {
    await rm(path, { force: true })
  } else {
    const text = formatEnv(variables)
    const present = await readFile(path, 'utf8').catch((error: unknown) => {
      if (isCode(error, 'ENOENT')) return undefined
      throw error
    })
    if (present === text && ((await stat(path)).mode & 0o077) === 0) return
    await writeFileAtomically(path, text, 0o600)
  }
  await syncFolder(join(home, 'agents'))
}

/** Files of agents that are not here (any more). */
export async function removeOthers(home: string, slugs: ReadonlySet<string>): Promise<void> {
  const folder = join(home, 'agents')
  let removed = false
  for (const name of await readdir(folder).catch(() => [])) {
    // Also what a killed write has left: `<slug>.env.<pid>-<n>.tmp`.
    const slug = /^([a-z0-9-]+)\.env(\.\d+-\d+\.tmp)?$/.exec(name)
    if (!slug || (slugs.has(slug[1] ?? '') && slug[2] === undefined)) continue
    await rm(join(folder, name), { force: true })
    removed = true
  }
  if (removed) await syncFolder(folder)
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r').catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  })
  try {
    await folder?.sync()
  } finally {
    await folder?.close()
  }
}
