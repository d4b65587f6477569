/**
 * The one consumer of the logical replication slot: sets up publication and slot, reads the stream, acknowledges, reconnects.
 *
 *  1. The slot is acknowledged only up to what `durable` returned.
 *  2. A new epoch begins (all shapes forgotten) when the slot is not the one that the store has followed without a gap: it is
 *     missing or lost, is ahead of the store, or the database is another one, on another timeline, or older than the store; or when
 *     the store's folder is a copy.
 *  3. After any failure it connects again, with growing, jittered delays, until stopped.
 *  4. While the stream is paused nothing more is read from the socket.
 *  5. `started` resolves when the database is known to go on from the log (continuity.ts); if it doesn't,
 *     a new epoch begins.
 */
import pg from 'pg'
import { type Continuity, checkContinuity, Divergence } from './continuity.ts'
import { clientConfig, sqlState } from './database.ts'
import { quoteIdentifier, quoteLiteral, quoteTable, type TableName } from './identifiers.ts'
import { createDecoder, type TransactionPart } from './pgoutput.ts'
import { formatLsn, type Logger, parseLsn } from './protocol.ts'
import type { Store } from './store.ts'

export interface ReplicationOptions {
  readonly config: pg.ClientConfig
  readonly slot: string
  readonly publication: string
  /** Undefined: all tables, present and future. */
  readonly tables: readonly TableName[] | undefined
  readonly store: Store
  readonly logger: Logger
  readonly isWanted: (relationOid: number) => boolean
  readonly onBegin: (xid: number) => void
  /** The database, or the store's folder, is an older copy of itself, or another one. The new epoch waits for it. */
  readonly onRestored: (reason: string) => Promise<void>
  readonly onPart: (part: TransactionPart) => void
  readonly onProgress: (sentLsn: number) => void
  /** The stream begins (again) at the store's position: forget what was not applied. */
  readonly onConnect: () => void
  readonly onEpoch: (reason: string) => void
}

export type ReplicationState = 'connecting' | 'streaming' | 'stopped'

export interface Replication {
  readonly state: () => ReplicationState
  /** Resolves when the stream has begun for the first time; rejects when only a person can help. */
  readonly started: Promise<void>
  acknowledge(): void
  /** Has Postgres say how far it has sent, which it does by itself only now and then. */
  ask(): void
  pause(): void
  resume(): void
  /** Drops the connection and begins again. */
  restart(reason: string): void
  stop(): Promise<void>
}

/** An error that trying again will not heal. */
export class SetupError extends Error {}

const PART_BYTES = 1024 * 1024
const STATUS_MS = 10_000
const SILENCE_MS = 45_000
/** How long another consumer may hold the slot before the first start gives up. */
const BUSY_SLOT_MS = 30_000

interface CopyConnection {
  readonly stream: { pause(): void; resume(): void; destroy(error?: Error): void }
  on(event: 'copyData', listener: (message: { chunk: Buffer }) => void): void
  sendCopyFromChunk(chunk: Buffer): void
}

export const startReplication = (options: ReplicationOptions): Replication => {
  const { store, logger } = options
  let state: ReplicationState = 'connecting'
  let current: { client: pg.Client; connection: CopyConnection } | undefined
  let paused = false
  let received = 0
  let stopping = false
  /** What the stream has shown of the database: only a new epoch helps. */
  let divergence: string | undefined
  let wake: () => void = () => undefined
  const firstStart = Promise.withResolvers<void>()
  firstStart.promise.catch(() => undefined)

  const sendStatus = (wantsReply: boolean): void => {
    if (!current || state !== 'streaming') return
    const message = Buffer.alloc(34)
    message[0] = 0x72
    const durable = store.durable()
    writeLsn(message, 1, Math.max(received, durable))
    writeLsn(message, 9, durable)
    writeLsn(message, 17, durable)
    message.writeBigInt64BE(BigInt(Date.now() - Date.UTC(2000, 0, 1)) * 1000n, 25)
    message[33] = wantsReply ? 1 : 0
    current.connection.sendCopyFromChunk(message)
  }

  /** One connection from beginning to end. Resolves when it has ended. */
  const connectOnce = async (): Promise<void> => {
    const client = new pg.Client({
      ...clientConfig(options.config, ['statement_timeout=0', 'idle_in_transaction_session_timeout=0']),
      application_name: 'hq-shapes stream',
      ...{ replication: 'database' },
    })
    const ended = Promise.withResolvers<void>()
    ended.promise.catch(() => undefined)
    client.on('error', (error) => ended.reject(error))
    client.on('end', () => ended.reject(new Error('the connection was closed')))
    let timer: NodeJS.Timeout | undefined
    abortCurrent = (reason) => {
      ended.reject(new Error(reason))
      ;(client as unknown as { connection?: CopyConnection }).connection?.stream.destroy()
    }
    try {
      await client.connect()
      const from = await prepare(client, options, divergence)
      divergence = undefined
      if (stopping) return
      options.onConnect()
      const connection = (client as unknown as { connection: CopyConnection }).connection
      current = { client, connection }
      let heard = Date.now()
      received = store.restartLsn()
      const continuity = checkContinuity(store, from)
      const decoder = createDecoder({
        ...options,
        partBytes: PART_BYTES,
        onBegin(transaction) {
          continuity.began(transaction)
          options.onBegin(transaction.xid)
        },
      })
      connection.on('copyData', ({ chunk }) => {
        heard = Date.now()
        try {
          receive(chunk, decoder, continuity)
        } catch (error) {
          if (error instanceof Divergence) divergence = error.message
          ended.reject(error)
        }
      })
      state = 'streaming'
      const copying = client.query(
        `START_REPLICATION SLOT ${quoteIdentifier(options.slot)} LOGICAL ${formatLsn(from)} (proto_version '1', publication_names ${quoteLiteral(quoteIdentifier(options.publication))})`,
      )
      copying.then(() => ended.resolve(), ended.reject)
      if (paused) connection.stream.pause()
      timer = setInterval(() => {
        if (Date.now() - heard > SILENCE_MS && !paused) ended.reject(new Error('Postgres has gone silent'))
        else sendStatus(true)
      }, STATUS_MS)
      // A refusal (slot in use) comes at once; silence means that the stream has begun.
      await Promise.race([ended.promise, new Promise((resolve) => setTimeout(resolve, 50))])
      sendStatus(true)
      await Promise.race([ended.promise, continuity.certain])
      logger.info('following the database', { slot: options.slot, from: formatLsn(from) })
      firstStart.resolve()
      await ended.promise
    } finally {
      clearInterval(timer)
      abortCurrent = () => undefined
      current = undefined
      if (!stopping) state = 'connecting'
      client.removeAllListeners('end')
      const connection = (client as unknown as { connection?: CopyConnection }).connection
      // The stream never ends by itself, so neither would a polite goodbye.
      connection?.stream.destroy()
    }
  }
  let abortCurrent: (reason: string) => void = () => undefined

  const receive = (chunk: Buffer, decoder: ReturnType<typeof createDecoder>, continuity: Continuity): void => {
    if (chunk[0] === 0x77) {
      decoder.push(chunk.subarray(25))
    } else if (chunk[0] === 0x6b) {
      const sentLsn = readLsn(chunk, 1)
      if (!decoder.isInside()) continuity.reached(sentLsn)
      received = Math.max(received, sentLsn)
      if (!decoder.isInside() && sentLsn - 1 > store.position()) options.onProgress(sentLsn)
      if (chunk[17] === 1) sendStatus(false)
    }
  }

  const loop = async (): Promise<void> => {
    let failures = 0
    const begun = Date.now()
    while (!stopping) {
      const connectedAt = Date.now()
      try {
        await connectOnce()
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        if (Date.now() - connectedAt > 10_000) failures = 0
        const fatal =
          error instanceof SetupError ? error : setupError(error, options.slot, Date.now() - begun > BUSY_SLOT_MS)
        if (fatal) firstStart.reject(fatal)
        if (!stopping) logger.warn('the replication stream ended; connecting again', { reason })
        if (error instanceof Divergence) continue
      }
      if (stopping) break
      // Full jitter, so that many servers do not come back at once; the first try comes quickly.
      const delay = Math.random() * Math.min(10_000, 100 * 2 ** Math.min(failures++, 10))
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 20 + delay)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
  const finished = loop()

  return {
    state: () => state,
    started: firstStart.promise,
    acknowledge: () => sendStatus(false),
    ask: () => sendStatus(true),
    pause() {
      if (paused) return
      paused = true
      current?.connection.stream.pause()
    },
    resume() {
      if (!paused) return
      paused = false
      current?.connection.stream.resume()
    },
    restart: (reason) => abortCurrent(reason),
    async stop() {
      if (state === 'streaming') sendStatus(false)
      stopping = true
      state = 'stopped'
      firstStart.reject(new Error('stopped'))
      abortCurrent('stopped')
      wake()
      await finished
    },
  }
}

/** What a person has to do about an error of Postgres, where time will not heal it. */
const setupError = (error: unknown, slot: string, hasWaited: boolean): SetupError | undefined => {
  const message = error instanceof Error ? error.message : String(error)
  switch (sqlState(error)) {
    case '55006':
      if (!hasWaited) return undefined
      return new SetupError(
        `The replication slot ${slot} is in use by another process. Stop it, or choose another --slot.`,
      )
    case '28P01':
    case '28000':
    case '3D000':
      return new SetupError(`Postgres refuses the connection: ${message}. Check the database URL.`)
    case '42P01':
      return new SetupError(`A table to publish does not exist: ${message}.`)
    case '42501':
      return new SetupError(
        `The database user may not replicate: ${message}. ALTER ROLE … REPLICATION, or connect as another user.`,
      )
    default:
      return undefined
  }
}

const writeLsn = (buffer: Buffer, at: number, lsn: number): void => {
  buffer.writeUInt32BE(Math.floor(lsn / 2 ** 32), at)
  buffer.writeUInt32BE(lsn % 2 ** 32, at + 4)
}
const readLsn = (buffer: Buffer, at: number): number => buffer.readUInt32BE(at) * 2 ** 32 + buffer.readUInt32BE(at + 4)

type Rows = Record<string, string | null>[]

/** Returns from where to read: where the slot stands. */
const prepare = async (
  client: pg.Client,
  options: ReplicationOptions,
  divergence: string | undefined,
): Promise<number> => {
  const { slot, publication, tables, store, logger, onEpoch } = options
  const rows = async (sql: string): Promise<Rows> => (await client.query(sql)).rows as Rows
  const level = (await rows('show wal_level'))[0]?.['wal_level']
  if (level !== 'logical') {
    throw new SetupError(
      `Postgres runs with wal_level=${level}, but shapes need logical decoding. Run ALTER SYSTEM SET wal_level = 'logical' and restart Postgres.`,
    )
  }
  const system = (await rows('IDENTIFY_SYSTEM'))[0] as Record<string, string>
  const epoch = {
    systemId: system['systemid'] ?? '',
    timeline: system['timeline'] ?? '',
    database: system['dbname'] ?? '',
    slot,
  }
  try {
    await ensurePublication(rows, publication, tables)
  } catch (error) {
    if (sqlState(error) === '42501') {
      throw new SetupError(
        `The database user may not create the publication ${publication} (${(error as Error).message}). Create it as a superuser, or connect as one.`,
      )
    }
    throw error
  }

  const [found] = await rows(
    `select active, confirmed_flush_lsn::text as confirmed, to_json(s) ->> 'wal_status' as wal_status, plugin, database
     from pg_replication_slots s where slot_name = ${quoteLiteral(slot)}`,
  )
  const gap = divergence
    ? { reason: divergence, restored: true }
    : gapOf(found, epoch, store, parseLsn(system['xlogpos'] as string))
  if (gap === undefined) return parseLsn(found?.['confirmed'] as string)
  const { reason, restored } = gap
  if (restored) await options.onRestored(reason)
  if (found) {
    if (found['active'] === 't')
      throw Object.assign(new Error(`the replication slot ${slot} is in use`), { code: '55006' })
    await client.query(`DROP_REPLICATION_SLOT ${quoteIdentifier(slot)}`)
  }
  logger.info('waiting for a consistent point to begin at: open transactions must end first', { slot })
  let created: Rows
  try {
    created = await rows(`CREATE_REPLICATION_SLOT ${quoteIdentifier(slot)} LOGICAL pgoutput NOEXPORT_SNAPSHOT`)
  } catch (error) {
    if (sqlState(error) === '53400') {
      throw new SetupError(
        'Postgres has no replication slot left. Raise max_replication_slots, or drop a slot that nobody uses.',
      )
    }
    throw error
  }
  const start = parseLsn(created[0]?.['consistent_point'] as string)
  store.beginEpoch(epoch, start)
  onEpoch(reason)
  return start
}

interface Gap {
  readonly reason: string
  /** Not only the stream has a gap: the data may be older than what clients have seen. */
  readonly restored: boolean
}

const lost = (reason: string): Gap => ({ reason, restored: false })
const restored = (reason: string): Gap => ({ reason, restored: true })

/** Why the store's log can't be continued from this slot; `undefined` when it can. */
const gapOf = (
  found: Record<string, string | null> | undefined,
  epoch: { systemId: string; timeline: string; database: string; slot: string },
  store: Store,
  present: number,
): Gap | undefined => {
  const known = store.epoch()
  if (!known) return lost('there is no log yet')
  if (known.systemId !== epoch.systemId || known.database !== epoch.database)
    return restored('this is another database')
  if (known.timeline !== epoch.timeline) return restored('the database was restored or promoted')
  if (present < store.restartLsn()) return restored('the database is older than the log: it was restored')
  if (store.isCopy()) return restored('the folder of the log is a copy: it was moved or restored')
  if (known.slot !== epoch.slot) return lost('another slot was chosen')
  if (!found) return lost('the replication slot is gone')
  if (found['plugin'] !== 'pgoutput' || found['database'] !== epoch.database)
    return lost('the replication slot is another one')
  if (found['wal_status'] === 'lost' || !found['confirmed'])
    return lost('Postgres has dropped the log that the slot needs')
  if (parseLsn(found['confirmed']) > store.restartLsn())
    return restored('the log is older than the slot: its folder was restored')
  return undefined
}

const ensurePublication = async (
  rows: (sql: string) => Promise<Rows>,
  publication: string,
  tables: readonly TableName[] | undefined,
): Promise<void> => {
  const name = quoteIdentifier(publication)
  const list = tables?.map(quoteTable).join(', ')
  const target = list === undefined ? 'FOR ALL TABLES' : list === '' ? '' : `FOR TABLE ${list}`
  const [existing] = await rows(
    `select puballtables as all from pg_publication where pubname = ${quoteLiteral(publication)}`,
  )
  const version = Number((await rows('show server_version_num'))[0]?.['server_version_num'])
  const generated = version >= 180000 ? ', publish_generated_columns = stored' : ''
  const create = () => rows(`create publication ${name} ${target} with (publish_via_partition_root = true${generated})`)
  if (!existing) return void (await create())
  if ((existing['all'] === 't') !== (tables === undefined)) {
    await rows(`drop publication ${name}`)
    return void (await create())
  }
  if (tables === undefined) return
  const members = await rows(
    `select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_publication_tables where pubname = ${quoteLiteral(publication)}`,
  )
  const wanted = await rows(
    list === '' || list === undefined
      ? 'select null where false'
      : `select quote_ident(n.nspname) || '.' || quote_ident(c.relname) as name from unnest(array[${tables.map((table) => quoteLiteral(quoteTable(table))).join(', ')}]) t
         join pg_class c on c.oid = t::regclass join pg_namespace n on n.oid = c.relnamespace`,
  )
  const same =
    members.length === wanted.length && wanted.every((row) => members.some((member) => member['name'] === row['name']))
  if (same) return
  await rows(list === '' ? `drop publication ${name}` : `alter publication ${name} set table ${list}`)
  if (list === '') await create()
  // A transaction that wrote to a new member before is not published, so snapshots must see it: wait until it has ended.
  const [fence] = await rows('select pg_snapshot_xmax(pg_current_snapshot())::text as xmax')
  for (;;) {
    const [now] = await rows(`select pg_snapshot_xmin(pg_current_snapshot()) >= '${fence?.['xmax']}'::xid8 as passed`)
    if (now?.['passed'] === 't') return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
