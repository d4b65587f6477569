/**
 * A replica in a folder, for Node: lock, guard against copies, safety copy of the outbox, and a new database when the old one does not open.
 *
 * Beside the folder `x` of the database stand `x.lock`, `x.guard`, `x.outbox.jsonl` (what is pending, once more) and, after a rebuild,
 * `x.broken-<time>` (the database that did not open) and `x.rescue.jsonl` (what still has to be written again).
 *
 * G1 One process at a time (lock.ts).
 * G2 A database that was copied or restored gets an identity of its own: the guard is a token and the inode of its file, which no copy keeps.
 * G3 Every mutation is in the safety copy when `write` returns; it is forced to disk within 100 ms. PGlite itself never forces anything.
 * G4 When the database does not open, or was made by another text of a migration, it is set aside, a new one is filled by the server, and what was pending is written again, in order.
 */
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import type { Migration } from '../schema/migrations.ts'
import type { Replica } from './contract.ts'
import { lockFile } from './lock.ts'
import { EditedMigrationError } from './migrate.ts'
import { importOutbox, type OpenOptions, openReplica, PGLITE_PARSERS, type SafetyCopy } from './replica.ts'

export { LockedError } from './lock.ts'

export interface NodeOptions extends Omit<OpenOptions, 'db' | 'guard' | 'safetyCopy'> {
  /** Of the database; made when it is not there. */
  readonly directory: string
  /** A packed data directory (`.tar.gz`) with the replica's schema in it, to start from: some ten times faster than a new cluster. */
  readonly seed?: string | undefined
}

/** The migrations of this checkout. */
export function readMigrations(folder: URL | string = new URL('../../migrations/', import.meta.url)): Migration[] {
  const path = folder instanceof URL ? folder.pathname : folder
  return readdirSync(path)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({ name, sql: readFileSync(join(path, name), 'utf8') }))
}

/** Opens or makes the replica in `directory`. Throws `LockedError` when another process has it. */
export async function openNodeReplica(options: NodeOptions): Promise<Replica> {
  const { directory, environment } = options
  mkdirSync(dirname(directory), { recursive: true })
  const unlock = lockFile(`${directory}.lock`)
  try {
    const guard = readGuard(`${directory}.guard`)
    const copyPath = `${directory}.outbox.jsonl`
    const rescuePath = `${directory}.rescue.jsonl`
    let copy = openSafetyCopy(copyPath, environment.log)
    const open = async (seed = options.seed): Promise<Replica> => {
      const { db, isSeeded } = await openDatabase(directory, seed)
      try {
        return await openReplica({ ...options, db, guard, safetyCopy: copy })
      } catch (error) {
        await db
          .close()
          .catch((closing) => environment.log('debug', `Closing after a failed opening: ${messageOf(closing)}`))
        if (!isSeeded || !(error instanceof EditedMigrationError)) throw error
        environment.log('info', 'The packed database to start from is of another version; a new one is made.')
        rmSync(directory, { recursive: true, force: true })
        return open('')
      }
    }
    let replica: Replica
    try {
      replica = await open()
    } catch (error) {
      if (!isDamage(error)) throw error
      const aside = `${directory}.broken-${new Date(environment.now()).toISOString().replace(/[:.]/g, '-')}`
      environment.log(
        'error',
        `The database in ${directory} does not open (${messageOf(error)}). It is kept as ${aside} and built anew.`,
      )
      copy.close()
      if (existsSync(directory)) renameSync(directory, aside)
      if (existsSync(copyPath)) {
        appendFile(rescuePath, readFileSync(copyPath, 'utf8'))
        rmSync(copyPath)
      }
      copy = openSafetyCopy(copyPath, environment.log)
      replica = await open()
    }
    if (existsSync(rescuePath)) void bringBack(replica, rescuePath, environment.log)
    const close = replica.close.bind(replica)
    return Object.assign(replica, {
      close: async () => {
        await close()
        copy.close()
        unlock()
      },
    })
  } catch (error) {
    unlock()
    throw error
  }
}

const OPEN_LIMIT_MS = 120_000

/** A replica is small and read by one process: the default of 128 MB would be memory that nobody uses. */
const START_PARAMS = [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB']

/** PGlite may also hang on a damaged directory. */
async function openDatabase(dataDir: string, seed = ''): Promise<{ db: PGlite; isSeeded: boolean }> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new DamagedError(`not open after ${OPEN_LIMIT_MS / 1000} s`)), OPEN_LIMIT_MS)
  })
  const create = (loadDataDir?: Blob): Promise<PGlite> =>
    PGlite.create({
      dataDir,
      parsers: { ...PGLITE_PARSERS },
      startParams: START_PARAMS,
      ...(loadDataDir ? { loadDataDir } : {}),
    })
  const opening = async (): Promise<{ db: PGlite; isSeeded: boolean }> => {
    // Unpacking that was cut short leaves this mark; nothing can have been written to such a database.
    const mark = `${dataDir}.unpacking`
    if (existsSync(mark)) rmSync(dataDir, { recursive: true, force: true })
    if (seed === '' || existsSync(dataDir) || !existsSync(seed)) return { db: await create(), isSeeded: false }
    writeFileSync(mark, '')
    try {
      return { db: await create(new Blob([readFileSync(seed)])), isSeeded: true }
    } catch {
      // Made by another version of PGlite: no reason to fail, a new cluster only takes longer.
      rmSync(dataDir, { recursive: true, force: true })
      return { db: await create(), isSeeded: false }
    } finally {
      rmSync(mark, { force: true })
    }
  }
  try {
    return await Promise.race([
      opening().catch((error: unknown) => {
        throw new DamagedError(messageOf(error))
      }),
      late,
    ])
  } finally {
    clearTimeout(timer)
  }
}

class DamagedError extends Error {
  override name = 'DamagedError'
}

/** SQLSTATE XX…: Postgres found its own files damaged; 58…: it could not read them. WebAssembly traps come as RuntimeError. */
const isDamage = (error: unknown): boolean =>
  error instanceof DamagedError ||
  error instanceof EditedMigrationError ||
  (error instanceof Error && error.name === 'RuntimeError') ||
  (error instanceof Error && 'code' in error && /^(XX|58)/.test(String(error.code)))

/** Writes rescued mutations again, after the first load, because an update needs its row. What fails stays in the file. */
async function bringBack(replica: Replica, path: string, log: OpenOptions['environment']['log']): Promise<void> {
  try {
    await loaded(replica)
    const lines = readFileSync(path, 'utf8')
    const { imported, failed } = await importOutbox(replica, lines)
    const kept = failed.flatMap(({ mutationId }) => lines.split('\n').filter((line) => line.includes(mutationId)))
    if (kept.length > 0) renameAfterWrite(`${path}.failed`, kept.join('\n'))
    rmSync(path)
    log(
      failed.length > 0 ? 'error' : 'info',
      `${imported} changes of the former database were made again, ${failed.length} could not be.`,
      {
        failed: failed.map(({ reason }) => reason),
      },
    )
  } catch (error) {
    log(
      'error',
      `Changes of the former database wait in ${path}; they are tried again at the next start: ${messageOf(error)}`,
    )
  }
}

const loaded = (replica: Replica): Promise<void> =>
  new Promise((resolve) => {
    if (replica.status().initial.done) return resolve()
    const stop = replica.onStatus(({ initial }) => {
      if (!initial.done) return
      stop()
      resolve()
    })
  })

/** G2 */
function readGuard(path: string): string {
  if (!existsSync(path)) writeFileSync(path, `${randomUUID()}\n`, { mode: 0o600 })
  return `${readFileSync(path, 'utf8').trim()}:${statSync(path).ino}`
}

const SYNC_DELAY_MS = 100

/** G3 */
function openSafetyCopy(path: string, log: OpenOptions['environment']['log']): SafetyCopy & { close(): void } {
  let file = openSync(path, 'a', 0o600)
  let size = statSync(path).size
  let timer: ReturnType<typeof setTimeout> | undefined
  let closed = false
  const forceSoon = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined
      if (closed) return
      fdatasync(file, (error) => {
        if (error && !closed) log('warn', `The safety copy of the outbox could not be forced to disk: ${error.message}`)
      })
    }, SYNC_DELAY_MS)
    timer.unref()
  }
  return {
    written(line) {
      if (closed) return
      size += writeSync(file, `${line}\n`)
      forceSoon()
    },
    drained(lines) {
      if (closed || (size === 0 && lines === '')) return
      if (lines === '') {
        ftruncateSync(file, 0)
        size = 0
        return
      }
      renameAfterWrite(path, `${lines}\n`)
      closeSync(file)
      file = openSync(path, 'a', 0o600)
      size = statSync(path).size
    },
    close() {
      if (closed) return
      closed = true
      clearTimeout(timer)
      fsyncSync(file)
      closeSync(file)
    },
  }
}

function renameAfterWrite(path: string, text: string): void {
  const draft = `${path}.${randomUUID()}`
  writeFileSync(draft, text, { mode: 0o600, flush: true })
  renameSync(draft, path)
}

function appendFile(path: string, text: string): void {
  writeFileSync(path, text, { flag: 'a', mode: 0o600, flush: true })
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
