/**
 * The leader's database: opened or installed, made a replica, watched, and replaced when it can no longer be read.
 *
 * E1 A write is carried out once, however often it is asked for with the same id: the id is recorded in its transaction.
 * E2 What waits to be sent has a copy outside the database. When the database is lost, its successor gets it back: after
 *    the first load, because a change to a row needs the row. What cannot be made again stays with its reason until a
 *    person gives it up.
 * E3 A database that cannot be opened, or whose opening did not end three times, is replaced. Its file handles are freed
 *    by ending this worker, so replacing is done by the next one.
 *    What passes by itself (files still held, no room on the disk) is no reason: it is said, and nothing is replaced or chosen anew.
 * E4 A database whose files were copied or restored without this device's memory of it (device.ts), or the other way round, takes a new identity: two
 *    that go on as one would number their changes alike. (A copy of the whole profile is told apart by the server, which knows mutations by their ids.)
 */
import type { PGlite } from '@electric-sql/pglite'
import type { TableName } from '@hq/shared/schema/tables.ts'
import type { Replica, SqlValue, Statement, SyncStatus, WriteOptions, Written } from '@hq/shared/sync/contract.ts'
import type { Imported } from '@hq/shared/sync/outbox.ts'
import { DiskFullError, exportOutbox, importOutbox, openReplica } from '@hq/shared/sync/replica.ts'
import type { Multiplexer } from '@hq/shared/sync/transport.ts'
import type { Engine, EngineEvents } from './coordinator.ts'
import { databaseName, exists, isInstalled, remove } from './database-files.ts'
import { type Device, openDevice } from './device.ts'
import { newId } from './id.ts'
import type {
  Changed,
  Corrections,
  DatabaseIdentity,
  ImportedChanges,
  RescuedChanges,
  StorageKind,
} from './messages.ts'
import { isQuota } from './opfs-tree.ts'
import { mutationIdOf, OutboxCopies } from './outbox-copies.ts'
import { environmentFor, MIGRATIONS, openTransport } from './platform.ts'
import {
  chooseStorage,
  install,
  NO_ROOM,
  type Opened,
  openInstalled,
  StorageUnavailable,
  UNREADABLE,
} from './storage.ts'
import { CLIENT_SCHEMA_SQL, FIND_WRITE, PRUNE_WRITES, RECORD_WRITE } from './writes.ts'

const MAX_ATTEMPTS = 3
const CARE_EVERY_MS = 60_000
/** PGlite has no checkpointer; without checkpoints the log grows, and the next start replays all of it. */
const LOG_BYTES = 8 * 1024 * 1024
const LOG_SINCE_CHECKPOINT =
  'select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::float8 as bytes from pg_control_checkpoint()'
/** A result larger than this is not recorded: whoever asks again gets no rows. */
const MAX_RECORDED = 100_000

const REBUILT =
  'The database on this device could not be read, so it was built anew. Changes that had not been sent were kept and are sent again.'

/** Opens the database of a person and starts to sync it. Rejects when that is impossible; the message is for people. */
export async function openEngine(identity: DatabaseIdentity, events: EngineEvents): Promise<Engine> {
  events.phase({ name: 'opening' })
  const device = await openDevice()
  const name = databaseName(identity)
  if (!device.kept && (await isLeftBehind(name))) throw new StorageUnavailable(UNREADABLE)
  await adoptFormer(device, name, identity)
  const record = await device.database(name)
  const broken = record !== undefined && (record.broken || record.attempts >= MAX_ATTEMPTS)
  let notice: string | null = null
  const usable = record !== undefined && !broken && (await whereItIs(device, name))
  // Lost may also mean that the browser has thrown its files away: what waited in them must not go with them (E2).
  const copies = usable ? '' : await device.copies(name)
  if (broken || copies !== '') {
    console.warn('The local database could not be opened; it is replaced.', { attempts: record?.attempts })
    await rescue(device, name, copies)
    notice = REBUILT
  }

  if (usable) {
    const { storage } = record
    const guard = record.guard ?? newId()
    await device.remember({ ...record, guard, attempts: record.attempts + 1 })
    let opened: Opened | undefined
    try {
      opened = await openInstalled(name, storage)
      const engine = await BrowserEngine.start({ ...opened, storage, device, name, identity, guard, events })
      await device.remember({ ...record, guard, attempts: 0 })
      events.phase({ name: 'open', storage, notice })
      return engine
    } catch (error) {
      if (error instanceof StorageUnavailable || error instanceof DiskFullError || opened?.full()) {
        // It says nothing about the database.
        await device.remember({ ...record, guard })
        throw error instanceof StorageUnavailable ? error : new StorageUnavailable(NO_ROOM, { cause: error })
      }
      await giveUp(device, name, opened?.db, error)
      events.restart(`The local database could not be opened: ${messageOf(error)}`)
      return new Promise(() => undefined)
    }
  }
  events.phase({ name: 'installing' })
  const storage = await chooseStorage(device.kept)
  const guard = newId()
  const opened = await install(device, name, storage, { ...identity, guard })
  const engine = await BrowserEngine.start({ ...opened, storage, device, name, identity, guard, events })
  events.phase({ name: 'open', storage, notice })
  return engine
}

/** Whether its files are there; they cannot be asked for: that passes, and says nothing about them (E3). */
async function whereItIs(device: Device, name: string): Promise<boolean> {
  try {
    return await isInstalled(device, name)
  } catch (error) {
    throw new StorageUnavailable(UNREADABLE, { cause: error })
  }
}

/** Its files are there, though this browser does not say so any more. */
async function isLeftBehind(name: string): Promise<boolean> {
  try {
    return await exists(name, 'opfs')
  } catch (error) {
    console.info('No private file system here.', error)
    return false
  }
}

/** Saves what can be saved of a database that does not open properly and marks it for replacement (E3). */
async function giveUp(device: Device, name: string, db: PGlite | undefined, cause: unknown): Promise<void> {
  console.error('The local database does not open.', cause)
  const exported =
    db &&
    (await exportOutbox(db).catch((error: unknown) => {
      console.warn('What waits in it cannot be read either; the copies of it are used.', error)
      return undefined
    }))
  if (exported !== undefined) {
    await rescue(device, name, exported)
    await device.dropCopies(name)
  }
  const record = await device.database(name)
  if (record) await device.remember({ ...record, broken: true })
}

/** Sets changes aside for the database that comes next (E2). */
async function rescue(device: Device, name: string, lines: string): Promise<void> {
  if (lines.trim() === '') return
  const former = await device.rescued(name)
  const all = [former?.lines, lines].filter(Boolean).join('\n')
  await device.saveRescued(name, { lines: all, failed: former?.failed ?? [] })
}

/** Takes over from databases of an older epoch of the same person, then deletes them. */
async function adoptFormer(device: Device, name: string, { tenantId, personId }: DatabaseIdentity): Promise<void> {
  for (const former of await device.databases()) {
    if (former.name === name || former.tenantId !== tenantId || former.personId !== personId) continue
    let lines: string
    try {
      const { db } = await openInstalled(former.name, former.storage)
      lines = await exportOutbox(db)
      await db.close()
    } catch (error) {
      if (error instanceof StorageUnavailable) throw error
      console.warn('The former database no longer opens; the copy of its waiting changes is used.', error)
      lines = await device.copies(former.name)
    }
    await rescue(device, name, lines)
    await remove(device, former.name, former.storage)
    await device.dropCopies(former.name)
  }
}

/** What the server last said about this device. */
interface Access {
  revoked: boolean
  changed?: () => void
}

interface Parts extends Opened {
  readonly storage: StorageKind
  readonly device: Device
  readonly name: string
  readonly identity: DatabaseIdentity
  readonly guard: string
  readonly events: EngineEvents
}

class BrowserEngine implements Engine {
  readonly #parts: Parts
  readonly #replica: Replica
  readonly #transport: Multiplexer
  readonly #copies: OutboxCopies
  readonly #care: ReturnType<typeof setInterval>
  readonly #changed = new Set<TableName | 'sync'>()
  #announcing = false
  #rescuedWaiting = 0
  #bringingBack = false
  #loaded = false
  #closing = false
  readonly #access: Access

  static async start(parts: Parts): Promise<BrowserEngine> {
    const { db, device, name, identity, guard } = parts
    await db.exec(CLIENT_SCHEMA_SQL)
    const transport = openTransport()
    const copies = new OutboxCopies(device, name, db)
    const access: Access = { revoked: false }
    try {
      const replica = await openReplica({
        db,
        migrations: MIGRATIONS,
        identity: { kind: 'browser', tenantId: identity.tenantId, ownerId: identity.personId },
        serverUrl: self.location.origin,
        environment: environmentFor(transport, (revoked) => {
          access.revoked = revoked
          access.changed?.()
        }),
        transport,
        guard,
        safetyCopy: copies,
      })
      const engine = new BrowserEngine(parts, replica, transport, copies, access)
      await engine.#begin()
      void parts.lost.then(() => parts.events.restart('There is no space left on this device.'))
      return engine
    } catch (error) {
      transport.close()
      throw error
    }
  }

  private constructor(parts: Parts, replica: Replica, transport: Multiplexer, copies: OutboxCopies, access: Access) {
    this.#access = access
    let said = access.revoked
    access.changed = () => {
      if (said === access.revoked || this.#closing) return
      said = access.revoked
      parts.events.status(this.status())
    }
    this.#parts = parts
    this.#replica = replica
    this.#transport = transport
    this.#copies = copies
    this.#care = setInterval(() => void this.#takeCare(), CARE_EVERY_MS)
  }

  async #begin(): Promise<void> {
    const { device, name, events } = this.#parts
    this.#rescuedWaiting = linesOf((await device.rescued(name))?.lines).length
    this.#replica.onChange((changes) => this.#announce([...changes.keys(), 'sync']))
    let last: SyncStatus | undefined
    this.#replica.onStatus((status) => {
      if (last?.pending !== status.pending || last.rejected !== status.rejected) this.#announce(['sync'])
      last = status
      events.status(this.status())
      if (!status.initial.done) return
      void this.#bringBack()
      // The first load is by far the most that is ever written at once.
      if (!this.#loaded) void this.#takeCare()
      this.#loaded = true
    })
    await this.#replica.query(PRUNE_WRITES)
    if (this.#replica.status().initial.done) void this.#bringBack()
  }

  query(sql: string, params: readonly SqlValue[]): Promise<unknown[]> {
    return this.#guard(() => this.#replica.query(sql, params))
  }

  async write(id: string, statements: readonly Statement[], options: WriteOptions): Promise<Written<unknown>> {
    await this.#needRoom()
    return this.#guard(() =>
      this.#replica.write(async (tx) => {
        const [done] = await tx.query<{ result: string }>(FIND_WRITE, [id])
        if (done) return JSON.parse(done.result) as unknown[][]
        const results: unknown[][] = []
        for (const { sql, params } of statements) results.push(await tx.query(sql, params))
        const text = JSON.stringify(results)
        await tx.query(RECORD_WRITE, [id, text.length > MAX_RECORDED ? '[]' : text])
        return results
      }, options),
    )
  }

  /** With no room left, refused before it is begun. */
  async #needRoom(): Promise<void> {
    const { full, events } = this.#parts
    if (!full()) return
    // The end of every statement looks whether there is room again.
    await this.#guard(() => this.#replica.query('select 1'))
    events.status(this.status())
    if (full()) throw new DiskFullError(undefined)
  }

  outbox() {
    return this.#guard(() => this.#replica.outbox())
  }

  async retry(seq: number, set: Corrections | undefined): Promise<void> {
    await this.#guard(() => this.#replica.retry(seq, set))
    this.#announce(['sync'])
  }

  async discard(seq: number): Promise<void> {
    await this.#guard(() => this.#replica.discard(seq))
    this.#announce(['sync'])
  }

  /** Answers first; the worker ends a moment later and its successor makes the new database. */
  async rebuild(): Promise<void> {
    const { device, name, db, events } = this.#parts
    const lines = await exportOutbox(db)
    await rescue(device, name, lines)
    await device.dropCopies(name)
    const record = await device.database(name)
    if (record) await device.remember({ ...record, broken: true })
    setTimeout(() => events.restart('The database is built anew.'), 50)
  }

  async rescued(): Promise<RescuedChanges> {
    const kept = await this.#parts.device.rescued(this.#parts.name)
    return { waiting: linesOf(kept?.lines).length, failed: kept?.failed ?? [] }
  }

  async forgetRescued(): Promise<void> {
    const { device, name } = this.#parts
    const kept = await device.rescued(name)
    await device.saveRescued(name, kept?.lines ? { lines: kept.lines, failed: [] } : undefined)
    this.#announce(['sync'])
  }

  async importChanges(lines: readonly string[]): Promise<ImportedChanges> {
    const held = await this.#replica.query<{ mutation_id: string }>('select mutation_id from sync.outbox')
    const here = new Set(held.map((row) => row.mutation_id))
    const fresh = lines.filter((line) => !here.has(mutationIdOf(line)))
    const { imported, failed } = await this.#guard(() => importOutbox(this.#replica, fresh.join('\n')))
    this.#announce(['sync'])
    return { imported, known: lines.length - fresh.length, failed: withLines(failed, fresh) }
  }

  status(): SyncStatus {
    const said = this.#replica.status()
    const parked = said.parked ?? (this.#access.revoked ? 'revoked' : this.#parts.full() ? 'disk_full' : null)
    const status = parked === said.parked ? said : { ...said, parked }
    return this.#rescuedWaiting === 0 ? status : { ...status, pending: status.pending + this.#rescuedWaiting }
  }

  wake(): void {
    this.#transport.wake()
  }

  async close(): Promise<void> {
    this.#closing = true
    clearInterval(this.#care)
    this.#copies.stop()
    await this.#replica.close()
    this.#transport.close()
  }

  /** Makes the rescued changes again (E2). */
  async #bringBack(): Promise<void> {
    if (this.#bringingBack || this.#rescuedWaiting === 0) return
    this.#bringingBack = true
    const { device, name, events } = this.#parts
    try {
      const kept = await device.rescued(name)
      const lines = linesOf(kept?.lines)
      const { failed } = await importOutbox(this.#replica, lines.join('\n'))
      const all = [...(kept?.failed ?? []), ...withLines(failed, lines)]
      await device.saveRescued(name, all.length > 0 ? { lines: '', failed: all } : undefined)
      this.#rescuedWaiting = 0
    } catch (error) {
      console.error('Rescued changes could not be brought back; it is tried again at the next start.', error)
    }
    events.status(this.status())
    this.#announce(['sync'])
  }

  /** Forgets old records of writes, and keeps the log short. */
  async #takeCare(): Promise<void> {
    try {
      await this.#replica.query(PRUNE_WRITES)
      const [log] = await this.#replica.query<{ bytes: number }>(LOG_SINCE_CHECKPOINT)
      if (log && log.bytes > LOG_BYTES) await this.#replica.query('checkpoint')
    } catch (error) {
      if (!this.#closing) console.warn('The database could not be tidied up; it works, and it is tried again.', error)
    }
  }

  /** Tells what changed, once for all changes of one turn. */
  #announce(tables: readonly (TableName | 'sync')[]): void {
    for (const table of tables) this.#changed.add(table)
    if (this.#announcing) return
    this.#announcing = true
    setTimeout(() => {
      this.#announcing = false
      const changed: Changed = [...this.#changed]
      this.#changed.clear()
      this.#parts.events.changed(changed)
    }, 0)
  }

  /** An engine that crashed or a database that is corrupt does not heal by itself: start over, or replace it. */
  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof WebAssembly.RuntimeError) {
        this.#parts.events.restart(`The database engine crashed: ${error.message}`)
      } else if (this.#parts.storage === 'idb' && isQuota(error)) {
        // It is in memory and not in the browser's storage: begun again from what is stored, so that what was refused is not there.
        this.#parts.events.restart('There is no space left on this device.')
      } else if (this.#parts.full()) {
        this.#parts.events.status(this.status())
      } else if (isCorruption(error)) {
        console.error('The local database is corrupt; it is replaced.', error)
        await this.rebuild().catch(() => giveUp(this.#parts.device, this.#parts.name, undefined, error))
        this.#parts.events.restart('The local database is corrupt.')
      }
      throw error
    }
  }
}

/** data_corrupted, index_corrupted. */
const isCorruption = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'XX001' || error.code === 'XX002')

const linesOf = (text: string | undefined): string[] => (text ?? '').split('\n').filter((line) => line.trim() !== '')

/** The changes that could not be made again, whole, for a person to keep. */
const withLines = (failed: Imported['failed'], lines: readonly string[]): ImportedChanges['failed'] =>
  failed.map(({ mutationId, reason }) => ({
    line: lines.find((line) => line.includes(mutationId)) ?? mutationId,
    reason,
  }))

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
