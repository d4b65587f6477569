/**
 * An agent's worktree as its tools see it: read, list and write, and nothing outside.
 *
 *  F1 No path leaves the worktree: not by `..`, not absolute, not by a drive or a NUL, and not through a symbolic link anywhere on the way.
 *  F2 Git's own files and the agent's connection file are not there for it.
 *  F3 Text only, at most `MAX_BYTES`; a listing has at most `MAX_FILES` entries.
 *  F4 A write is a commit under the agent's name (by `workspaces.writeText`, which checks F1 once more).
 */
import { lstat, open, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { type Author, agentAuthor, WorkspaceError, type Workspaces } from '../workspaces/contract.ts'
import type { AgentFiles, FileResult } from './runtime.ts'

export const MAX_BYTES = 256 * 1024
export const MAX_FILES = 500

/** Names that no tool may touch, wherever they stand in a path (F2). */
const HIDDEN = new Set(['.git', '.hq-agent.json', 'node_modules'])

export interface AgentFilesOptions {
  readonly folder: string
  /** Writes and commits; throws what the workspace refuses. */
  readonly commit: (path: string, text: string) => Promise<void>
}

/** The files of an agent through the gateway's workspaces; undefined when it has no worktree. */
export async function agentFilesOf(
  workspaces: Pick<Workspaces, 'folder' | 'exists' | 'writeText'>,
  agent: { readonly slug: string; readonly name: string },
): Promise<AgentFiles | undefined> {
  if (!(await workspaces.exists(agent.slug))) return undefined
  const author: Author = agentAuthor(agent)
  return createAgentFiles({
    folder: workspaces.folder(agent.slug),
    commit: async (path, text) => {
      await workspaces.writeText(agent.slug, path, text, { author, message: `write ${path}` })
    },
  })
}

export function createAgentFiles({ folder, commit }: AgentFilesOptions): AgentFiles {
  return {
    async list(sub = '') {
      const inside = sub === '' || sub === '.' ? good('') : checkPath(sub)
      if (!inside.ok) return inside
      const start = await follow(folder, inside.value)
      if (!start.ok) return start
      if (!start.value.isDirectory) return bad(`“${sub}” is not a folder.`)
      const found: { path: string; size: number }[] = []
      await walk(start.value.path, inside.value, found)
      return good(found)
    },

    async read(path) {
      const inside = checkPath(path)
      if (!inside.ok) return inside
      const file = await follow(folder, inside.value)
      if (!file.ok) return file
      if (!file.value.isFile) return bad(`“${path}” is not a file.`)
      return readTextFile(file.value.path, path)
    },

    async write(path, text) {
      const inside = checkPath(path)
      if (!inside.ok) return inside
      const bytes = Buffer.byteLength(text)
      if (bytes > MAX_BYTES) return bad(`A file may have ${MAX_BYTES} bytes; this text has ${bytes}.`)
      if (text.includes('\0')) return bad('Only text can be written.')
      const target = await follow(folder, inside.value)
      if (target.ok && !target.value.isFile) return bad(`“${path}” is a folder.`)
      if (!target.ok && !target.missing) return target
      try {
        await commit(inside.value, text)
      } catch (error) {
        if (error instanceof WorkspaceError) return bad(error.message)
        throw error
      }
      return good({ path: inside.value })
    },
  }
}

/** F1 and F2 by the letters of the path; the normalised path. */
export function checkPath(path: string): FileResult<string> {
  if (path.trim() === '') return bad('A path is needed.')
  if (path.includes('\0')) return bad('A path must not contain a NUL character.')
  if (path.length > 500) return bad('The path is too long.')
  if (path.includes('\\')) return bad('Paths are written with “/”.')
  if (path.startsWith('/') || path.startsWith('~') || /^[a-z]:/i.test(path))
    return bad(`“${path}” is not a path inside your workspace.`)
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.includes('..')) return bad(`“${path}” leads out of your workspace.`)
  if (parts.length === 0) return bad('A path is needed.')
  const hidden = parts.find((part) => HIDDEN.has(part.toLowerCase()))
  if (hidden) return bad(`“${hidden}” is not for agents.`)
  return good(parts.join('/'))
}

/** A folder of the worktree, for something that is to begin in it (F1, F2). Without one: the worktree. */
export async function resolveFolder(folder: string, sub = ''): Promise<FileResult<string>> {
  const inside = sub === '' || sub === '.' ? good('') : checkPath(sub)
  if (!inside.ok) return inside
  const found = await follow(folder, inside.value)
  if (!found.ok) return bad(found.message)
  return found.value.isDirectory ? good(found.value.path) : bad(`“${sub}” is not a folder.`)
}

type Found =
  | { ok: true; value: { path: string; isFile: boolean; isDirectory: boolean } }
  | { ok: false; message: string; missing?: boolean }

/** Goes down part by part and refuses symbolic links (F1). */
async function follow(folder: string, path: string): Promise<Found> {
  let here: string
  try {
    here = await realpath(folder)
  } catch (error) {
    if (isMissing(error)) return { ok: false, message: 'This agent has no workspace folder.' }
    throw error
  }
  let isFile = false
  for (const part of path.split('/').filter(Boolean)) {
    here = join(here, part)
    try {
      const entry = await lstat(here)
      if (entry.isSymbolicLink())
        return { ok: false, message: `“${path}” leads through a symbolic link, which is not allowed.` }
      isFile = entry.isFile()
      if (!isFile && !entry.isDirectory()) return { ok: false, message: `“${path}” is not a file.` }
    } catch (error) {
      if (isMissing(error)) return { ok: false, message: `There is no “${path}” in your workspace.`, missing: true }
      throw error
    }
  }
  return { ok: true, value: { path: here, isFile, isDirectory: !isFile } }
}

async function readTextFile(absolute: string, path: string): Promise<FileResult<string>> {
  const handle = await open(absolute, 'r')
  try {
    const { size } = await handle.stat()
    if (size > MAX_BYTES) return bad(`“${path}” has ${size} bytes; at most ${MAX_BYTES} can be read.`)
    const bytes = await handle.readFile()
    try {
      return good(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    } catch (error) {
      if (error instanceof TypeError) return bad(`“${path}” is not a text file.`)
      throw error
    }
  } finally {
    await handle.close()
  }
}

async function walk(absolute: string, path: string, found: { path: string; size: number }[]): Promise<void> {
  const entries = await readdir(absolute, { withFileTypes: true })
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (found.length >= MAX_FILES) return
    if (HIDDEN.has(entry.name.toLowerCase())) continue
    const below = path === '' ? entry.name : `${path}/${entry.name}`
    if (entry.isDirectory()) await walk(join(absolute, entry.name), below, found)
    else if (entry.isFile()) found.push({ path: below, size: (await lstat(join(absolute, entry.name))).size })
  }
}

const good = <T>(value: T): { ok: true; value: T } => ({ ok: true, value })
const bad = (message: string): { ok: false; message: string } => ({ ok: false, message })
const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
