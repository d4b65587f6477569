/**
 * A replica: opens the database, wires capture, pusher, shapes and settling together, and offers `Replica` (contract.ts).
 *
 * Runs unchanged in a browser's worker and in Node: the adapter opens PGlite (with `PGLITE_PARSERS`) and supplies clock, ids and `fetch`.
 *
 * P1 Reads and writes touch the local database only.
 * P2 When `write` returns, the change and its outbox row are in one committed transaction and flushed to the file system.
 * L1 Listeners hear of every committed change exactly once, with exactly the rows that changed.
 */
import type { PGlite } from '@electric-sql/pglite'
import type { Migration } from '../schema/migrations.ts'
import { tables as schemaTables, type TableName, tableNames } from '../schema/tables.ts'
import { createApplier, toChanges } from './apply.ts'
import type {
  Changes,
  Replica,
  ReplicaEnvironment,
  ReplicaIdentity,
  SqlValue,
  Statement,
  SyncStatus,
  Tx,
  WriteOptions,
  Written,
} from './contract.ts'
import { foreignAck } from './core/identity.ts'
import { acksBeginAnew } from './core/overlay.ts'
import type { BatchAck } from './core/pull.ts'
import { createHousekeeping } from './housekeeping.ts'
import { establishIdentity, loadedTables, readCounts } from './identity.ts'
import { createLink, type TransportSignals } from './link.ts'
import { migrateReplica } from './migrate.ts'
import { exportOutbox, FORGET, readOutbox, rejectedEntry, rewrite } from './outbox.ts'
import { createPusher, type Pusher } from './push.ts'
import { createSettler } from './settler.ts'
import { readShape, type ShapeReader } from './shape.ts'

export { exportOutbox, importOutbox } from './outbox.ts'
export { PGLITE_PARSERS } from './values.ts'

export interface OpenOptions {
  /** Open, and from now on the replica's own: `close` closes it. */
  readonly db: PGlite
  readonly migrations: readonly Migration[]
  readonly identity: { readonly kind: 'browser' | 'gateway'; readonly ownerId: string; readonly tenantId: string }
  /** Such as `http://127.0.0.1:4400`; paths below `/v1` are added. */
  readonly serverUrl: string
  readonly environment: ReplicaEnvironment
  /** Of the transport behind `environment.fetch`, when it has a connection of its own: the multiplexer itself. */
  readonly transport?: TransportSignals
  /**
   * Changes come by server-sent events, one response per table, instead of by long polls. Only with a `fetch` that hands on a body as it comes: plain HTTP,
   * not the multiplexer; in a browser only over HTTP/2, because each table holds a connection.
   */
  readonly liveSse?: boolean
  /** Default: all that this kind of replica sees. The two tables of acknowledgement are always among them. */
  readonly tables?: readonly TableName[]
  /**
   * A token kept outside the database. When the database remembers another one it is a copy, and gets a new identity. Undefined: not checked.
   */
  readonly guard?: string
  /** A copy of the outbox outside the database, for the case that the database is lost. */
  readonly safetyCopy?: SafetyCopy
}

const COUNT_DELAY_MS = 250

export interface SafetyCopy {
  /** One more mutation, as a line for `importOutbox`; before `write` returns. */
  written(line: string): void
  /** Nothing is pending: from now on the copy is these lines (refused mutations), usually none. */
  drained(lines: string): void
}

/** Nothing of the change was kept; what was saved before is safe. */
export class DiskFullError extends Error {
  override name = 'DiskFullError'
  constructor(cause: unknown) {
    super('There is no space left on this device, so the change was not saved. Free some space and try again.', {
      cause,
    })
  }
}

/** Postgres's own code, or that of the file system below it. */
const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === '53100' || error.code === 'ENOSPC')

/** Without these no mutation would ever settle. */
const ALWAYS: readonly TableName[] = ['client_progress', 'mutation_results']

export const visibleTables = (kind: 'browser' | 'gateway'): TableName[] =>
  tableNames.filter((name) => schemaTables[name].visibility[kind] !== 'none')

export async function openReplica(options: OpenOptions): Promise<Replica> {
  const { db, environment, safetyCopy } = options
  const { log } = environment
  const tables = [...new Set([...(options.tables ?? visibleTables(options.identity.kind)), ...ALWAYS])]
  const schemaVersion = await migrateReplica(db, options.migrations)
  let replicaId = await establishIdentity(options)

  const changeListeners = new Set<(changes: Changes) => void>()
  const statusListeners = new Set<(status: SyncStatus) => void>()
  const link = createLink({
    serverUrl: options.serverUrl,
    environment,
    replicaId: () => replicaId,
    signals: options.transport,
  })
  const housekeeping = createHousekeeping(db, log)
  const counts = await readCounts(db)
  const loaded = await loadedTables(db, tables)
  let rowsLoaded = 0
  let closed = false
  let renewing: Promise<void> | undefined
  let countTimer: ReturnType<typeof setTimeout> | undefined
  let statusQueued = false

  const notify = (changes: Changes): void => {
    if (changes.size === 0) return
    for (const listener of [...changeListeners]) guarded(() => listener(changes))
  }
  const guarded = (call: () => void): void => {
    try {
      call()
    } catch (error) {
      log('error', `A listener failed: ${messageOf(error)}`)
    }
  }
  const status = (): SyncStatus => ({
    connection: link.connection(),
    pending: counts.pending,
    oldestPendingAt: counts.oldestPendingAt,
    rejected: counts.rejected,
    parked: pusher?.parked() ?? null,
    initial: { done: loaded.size === tables.length, rows: rowsLoaded, tablesDone: loaded.size, tables: tables.length },
    lastHeardAt: link.lastHeardAt(),
    stalledSince: link.stalledSince(),
  })
  const statusChanged = (): void => {
    if (statusQueued || closed) return
    statusQueued = true
    queueMicrotask(() => {
      statusQueued = false
      const now = status()
      for (const listener of [...statusListeners]) guarded(() => listener(now))
    })
  }

  let pusher: Pusher | undefined
  const readers = new Map<TableName, ShapeReader>()
  const settler = await createSettler({
    db,
    replicaId: () => replicaId,
    tables,
    log,
    refresh: (table) => readers.get(table)?.refresh(),
    onSettled: (changes, settled, rejected) => {
      counts.pending -= settled + rejected
      counts.rejected += rejected
      if (counts.pending === 0) counts.oldestPendingAt = null
      notify(changes)
      housekeeping.settled(settled + rejected)
      statusChanged()
      refreshCountsSoon()
    },
  })
  const refreshCounts = async (): Promise<void> => {
    try {
      Object.assign(counts, await readCounts(db))
      if (counts.pending === 0 && safetyCopy) {
        // Within the transaction, so that no write comes between reading and replacing.
        await db.transaction(async (tx) => safetyCopy.drained(await exportOutbox(tx)))
      }
    } catch (error) {
      if (!closed) log('error', `The outbox could not be counted: ${messageOf(error)}`)
    }
    statusChanged()
  }
  /** Counting is for drift (plain SQL) and for the copy; a busy outbox must not pay for it at each settling. */
  const refreshCountsSoon = (): void => {
    countTimer ??= setTimeout(() => {
      countTimer = undefined
      if (!closed) void refreshCounts()
    }, COUNT_DELAY_MS)
  }
  const applier = createApplier(db, (changes, batches) => {
    notify(changes)
    for (const { table, upserts, deletes, ack, place } of batches) {
      housekeeping.changed(table, upserts.length + deletes.length)
      if (acksBeginAnew({ table, place })) {
        settler.forgot()
        pusher?.poke()
      }
      if (ack) void acknowledged(ack, replicaId)
    }
  })
  /** I3 */
  const acknowledged = async (ack: BatchAck, of: string): Promise<void> => {
    try {
      const { rows } = await db.query<{ next: string; mutation: string | null }>(
        'select next_seq::text as next, (select mutation_id from sync.outbox where seq = $1) as mutation from sync.replica where replica_id = $2',
        [ack.seq, of],
      )
      const known = rows[0]
      // An acknowledgement of a former identity.
      if (!known) return
      const foreign = foreignAck(ack, { next: Number(known.next), mutationId: known.mutation ?? undefined })
      if (foreign) await becomeNew(foreign)
      else settler.acknowledged(ack)
    } catch (error) {
      if (!closed) log('error', `An acknowledgement could not be taken in: ${messageOf(error)}`)
    }
  }

  /** The change is in the database already; that its second copy could not be made is a warning, not a refusal. */
  const copySafely = (copy: string): void => {
    try {
      safetyCopy?.written(copy)
      copyFailed = false
    } catch (error) {
      if (!copyFailed) log('error', `The safety copy of what waits cannot be written: ${messageOf(error)}`)
      copyFailed = true
    }
  }
  let copyFailed = false

  const recorded = (seq: number, changes: Changes, copy: string | null): void => {
    settler.wrote(seq, [...changes.keys()])
    counts.pending++
    counts.oldestPendingAt ??= new Date(environment.now()).toISOString()
    if (copy !== null) copySafely(copy)
    pusher?.poke()
    statusChanged()
  }

  const inTransaction: typeof db.transaction = async (work) => {
    try {
      return await db.transaction(work)
    } catch (error) {
      throw isDiskFull(error) ? new DiskFullError(error) : error
    }
  }

  async function write<T>(work: (tx: Tx) => Promise<T>, { actor, runId }: WriteOptions = {}): Promise<Written<T>> {
    let finished: Finished | undefined
    const result = await inTransaction(async (transaction) => {
      const tx: Tx = {
        query: async <R>(sql: string, params?: readonly SqlValue[]) =>
          (await transaction.query<R>(sql, params ? [...params] : undefined)).rows,
      }
      const value = await work(tx)
      const { rows } = await transaction.query<Finished>(
        `select mutation::text, changes, ${safetyCopy ? 'sync.copy_of(mutation)' : 'null'} as copy from sync.finish($1, $2, $3, $4)`,
        [environment.now(), actor?.type ?? null, actor?.id ?? null, runId ?? null],
      )
      finished = rows[0]
      return value
    })
    // PGlite flushes after lone statements, not after a transaction.
    await db.syncToFs()
    const changes = toChanges(finished?.changes)
    const seq = finished?.mutation ? Number(finished.mutation) : undefined
    if (seq !== undefined) recorded(seq, changes, finished?.copy ?? null)
    notify(changes)
    return { result, seq }
  }

  const stopListening = await db.listen('sync_written', (payload) => {
    // A write by plain SQL: its rows are read once it is committed.
    void writtenElsewhere(payload).catch((error) =>
      log('error', `A change could not be announced: ${messageOf(error)}`),
    )
  })
  const writtenElsewhere = async (payload: string): Promise<void> => {
    if (payload === '') return
    const seq = Number(payload)
    const { rows } = await db.query<Omit<Finished, 'mutation'>>(
      `select jsonb_object_agg(table_name, ids) as changes, ${safetyCopy ? 'sync.copy_of($1)' : 'null'} as copy
       from (select table_name, jsonb_agg(row_id) as ids from sync.patches where seq = $1 group by 1) t`,
      [seq],
    )
    const changes = toChanges(rows[0]?.changes)
    if (changes.size === 0) return
    recorded(seq, changes, rows[0]?.copy ?? null)
    notify(changes)
  }

  const startReaders = (): void => {
    for (const table of tables) {
      const reader = readShape({
        db,
        table,
        serverUrl: options.serverUrl,
        replicaId: () => replicaId,
        link,
        applier,
        log,
        liveSse: options.liveSse,
        onPosition: (name, position) => settler.reached(name, position),
        onStartedOver: (name) => settler.startedOver(name),
        onProgress: (_name, rows) => {
          rowsLoaded += rows
          if (loaded.size < tables.length) statusChanged()
        },
        onLoaded: (name) => {
          if (loaded.has(name)) return
          loaded.add(name)
          statusChanged()
        },
      })
      readers.set(table, reader)
    }
  }
  const stopReaders = async (): Promise<void> => {
    await Promise.all([...readers.values()].map((reader) => reader.stop()))
    readers.clear()
    await applier.idle()
  }

  /** This database, or the server's, is a copy: go on as somebody new (see push.ts, W3). */
  const becomeNew = (reason: string): Promise<void> => {
    renewing ??= takeNewIdentity(reason).finally(() => {
      renewing = undefined
    })
    return renewing
  }
  const takeNewIdentity = async (reason: string): Promise<void> => {
    log('warn', `This replica takes a new identity: ${reason}`)
    await stopReaders()
    await settler.idle()
    const next = environment.randomUuid()
    await db.query('select sync.remint($1)', [next])
    replicaId = next
    await settler.reload()
    if (!closed) startReaders()
    await refreshCounts()
    pusher?.renewed(next)
  }

  pusher = createPusher({
    db,
    link,
    replicaId: () => replicaId,
    schemaVersion,
    log,
    onAccepted: (applied) => settler.applied(applied),
    onRealigned: () => settler.forgot(),
    onParked: () => statusChanged(),
    onCloned: becomeNew,
  })
  link.onChange((cameOnline) => {
    if (cameOnline) pusher?.poke()
    statusChanged()
  })
  startReaders()

  return {
    get identity(): ReplicaIdentity {
      return { replicaId, ...options.identity }
    },
    query: async <T>(sql: string, params?: readonly SqlValue[]) =>
      (await db.query<T>(sql, params ? [...params] : undefined)).rows,
    write,
    writeAll: (statements: readonly Statement[], writeOptions) =>
      write(async (tx) => {
        const results: Record<string, unknown>[][] = []
        for (const { sql, params } of statements) results.push(await tx.query(sql, params))
        return results
      }, writeOptions),
    onChange(listener) {
      changeListeners.add(listener)
      return () => changeListeners.delete(listener)
    },
    status,
    onStatus(listener) {
      statusListeners.add(listener)
      return () => statusListeners.delete(listener)
    },
    outbox: () => readOutbox(db),
    async retry(seq, set = {}) {
      const entry = await rejectedEntry(db, seq)
      const actor = { type: entry.actor_type, id: entry.actor_id }
      await write(
        async (tx) => {
          await tx.query(FORGET, [seq])
          await rewrite(tx, entry.patches, set)
        },
        { actor, ...(entry.run_id && { runId: entry.run_id }) },
      )
      await refreshCounts()
    },
    async discard(seq) {
      await rejectedEntry(db, seq)
      const { rows } = await db.query<{ table_name: TableName; row_id: string }>(FORGET, [seq])
      await refreshCounts()
      const changes = new Map<TableName, Set<string>>()
      for (const { table_name: table, row_id: id } of rows)
        changes.set(table, (changes.get(table) ?? new Set()).add(id))
      notify(changes)
    },
    async close() {
      if (closed) return
      closed = true
      clearTimeout(countTimer)
      link.wake()
      await Promise.all([pusher?.stop(), stopReaders()])
      settler.stop()
      housekeeping.stop()
      await settler.idle()
      link.close()
      await stopListening()
      await db.close()
    },
  }
}

interface Finished {
  readonly mutation: string | null
  readonly changes: Record<string, string[]> | null
  readonly copy: string | null
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
