/**
 * Postgres's files in the browser's private file system.
 *
 * Postgres reads and writes synchronously, and the browser opens files only asynchronously. So a stock of empty files is held open: a new
 * file of the database takes one, a deleted one goes back. Which of them holds which file of the database stands in a journal.
 *
 * F1 Opening ends: with every file open, or rejected with all closed again. Files that a worker which is ending still holds are told apart
 *    (`isHeld`), so that it can be tried again.
 * F2 Two journals take turns; each begins with the whole tree and is taken into use only when that has been written. Whenever the process
 *    ends, one of them is whole. What is cut short at the end of a journal never happened.
 * F3 Files that were deleted or created count when the journal has been written; a file is used again only when it has been flushed.
 * F4 No room is ENOSPC to Postgres, which then refuses the statement. A reserve is given up for the log and the journal, because a
 *    log that cannot be written ends the database instead; until it is whole again nothing else may grow (`full`). Given up by closing its file:
 *    Chromium takes room back from no open file, however short it is cut. If even that was not enough, `onLost` is called: this database answers
 *    nothing any more, and must be opened anew.
 * F5 Flushed at the end of every statement: journal and log. Before pg_control, which says that a checkpoint is done: everything.
 */
import type { PGlite } from '@electric-sql/pglite'
import { BaseFilesystem, type FsStats } from '@electric-sql/pglite/basefs'
import {
  type Change,
  encode,
  FileError,
  type FileNode,
  type Folder,
  type FolderNode,
  isControl,
  isFolder,
  isHeld,
  isQuota,
  isUrgent,
  type Node,
  parseJournal,
  partsOf,
  type SyncHandle,
  statsOf,
  walk,
} from './opfs-tree.ts'

const FOLDER_MODE = 0o040700
const FILE_MODE = 0o100600
const STOCK_LOW = 64
const STOCK_FULL = 128
const JOURNAL_BYTES = 512 * 1024
/** Eight segments of the log. */
const RESERVE_BYTES = 8 * 1024 * 1024
const RETRY_EVERY_MS = 500

interface Journal {
  readonly handle: SyncHandle
  end: number
}

export interface OpfsFilesOptions {
  /** How many files a new database will need at once. */
  readonly stock: number
  /** Where folders of databases are; for tests. */
  readonly root?: () => Promise<Folder>
  /** The log could not be written (F4). */
  readonly onLost?: () => void
}

export class OpfsFiles extends BaseFilesystem {
  readonly #name: string
  readonly #options: OpfsFilesOptions
  #home: Folder | undefined
  #data: Folder | undefined
  readonly #handles = new Map<string, SyncHandle>()
  readonly #files = new Set<object>()
  #tree: FolderNode = { mode: FOLDER_MODE, mtime: 0, children: new Map() }
  #journals: [Journal, Journal] | undefined
  #active = 0
  #generation = 0
  #journalLimit = JOURNAL_BYTES
  #stock: string[] = []
  /** Deleted; in the stock again when the journal is flushed (F3). */
  #released: string[] = []
  #lastName = 0
  /** Undefined while it is given up. */
  #reserve: SyncHandle | undefined
  #reserveTriedAt = 0
  #stockTriedAt = 0
  readonly #open = new Map<number, { path: string; node: FileNode }>()
  #lastFd = 0
  /** Written and not flushed: at the end of the statement, and before the next checkpoint (F5). */
  readonly #soon = new Set<SyncHandle>()
  readonly #later = new Set<SyncHandle>()

  constructor(name: string, options: OpfsFilesOptions) {
    super(name)
    this.#name = name
    this.#options = options
  }

  /** There is no room: nothing new may be written until there is (F4). */
  get full(): boolean {
    return this.#journals !== undefined && this.#reserve === undefined
  }

  override async init(pg: PGlite, options: Parameters<BaseFilesystem['init']>[1]) {
    await this.openFiles()
    return super.init(pg, options)
  }

  /** Opens everything (F1). */
  async openFiles(): Promise<void> {
    try {
      const { root = async () => (await navigator.storage.getDirectory()) as unknown as Folder } = this.#options
      const folder = await (await root()).getDirectoryHandle(this.#name, { create: true })
      this.#home = folder
      this.#data = await folder.getDirectoryHandle('data', { create: true })
      const journals: Journal[] = []
      // The first one decides who may go on, so it is opened before all others.
      for (const name of ['journal-0', 'journal-1']) journals.push({ handle: await this.#take(folder, name), end: 0 })
      this.#journals = journals as [Journal, Journal]
      const reserve = await this.#take(folder, 'reserve')
      const known: string[] = []
      for await (const name of this.#data.keys()) known.push(name)
      await this.#openAll(known)
      this.#lastName = known.reduce((last, name) => Math.max(last, Number.parseInt(name, 36) || 0), 0)
      const isNew = !this.#readJournals(known)
      await this.#addStock(isNew ? this.#options.stock : STOCK_FULL)
      this.#reserve = reserve
      this.#fillReserve()
    } catch (error) {
      this.#closeAll()
      throw error
    }
  }

  override async syncToFs(): Promise<void> {
    this.#flush(this.#soon)
    this.#stock.push(...this.#released)
    this.#released = []
    const { end } = this.#journal
    if (end > this.#journalLimit) this.#turn()
    if (this.full && Date.now() - this.#reserveTriedAt > RETRY_EVERY_MS) await this.#restoreReserve()
    if (this.#stock.length < STOCK_LOW && Date.now() - this.#stockTriedAt > RETRY_EVERY_MS) {
      await this.#addStock(STOCK_FULL).catch((error: unknown) => {
        this.#stockTriedAt = Date.now()
        console.warn('No more files can be opened for the database at present.', error)
      })
    }
  }

  override async closeFs(): Promise<void> {
    try {
      this.#flush(this.#later)
      this.#flush(this.#soon)
    } finally {
      this.#closeAll()
    }
    this.pg?.Module.FS.quit()
  }

  #closeAll(): void {
    for (const handle of this.#handles.values()) handle.close()
    this.#handles.clear()
    this.#files.clear()
    this.#open.clear()
    this.#soon.clear()
    this.#later.clear()
    this.#journals = undefined
    this.#reserve = undefined
  }

  // Journal

  get #journal(): Journal {
    const journal = this.#journals?.[this.#active]
    if (!journal) throw new FileError('EBADF', 'the files of this database are closed')
    return journal
  }

  /** Whether there was a database. Throws when there was one that cannot be read any more. */
  #readJournals(known: readonly string[]): boolean {
    const read = (this.#journals ?? []).map((journal) => ({ journal, ...parseJournal(journal.handle) }))
    const newest = read.filter(({ tree }) => tree).sort((a, b) => b.generation - a.generation)[0]
    if (!newest?.tree) {
      if (known.length > 0 || read.some(({ journal }) => journal.handle.getSize() > 0))
        throw new Error('The list of the files of this database cannot be read.')
      this.#writeTree(0, 1)
      return false
    }
    this.#active = read.indexOf(newest)
    this.#generation = newest.generation
    newest.journal.end = newest.end
    newest.journal.handle.truncate(newest.end)
    for (const change of [...newest.tree, ...newest.changes]) this.#apply(change)
    const used = new Set<string>()
    for (const [, node] of walk(this.#tree)) if (!isFolder(node)) used.add(node.name)
    this.#stock = known.filter((name) => !used.has(name))
    for (const name of this.#stock) this.#handles.get(name)?.truncate(0)
    return true
  }

  /** The other journal takes over, beginning with the tree as it is (F2). */
  #turn(): void {
    const next = 1 - this.#active
    try {
      this.#writeTree(next, this.#generation + 1)
      this.#journalLimit = this.#journal.end + JOURNAL_BYTES
    } catch (error) {
      this.#journals?.[next]?.handle.truncate(0)
      this.#journalLimit *= 2
      if (!isQuota(error)) throw error
      console.warn('No room to shorten the list of files; it grows on.', error)
    }
  }

  #writeTree(index: number, generation: number): void {
    const journal = this.#journals?.[index]
    if (!journal) throw new FileError('EBADF', 'journal')
    const tree: Change[] = []
    for (const [path, node] of walk(this.#tree))
      tree.push(isFolder(node) ? ['folder', path, node.mode] : ['file', path, node.mode, node.name])
    const bytes = encode(`${JSON.stringify({ generation, tree })}\n`)
    journal.handle.truncate(0)
    this.#put(journal.handle, bytes, 0, true)
    journal.handle.flush()
    journal.end = bytes.length
    this.#active = index
    this.#generation = generation
  }

  /** Writes a change down, then makes it (F3). */
  #change(change: Change): void {
    const journal = this.#journal
    const bytes = encode(`${JSON.stringify(change)}\n`)
    try {
      this.#put(journal.handle, bytes, journal.end, true)
    } catch (error) {
      journal.handle.truncate(journal.end)
      throw error
    }
    journal.end += bytes.length
    this.#soon.add(journal.handle)
    const released = this.#apply(change)
    if (!released || isFolder(released)) return
    released.gone = true
    released.handle.truncate(0)
    this.#later.delete(released.handle)
    this.#released.push(released.name)
  }

  /** On the tree alone, also when it is read again. Returns what is no longer in it. */
  #apply(change: Change): Node | undefined {
    const [kind, path] = change
    const parts = partsOf(path)
    const name = parts.pop() ?? ''
    const parent = this.#folder(parts)
    const mtime = Date.now()
    if (kind === 'folder') parent.children.set(name, { mode: change[2], mtime, children: new Map() })
    else if (kind === 'file') {
      const handle = this.#handles.get(change[3])
      if (!handle) throw new Error(`A file of the database is missing: ${path}`)
      parent.children.set(name, {
        mode: change[2],
        mtime,
        name: change[3],
        handle,
        urgent: isUrgent(path),
        gone: false,
      })
    } else if (kind === 'gone') {
      const gone = parent.children.get(name)
      parent.children.delete(name)
      return gone
    } else if (kind === 'mode') {
      const node = parent.children.get(name)
      if (node) node.mode = change[2]
    } else {
      const node = parent.children.get(name)
      const to = partsOf(change[2])
      const newName = to.pop() ?? ''
      const target = this.#folder(to)
      if (!node || (parent === target && name === newName)) return undefined
      const replaced = target.children.get(newName)
      parent.children.delete(name)
      target.children.set(newName, node)
      if (!isFolder(node)) node.urgent = isUrgent(change[2])
      return replaced
    }
    return undefined
  }

  // Files

  async #take(folder: Folder, name: string): Promise<SyncHandle> {
    const file = await folder.getFileHandle(name, { create: true })
    // Chromium never settles this promise when the file's own handle is collected meanwhile, so it is kept.
    this.#files.add(file)
    const handle = await file.createSyncAccessHandle()
    this.#handles.set(name, handle)
    return handle
  }

  async #openAll(names: readonly string[]): Promise<void> {
    const data = this.#data
    if (!data) throw new FileError('EBADF', 'data')
    const taken = await Promise.allSettled(names.map((name) => this.#take(data, name)))
    const failed = taken.find((each) => each.status === 'rejected')
    if (failed) throw failed.reason
  }

  async #addStock(wanted: number): Promise<void> {
    const names: string[] = []
    for (let more = wanted - this.#stock.length; more > 0; more--) names.push((++this.#lastName).toString(36))
    try {
      await this.#openAll(names)
    } finally {
      this.#stock.push(...names.filter((name) => this.#handles.has(name)))
    }
  }

  async #restoreReserve(): Promise<void> {
    this.#reserveTriedAt = Date.now()
    if (!this.#home) return
    try {
      this.#reserve = await this.#take(this.#home, 'reserve')
      this.#fillReserve()
    } catch (error) {
      // Its file was let go of a moment ago.
      if (!isHeld(error)) throw error
    }
  }

  /** Given up again when there is no room for all of it. */
  #fillReserve(): void {
    try {
      this.#reserve?.truncate(RESERVE_BYTES)
    } catch (error) {
      if (!isQuota(error)) throw error
      this.#giveUpReserve()
    }
  }

  #giveUpReserve(): void {
    const reserve = this.#reserve
    this.#reserve = undefined
    this.#handles.delete('reserve')
    this.#reserveTriedAt = Date.now()
    reserve?.truncate(0)
    reserve?.close()
  }

  /** F4. */
  #put(handle: SyncHandle, bytes: Uint8Array, at: number, urgent: boolean): number {
    if (bytes.length === 0) return 0
    const grows = () => at + bytes.length > handle.getSize()
    if (!urgent && this.full && grows()) throw new FileError('ENOSPC', 'no room')
    const attempt = (): boolean => {
      try {
        return handle.write(bytes, { at }) === bytes.length
      } catch (error) {
        if (!isQuota(error)) throw error
        return false
      }
    }
    if (attempt()) return bytes.length
    this.#giveUpReserve()
    if (urgent && attempt()) return bytes.length
    if (urgent) this.#options.onLost?.()
    throw new FileError('ENOSPC', 'no room')
  }

  #flush(handles: Set<SyncHandle>): void {
    for (const handle of handles) handle.flush()
    handles.clear()
  }

  #node(path: string): Node {
    const parts = partsOf(path)
    const name = parts.pop()
    if (name === undefined) return this.#tree
    const node = this.#folder(parts).children.get(name)
    if (!node) throw new FileError('ENOENT', path)
    return node
  }

  #folder(parts: readonly string[]): FolderNode {
    let node: Node = this.#tree
    for (const part of parts) {
      const next: Node | undefined = node.children.get(part)
      if (!next) throw new FileError('ENOENT', parts.join('/'))
      if (!isFolder(next)) throw new FileError('ENOTDIR', parts.join('/'))
      node = next
    }
    return node
  }

  #file(path: string): FileNode {
    const node = this.#node(path)
    if (isFolder(node)) throw new FileError('EISDIR', path)
    return node
  }

  #opened(fd: number): { path: string; node: FileNode } {
    const opened = this.#open.get(fd)
    if (!opened || opened.node.gone) throw new FileError('EBADF', String(fd))
    return opened
  }

  #exists(path: string): boolean {
    const parts = partsOf(path)
    const name = parts.pop()
    return name === undefined || this.#folder(parts).children.has(name)
  }

  // What PGlite asks of a file system

  chmod(path: string, mode: number): void {
    if (this.#node(path).mode !== mode) this.#change(['mode', path, mode])
  }

  close(fd: number): void {
    this.#open.delete(fd)
  }

  fstat(fd: number): FsStats {
    return statsOf(this.#opened(fd).node)
  }

  lstat(path: string): FsStats {
    return statsOf(this.#node(path))
  }

  mkdir(path: string, options: { recursive?: boolean; mode?: number } = {}): void {
    const parts = partsOf(path)
    if (options.recursive && parts.length > 1) {
      const above = parts.slice(0, -1).join('/')
      if (!this.#exists(above)) this.mkdir(above, options)
    }
    if (this.#exists(path)) throw new FileError('EEXIST', path)
    this.#change(['folder', path, options.mode ?? FOLDER_MODE])
  }

  open(path: string): number {
    const node = this.#file(path)
    this.#open.set(++this.#lastFd, { path, node })
    return this.#lastFd
  }

  readdir(path: string): string[] {
    const node = this.#node(path)
    if (!isFolder(node)) throw new FileError('ENOTDIR', path)
    return [...node.children.keys()]
  }

  read(fd: number, buffer: Uint8Array, offset: number, length: number, position: number): number {
    return this.#opened(fd).node.handle.read(new Uint8Array(buffer.buffer, offset, length), { at: position })
  }

  rename(oldPath: string, newPath: string): void {
    this.#node(oldPath)
    this.#change(['move', oldPath, newPath])
  }

  rmdir(path: string): void {
    const node = this.#node(path)
    if (!isFolder(node)) throw new FileError('ENOTDIR', path)
    if (node.children.size > 0) throw new FileError('ENOTEMPTY', path)
    this.#change(['gone', path])
  }

  truncate(path: string, length = 0): void {
    const { handle, urgent } = this.#file(path)
    if (length > handle.getSize()) {
      this.#put(handle, new Uint8Array(1), length - 1, urgent)
    } else handle.truncate(length)
    this.#dirty(path, handle)
  }

  unlink(path: string): void {
    this.#file(path)
    this.#change(['gone', path])
  }

  utimes(path: string, _atime: number, mtime: number): void {
    this.#node(path).mtime = mtime
  }

  writeFile(path: string, data: string | Uint8Array, options: { mode?: number } = {}): void {
    if (!this.#exists(path)) {
      const name = this.#stock.pop() ?? this.#released.pop()
      if (name === undefined) throw new FileError('ENOSPC', path)
      try {
        this.#change(['file', path, options.mode ?? FILE_MODE, name])
      } catch (error) {
        this.#stock.push(name)
        throw error
      }
    }
    const node = this.#file(path)
    const bytes = typeof data === 'string' ? encode(data) : data
    if (bytes.length > 0) this.#write(path, node, bytes, 0)
  }

  /** `buffer` is the whole memory of Postgres, whatever its type says. */
  write(fd: number, buffer: Uint8Array, offset: number, length: number, position: number): number {
    const { path, node } = this.#opened(fd)
    return this.#write(path, node, new Uint8Array(buffer as unknown as ArrayBuffer, offset, length), position)
  }

  #write(path: string, node: FileNode, bytes: Uint8Array, at: number): number {
    if (isControl(path)) this.#flush(this.#later)
    const written = this.#put(node.handle, bytes, at, node.urgent || isControl(path))
    node.mtime = Date.now()
    this.#dirty(path, node.handle)
    return written
  }

  #dirty(path: string, handle: SyncHandle): void {
    if (isUrgent(path) || isControl(path)) this.#soon.add(handle)
    else this.#later.add(handle)
  }
}
