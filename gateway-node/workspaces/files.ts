/**
 * Reading, writing and deleting single files of a worktree (W3, W6, W7 of `contract.ts`).
 *
 *  R1 Text only: UTF-8 without NUL, at most 1 MiB.
 *  R2 What HQ keeps in a worktree for itself (`NEVER_COMMITTED`) is written where an agent may write it, but never committed.
 */
import { constants } from 'node:fs'
import { mkdir, open, realpath, unlink } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import { WorkspaceConflict, WorkspaceError, type Workspaces, type WriteOptions } from './contract.ts'
import { isCode, resolveInside } from './paths.ts'
import { NEVER_COMMITTED, type Repository, writeFileAtomically } from './repository.ts'
import type { Worktrees } from './worktrees.ts'

export const MAX_TEXT = 1024 * 1024

export type FileWork = Pick<Workspaces, 'readText' | 'writeText' | 'deleteFile'>

interface Options {
  readonly repository: Repository
  readonly worktrees: Worktrees
  readonly mustOwn: (slug: string) => Promise<unknown>
}

export function fileWork({ repository, worktrees, mustOwn }: Options): FileWork {
  async function placeOf(slug: string, path: string): Promise<string> {
    await mustOwn(slug)
    return resolveInside(worktrees.folder(slug), path)
  }

  /** W7. `wanted`: what the file is to be. True: it is that already. */
  async function judge(
    place: string,
    path: string,
    expectedSha: string | null | undefined,
    wanted: Uint8Array | null,
  ): Promise<void> {
    if (expectedSha === undefined) return
    const present = await readRegular(place, path)
    const sha = present && (await repository.hashBlob(present))
    if (sha === expectedSha || sha === (wanted && (await repository.hashBlob(wanted)))) return
    const what = sha === null ? 'was deleted' : expectedSha === null ? 'has been made by somebody else' : 'has changed'
    throw new WorkspaceConflict(
      `${path} ${what} since it was read. Look at both versions, then save the one that should be.`,
      sha,
      present && asText(present),
    )
  }

  /** Commits the file under its real path: git follows no links. */
  async function commitOne(slug: string, place: string, message: string, options: WriteOptions): Promise<void> {
    const root = await realpath(worktrees.folder(slug))
    const folder = await realpath(dirname(place)).catch((error: unknown) => {
      if (isCode(error, 'ENOENT')) return dirname(place)
      throw error
    })
    const path = relative(root, join(folder, basename(place))).split(sep)
    if (path.some((part) => NEVER_COMMITTED.includes(part))) return
    await worktrees.commitFile(slug, path.join('/'), options.message ?? message, options.author)
  }

  return {
    readText: async (slug, path) => {
      const content = await readRegular(await placeOf(slug, path), path)
      if (!content) throw absentFile(path)
      return { text: mustBeText(content, path), sha: await repository.hashBlob(content) }
    },
    writeText: async (slug, path, text, options) => {
      const place = await placeOf(slug, path)
      const content = new TextEncoder().encode(text)
      if (content.length > MAX_TEXT) throw new WorkspaceError('not_text', `${path} would be larger than 1 MiB.`)
      if (asText(content) !== text)
        throw new WorkspaceError('not_text', `${path} would not be text: it has a NUL or half a character in it.`)
      await judge(place, path, options.expectedSha, content)
      try {
        await mkdir(dirname(place), { recursive: true })
        await writeFileAtomically(place, content)
      } catch (error) {
        if (['EEXIST', 'ENOTDIR', 'EISDIR', 'ENOTEMPTY'].some((code) => isCode(error, code)))
          throw new WorkspaceError('path_refused', `${path} can't be a file here: a file or folder is in its way.`)
        throw error
      }
      await commitOne(slug, place, `Edit ${path}`, options)
      return repository.hashBlob(content)
    },
    deleteFile: async (slug, path, options) => {
      const place = await placeOf(slug, path)
      await judge(place, path, options.expectedSha, null)
      const present = await readRegular(place, path)
      if (present) await unlink(place)
      else if (options.expectedSha === undefined || options.expectedSha === null) throw absentFile(path)
      await commitOne(slug, place, `Delete ${path}`, options)
      const commit = await worktrees.head(slug)
      if (!commit)
        throw new WorkspaceError('not_found', `The branch of "${slug}" is missing. Provision the agent again.`)
      return commit
    },
  }
}

const absentFile = (path: string): WorkspaceError =>
  new WorkspaceError('not_found', `There is no file ${path} in this workspace.`)

export function mustBeText(content: Uint8Array, path: string): string {
  const text = content.length > MAX_TEXT ? null : asText(content)
  if (text === null) throw new WorkspaceError('not_text', `${path} is not a text file, or larger than 1 MiB.`)
  return text
}

/** A file's bytes, null when it doesn't exist. The last part of the path is never followed as a link. */
async function readRegular(place: string, path: string): Promise<Uint8Array | null> {
  let file: Awaited<ReturnType<typeof open>>
  try {
    file = await open(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (isCode(error, 'ENOENT') || isCode(error, 'ENOTDIR')) return null
    if (isCode(error, 'ELOOP')) throw new WorkspaceError('path_refused', `${path} is a link; links are not followed.`)
    throw error
  }
  try {
    const { size, isFile } = await file.stat().then((stat) => ({ size: stat.size, isFile: stat.isFile() }))
    if (!isFile) throw new WorkspaceError('not_text', `${path} is not a file.`)
    if (size > MAX_TEXT) throw new WorkspaceError('not_text', `${path} is larger than 1 MiB.`)
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/** The text, or null when it is none: not UTF-8, or with a NUL, which no Postgres text may hold. */
export function asText(content: Uint8Array): string | null {
  if (content.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
  } catch {
    // The only way to ask whether bytes are UTF-8.
    return null
  }
}
