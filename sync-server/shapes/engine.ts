/**
 * The shape engine: serves Postgres tables by the Electric shape protocol, from one logical replication slot.
 *
 * `createEngine(options)` makes one; `start` sets up publication and slot and follows the stream; `handle` answers one
 * request, in process, and never throws. Authentication is the caller's: whoever calls `handle` with a `definition` decides
 * what the client may see.
 *
 *  1. What a client was told survives SIGKILL: handles, offsets and logs are the same after a restart.
 *  2. `position()` is never ahead of what every shape can serve, and never goes back within an epoch.
 *  3. The slot is acknowledged only up to what is safely on disk.
 *  4. Errors of Postgres, the disk or a request never end the process; they end a request or restart the stream.
 */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { createApplier } from './apply.ts'
import { compact } from './compact.ts'
import { openDatabase } from './database.ts'
import { parseTableName, quoteTable } from './identifiers.ts'
import { createLifecycle } from './lifecycle.ts'
import { createMaintenance } from './maintenance.ts'
import { type Hold, type Logger, type ShapeRequest, type ShapeResponse, silentLogger, Unavailable } from './protocol.ts'
import { type Replication, SetupError, startReplication } from './replication.ts'
import { createServe } from './serve.ts'
import { createShapes } from './shapes.ts'
import { openStore } from './store.ts'

export interface EngineOptions {
  /** Of a user that may replicate, create publications and own (or alter) the tables. */
  readonly connectionString?: string | undefined
  /** Instead of, or beside, the connection string. */
  readonly pg?: pg.ClientConfig | undefined
  /** Folder of the change log. One engine at a time. */
  readonly dataDir: string
  /** Default `hq_shapes`. One slot belongs to one data directory. */
  readonly slot?: string | undefined
  /** Default `hq_shapes`. */
  readonly publication?: string | undefined
  /** Tables to publish, as in SQL; default: all tables, present and future. */
  readonly tables?: readonly string[] | undefined
  readonly logger?: Logger | undefined
  /** How long the log goes back for clients that were away, in ms. Default 7 days. */
  readonly retentionMs?: number | undefined
  /** Size of the log at which the oldest part goes earlier, in bytes. Default 1 GiB. */
  readonly retentionBytes?: number | undefined
  /** Shapes that nobody asked for this long are dropped, in ms. Default 14 days. */
  readonly idleShapeMs?: number | undefined
  /** Default 20 000. */
  readonly longPollMs?: number | undefined
  /** Size at which a snapshot is cut into replies. Default 10 MiB. */
  readonly chunkBytes?: number | undefined
  /** Connections for snapshots and the catalog, beside two more for the stream and for conditions. Default 4. */
  readonly connections?: number | undefined
  /** Whether DELETE is offered. Default false. */
  readonly allowDeletion?: boolean | undefined
  /** Default `no-store`: nothing between server and client may keep private rows. */
  readonly cacheControl?: 'electric' | 'no-store' | undefined
  /** How often retention and new snapshots are looked after, in ms. Default 60 000. */
  readonly maintenanceMs?: number | undefined
  /** Log a newcomer has to read, in bytes, before a new snapshot is worth it. Default 4 MiB. */
  readonly compactBytes?: number | undefined
  /** Called when the database, or `dataDir`, turns out to be an older copy of itself, or another one; before any client is sent back for it. */
  readonly onRestored?: ((reason: string) => Promise<void>) | undefined
}

export interface EngineStatus {
  /** `active`: following the database. `starting`: connecting, again or for the first time; shapes are still served. */
  readonly status: 'starting' | 'active' | 'stopped'
  readonly position: number
  readonly shapes: number
}

export interface Engine {
  /** Resolves when the stream is being followed. Rejects with a message for a person when it can't be. */
  start(): Promise<void>
  stop(): Promise<void>
  handle(request: ShapeRequest): Promise<ShapeResponse>
  /**
   * Holds a live GET that has nothing to say yet, for next to no memory: `done` is called once when `handle` with `mayHold: false` has an answer to
   * give, be it that time is over. `undefined`: nothing is held, and `handle` is to be asked at once.
   */
  hold(request: ShapeRequest, done: () => void): Hold | undefined
  /** Commit LSN up to which every transaction is in the log of every shape. */
  position(): number
  /**
   * Resolves true when everything that committed before this LSN is in the log; false when that takes longer than
   * `timeoutMs` (default 10 s). After a commit of one's own `pg_current_wal_flush_lsn()` is the LSN to wait for.
   */
  waitFor(
    lsn: number,
    options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal | undefined },
  ): Promise<boolean>
  /** Called after each commit to the log. Returns what ends it. */
  onPosition(listener: (position: number) => void): () => void
  status(): EngineStatus
  /** Retires every shape: all clients fetch anew, under new handles. For when the data was replaced behind Postgres' back. */
  rotateAll(reason: string): void
}

const MIB = 1024 * 1024
const DAY = 86_400_000
const CONNECTIONS = 4
const QUEUE_HIGH = 12 * MIB
const QUEUE_LOW = 4 * MIB
const SYNC_MS = 100
const ASK_MS = 50
const RECENT = 4096
/** How far a client may be ahead, in time: it was served something that a lost disk cache has not kept. */
const AHEAD_MS = 1000

export const createEngine = (options: EngineOptions): Engine => {
  const logger = options.logger ?? silentLogger
  const config: pg.ClientConfig = {
    ...options.pg,
    ...(options.connectionString ? { connectionString: options.connectionString } : {}),
  }
  const listeners = new Set<(position: number) => void>()
  const tables = options.tables?.map((text) => {
    const name = parseTableName(text)
    if (!name) throw new SetupError(`${JSON.stringify(text)} is not a table name`)
    return name
  })
  const published = tables && new Set(tables.map(quoteTable))
  let running: ReturnType<typeof run> | undefined
  let stopped = false

  const run = () => {
    const store = openStore(options.dataDir)
    const database = openDatabase(config, options.connections ?? CONNECTIONS, logger)
    // Of its own, so that snapshots can't keep changes waiting.
    const evaluation = openDatabase(config, 1, logger)
    const shapes = createShapes()
    const recent: number[] = []
    const replication: { current?: Replication } = {}
    const streaming = Promise.withResolvers<void>()
    const stopping = new AbortController()
    setMaxListeners(0, stopping.signal)
    streaming.promise.catch(() => undefined)

    const lifecycle = createLifecycle({
      database,
      store,
      shapes,
      logger,
      chunkBytes: options.chunkBytes ?? 10 * MIB,
      // One connection is left for the catalog.
      snapshotsAtOnce: Math.max(1, (options.connections ?? CONNECTIONS) - 1),
      isPublished: (table) => published?.has(quoteTable(table)) ?? true,
      streaming: () => streaming.promise,
      recentTransactions: () => recent,
      reveal: (shape, visibility) => applier.reveal(shape, visibility),
    })
    const applier = createApplier({
      shapes,
      store,
      evaluation,
      retire: lifecycle.retire,
      onCommit: () => {
        for (const listener of listeners) listener(store.position())
      },
      onError: (error) => {
        logger.error('a transaction could not be applied; reading it again', {
          reason: error instanceof Error ? error.message : String(error),
        })
        replication.current?.restart('a transaction could not be applied')
      },
      onQueued: (bytes) => {
        if (bytes > QUEUE_HIGH) replication.current?.pause()
        else if (bytes < QUEUE_LOW) replication.current?.resume()
      },
    })
    const serve = createServe({
      shapes,
      store,
      lifecycle,
      logger,
      longPollMs: options.longPollMs ?? 20_000,
      logChunkBytes: Math.min(options.chunkBytes ?? 10 * MIB, MIB),
      allowDeletion: options.allowDeletion ?? false,
      cacheControl: options.cacheControl ?? 'no-store',
      stopping: stopping.signal,
      catchesUpWith: (lsn, signal) => waitFor(lsn + 1, { timeoutMs: AHEAD_MS, signal }),
    })
    lifecycle.restore()
    replication.current = startReplication({
      config,
      slot: options.slot ?? 'hq_shapes',
      publication: options.publication ?? 'hq_shapes',
      tables,
      store,
      logger,
      isWanted: shapes.isTracked,
      onBegin: (xid) => {
        if (recent.push(xid) > 2 * RECENT) recent.splice(0, RECENT)
      },
      onPart: applier.push,
      onProgress: (sentLsn) => applier.push({ sentLsn }),
      onConnect: applier.reset,
      async onRestored(reason) {
        logger.warn('the database was restored; all clients fetch anew', { reason })
        await options.onRestored?.(reason)
      },
      onEpoch: (reason) => {
        logger.info('a new log begins', { reason })
        recent.length = 0
        for (const shape of shapes.all()) lifecycle.retire(shape, reason)
      },
    })
    replication.current.started.then(streaming.resolve, streaming.reject)

    let syncing: Promise<void> | undefined
    const syncTimer = setInterval(() => {
      if (syncing || store.restartLsn() === store.durable()) return
      syncing = store
        .sync()
        .then(() => replication.current?.acknowledge())
        .catch((error) => logger.error('the change log could not be synced to disk', { reason: String(error) }))
        .finally(() => {
          syncing = undefined
        })
    }, SYNC_MS)
    const maintenance = createMaintenance({
      store,
      shapes,
      lifecycle,
      logger,
      compact: (shape) =>
        compact(
          { database, store, shapes, chunkBytes: options.chunkBytes ?? 10 * MIB, waitFor, save: lifecycle.save },
          shape,
        ),
      everyMs: options.maintenanceMs ?? 60_000,
      compactBytes: options.compactBytes ?? 4 * MIB,
      retentionMs: options.retentionMs ?? 7 * DAY,
      retentionBytes: options.retentionBytes ?? 1024 * MIB,
      idleShapeMs: options.idleShapeMs ?? 14 * DAY,
    })

    return {
      store,
      shapes,
      lifecycle,
      serve,
      replication: replication.current,
      async stop() {
        stopping.abort()
        clearInterval(syncTimer)
        streaming.reject(new Unavailable('the server is stopping', 1))
        await maintenance.stop()
        await syncing
        await store
          .sync()
          .catch((error) => logger.error('the change log could not be synced to disk', { reason: String(error) }))
        await replication.current?.stop()
        await applier.idle()
        // A long snapshot is not waited for: it is thrown away.
        await Promise.race([
          Promise.all([database.close(), evaluation.close()]),
          sleep(2000, undefined, { ref: false }),
        ])
        store.close()
      },
    }
  }

  const position = (): number => running?.store.position() ?? 0

  const waitFor: Engine['waitFor'] = (lsn, { timeoutMs = 10_000, signal } = {}) => {
    if (position() >= lsn - 1) return Promise.resolve(true)
    return new Promise((resolve) => {
      const finish = (reached: boolean): void => {
        clearTimeout(timer)
        clearInterval(asking)
        listeners.delete(check)
        signal?.removeEventListener('abort', abort)
        resolve(reached)
      }
      const check = (now: number): void => {
        if (now >= lsn - 1) finish(true)
      }
      const abort = (): void => finish(false)
      const timer = setTimeout(() => finish(false), timeoutMs)
      // Where nothing of ours is written Postgres keeps quiet about its progress.
      const ask = (): void => running?.replication.ask()
      const asking = setInterval(ask, ASK_MS)
      ask()
      listeners.add(check)
      signal?.addEventListener('abort', abort)
      if (signal?.aborted) abort()
    })
  }

  return {
    async start() {
      if (running || stopped) throw new Error('an engine starts once')
      running = run()
      try {
        await running.replication.started
      } catch (error) {
        stopped = true
        await running.stop()
        throw error
      }
    },
    async stop() {
      if (stopped) return
      stopped = true
      await running?.stop()
    },
    async handle(request) {
      if (!running || stopped) return unavailable
      return running.serve.handle(request)
    },
    hold: (request, done) => (running && !stopped ? running.serve.hold(request, done) : undefined),
    position,
    waitFor,
    onPosition(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    status: () => ({
      status: stopped ? 'stopped' : running?.replication.state() === 'streaming' ? 'active' : 'starting',
      position: position(),
      shapes: running?.shapes.all().length ?? 0,
    }),
    rotateAll(reason) {
      for (const shape of running?.shapes.all() ?? []) running?.lifecycle.retire(shape, reason)
    },
  }
}

const unavailable: ShapeResponse = {
  status: 503,
  headers: { 'content-type': 'application/json', 'cache-control': 'no-store', 'retry-after': '1' },
  body: new TextEncoder().encode(JSON.stringify({ message: new Unavailable('the engine is not running').message })),
}
