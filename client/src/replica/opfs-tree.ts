/**
 * What a database in the private file system consists of, as plain data: a tree of folders and files, the changes that a journal lists, and what can go
 * wrong with a file. The file system itself, with its invariants F1–F5, is opfs-files.ts.
 */
import type { FsStats } from '@electric-sql/pglite/basefs'

/** Only in workers, so not in the page's types. */
export interface SyncHandle {
  close(): void
  flush(): void
  getSize(): number
  read(buffer: Uint8Array, options: { at: number }): number
  truncate(size: number): void
  write(buffer: Uint8Array, options: { at: number }): number
}

/** What is needed of a folder of the private file system. */
export interface Folder {
  getDirectoryHandle(name: string, options?: { create?: boolean }): Promise<Folder>
  getFileHandle(
    name: string,
    options?: { create?: boolean },
  ): Promise<{ createSyncAccessHandle(): Promise<SyncHandle> }>
  keys(): AsyncIterable<string>
}

export interface FileNode {
  mode: number
  mtime: number
  /** Name and handle of the file that holds it. */
  readonly name: string
  readonly handle: SyncHandle
  /** Part of the log, which has the reserve (F4). */
  urgent: boolean
  gone: boolean
}
export interface FolderNode {
  mode: number
  mtime: number
  readonly children: Map<string, Node>
}
export type Node = FileNode | FolderNode

/** As emscripten numbers them. */
const ERRNO = { EBADF: 8, EEXIST: 20, EISDIR: 31, ENOENT: 44, ENOSPC: 51, ENOTDIR: 54, ENOTEMPTY: 55 } as const

export class FileError extends Error {
  readonly code: number
  constructor(code: keyof typeof ERRNO, path: string) {
    super(`${code}: ${path}`)
    this.code = ERRNO[code]
  }
}

/** Its files are still open elsewhere; a worker that has ended lets go of them in a moment. */
export const isHeld = (error: unknown): boolean =>
  error instanceof DOMException && ['NoModificationAllowedError', 'InvalidStateError'].includes(error.name)

/** There is no room. */
export const isQuota = (error: unknown): boolean =>
  error instanceof FileError
    ? error.code === ERRNO.ENOSPC
    : error instanceof Error && error.name === 'QuotaExceededError'

export type Change =
  | readonly ['file', path: string, mode: number, name: string]
  | readonly ['folder', path: string, mode: number]
  | readonly ['mode', path: string, mode: number]
  | readonly ['move', from: string, to: string]
  | readonly ['gone', path: string]

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
export const isFolder = (node: Node): node is FolderNode => 'children' in node
export const partsOf = (path: string): string[] => path.split('/').filter((part) => part !== '')
export const isUrgent = (path: string): boolean => path.includes('pg_wal/')
export const isControl = (path: string): boolean => path.endsWith('global/pg_control')

/** All but the root, folders before what is in them. */
export function* walk(folder: FolderNode, above = ''): Generator<[path: string, node: Node]> {
  for (const [name, node] of folder.children) {
    const path = `${above}/${name}`
    yield [path, node]
    if (isFolder(node)) yield* walk(node, path)
  }
}

const BLOCK = 4096

export function statsOf(node: Node): FsStats {
  const size = isFolder(node) ? 0 : node.handle.getSize()
  const { mode, mtime } = node
  const rest = { dev: 0, ino: 0, nlink: 1, uid: 0, gid: 0, rdev: 0 }
  return { ...rest, mode, size, blksize: BLOCK, blocks: Math.ceil(size / BLOCK), atime: mtime, mtime, ctime: mtime }
}

export interface ParsedJournal {
  readonly generation: number
  /** Undefined: it was never whole. */
  readonly tree: readonly Change[] | undefined
  readonly changes: readonly Change[]
  /** Where what can be read ends. */
  readonly end: number
}

export function parseJournal(handle: SyncHandle): ParsedJournal {
  const bytes = new Uint8Array(handle.getSize())
  handle.read(bytes, { at: 0 })
  const NOTHING = { generation: 0, tree: undefined, changes: [], end: 0 }
  const first = bytes.indexOf(10)
  if (first < 0) return NOTHING
  const head = parseLine<{ generation: number; tree: Change[] }>(bytes.subarray(0, first))
  if (!Array.isArray(head?.tree)) return NOTHING
  const changes: Change[] = []
  let end = first + 1
  for (let next = bytes.indexOf(10, end); next >= 0; next = bytes.indexOf(10, end)) {
    const change = parseLine<Change>(bytes.subarray(end, next))
    if (!Array.isArray(change)) break
    changes.push(change)
    end = next + 1
  }
  return { generation: head.generation, tree: head.tree, changes, end }
}

/** Undefined: it was cut short. */
function parseLine<T>(bytes: Uint8Array): T | undefined {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as T
  } catch {
    return undefined
  }
}
