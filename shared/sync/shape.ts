/**
 * One table's stream: reads its shape with Electric's client and hands batches to the applier, for as long as the replica is open.
 *
 * R1 A stream always starts from the stored position.
 * R3 When applying fails, the stream is stopped and started again from the stored position, with back-off; no error gets past this module, so
 *    that the client's habit of rethrowing them in a microtask never ends a process.
 * R4 No answer of the server ends a stream for good: 401 and 403 wait for a new session, 400 leads to a refetch, the rest to a restart.
 * R6 Whatever starts from the beginning although rows are there is staged and swapped; the old rows stay readable until then.
 *
 * The client sees no rows (wire.ts): all values arrive as the text they were sent as (R7).
 */
import { FetchError, ShapeStream } from '@electric-sql/client'
import type { PGlite } from '@electric-sql/pglite'
import type { TableName } from '../schema/tables.ts'
import { type Applier, type BatchAck, type Place, ROWS_PER_TRANSACTION, type TextRow } from './apply.ts'
import type { ReplicaEnvironment } from './contract.ts'
import { backoffMs, type Link } from './link.ts'
import { createWire, type ShapeMessage } from './wire.ts'

export interface ShapeReader {
  /** Asks for an up-to-date answer at once instead of waiting in the running long poll. */
  refresh(): void
  stop(): Promise<void>
}

export interface ShapeReaderOptions {
  readonly db: PGlite
  readonly table: TableName
  readonly serverUrl: string
  readonly replicaId: () => string
  readonly link: Link
  readonly applier: Applier
  readonly log: ReplicaEnvironment['log']
  /** The shape has brought everything up to here. */
  readonly onPosition: (table: TableName, position: bigint) => void
  /** Rows of a snapshot that have arrived. */
  readonly onProgress: (table: TableName, rows: number) => void
  readonly onLoaded: (table: TableName) => void
}

type Row = Record<string, string | null>

/** How long a stream that lacks rights waits before it asks again; a new session wakes it at once. */
const UNAUTHORIZED_RETRY_MS = 5_000

export function readShape(options: ShapeReaderOptions): ShapeReader {
  const { link, log, table } = options
  const closing = new AbortController()
  let current: ShapeStream<Row> | undefined
  let receiving: Promise<void> | undefined

  const run = async (): Promise<void> => {
    let failures = 0
    let refetch = false
    while (!closing.signal.aborted) {
      try {
        const ended = await readOnce(refetch)
        // Its failure, if it failed, is the reason why the stream ended.
        await receiving?.catch(() => undefined)
        if (ended.applied) failures = 0
        refetch = ended.refetch
        if (!closing.signal.aborted)
          log('warn', `Stream of ${table} starts again: ${ended.reason}`, { table, failures })
      } catch (error) {
        log('error', `Stream of ${table} could not start: ${messageOf(error)}`, { table })
      }
      if (!closing.signal.aborted) await link.sleep(backoffMs(failures++), closing.signal)
    }
  }

  /** Reads until something fails or the replica closes. */
  const readOnce = async (refetch: boolean): Promise<{ reason: string; refetch: boolean; applied: boolean }> => {
    const stored = refetch ? undefined : await storedPlace(options.db, table)
    const stopping = new AbortController()
    const signal = AbortSignal.any([closing.signal, stopping.signal])
    const receiver = createReceiver(options, stored, stored ? false : await hasRows(options.db, table), signal)
    let badRequest = false
    let applied = false
    return new Promise((resolve) => {
      const end = (reason: string): void => {
        stopping.abort()
        current = undefined
        resolve({ reason, refetch: badRequest, applied })
      }
      closing.signal.addEventListener('abort', () => end('closing'), { once: true })
      if (closing.signal.aborted) return end('closing')
      let schema: string | undefined
      const wire = createWire()
      const stream = new ShapeStream<Row>({
        url: new URL('/v1/shape', options.serverUrl).toString(),
        // `stream` varies the address, so that the client's own caches never mistake a new stream for an old one.
        params: { table, replica: 'full', replica_id: options.replicaId(), stream: crypto.randomUUID() },
        ...(stored && { offset: stored.offset as `${number}_${number}`, handle: stored.handle }),
        signal,
        backoffOptions: { initialDelay: 250, maxDelay: 15_000, multiplier: 2 },
        fetchClient: async (input, init) => {
          const response = await patientFetch(link, input.toString(), init)
          schema = response.headers.get('electric-schema') ?? schema
          return wire.withoutRows(response)
        },
        onError: async (error) => {
          if (error instanceof FetchError && (error.status === 401 || error.status === 403)) {
            if (error.status === 401) link.setUnauthorized(true)
            await link.sleep(UNAUTHORIZED_RETRY_MS, signal)
          } else {
            badRequest = error instanceof FetchError && error.status === 400
            end(messageOf(error))
          }
          return {}
        },
      })
      current = stream
      stream.subscribe(
        async (messages) => {
          if (signal.aborted) return
          try {
            receiving = receiver.receive(wire.take(messages), stream.shapeHandle ?? '', schema)
            await receiving
            applied = true
          } catch (error) {
            end(`applying failed: ${messageOf(error)}`)
          }
        },
        (error) => end(messageOf(error)),
      )
    })
  }

  const finished = run()
  return {
    refresh() {
      const stream = current
      // Rejects only when the stream ends meanwhile, and then there is nothing left to refresh.
      stream
        ?.forceDisconnectAndRefresh()
        .catch((error) => log('debug', `Refresh of ${table} ended: ${messageOf(error)}`))
    },
    async stop() {
      closing.abort()
      await finished
    },
  }
}

/** Turns the messages of one stream into batches; applies nothing more once the stream has been stopped. */
function createReceiver(
  options: ShapeReaderOptions,
  stored: Place | undefined,
  rowsExist: boolean,
  signal: AbortSignal,
) {
  const { applier, table } = options
  let handle = stored?.handle
  let position = stored?.position ?? 0n
  let phase: 'snapshot' | 'live' = stored ? 'live' : 'snapshot'
  let staging = !stored && rowsExist
  let staged = false
  let snapshotAck: BatchAck | undefined

  const refetch = (): void => {
    phase = 'snapshot'
    staging = true
    staged = false
    snapshotAck = undefined
    position = 0n
  }

  const snapshotPart = async (rows: readonly TextRow[]): Promise<void> => {
    signal.throwIfAborted()
    if (staging && !staged) {
      await applier.beginStaging(table)
      staged = true
    }
    for (let start = 0; start < rows.length; start += ROWS_PER_TRANSACTION) {
      const part = rows.slice(start, start + ROWS_PER_TRANSACTION)
      signal.throwIfAborted()
      if (staging) await applier.stage(table, part)
      else await applier.load(table, part)
      options.onProgress(table, part.length)
    }
    for (const row of rows) snapshotAck = ackOf(row, undefined) ?? snapshotAck
  }

  const snapshotEnd = async (schema: string | undefined): Promise<void> => {
    await snapshotPart([])
    signal.throwIfAborted()
    const place: Place = { handle: handle ?? '', offset: '0_inf', position, schema }
    if (staging) await applier.swap(table, place, snapshotAck)
    else await applier.apply({ table, upserts: [], deletes: [], place, ack: snapshotAck })
    phase = 'live'
    staging = false
    options.onLoaded(table)
  }

  /** `client_progress` is more than rows: it is where mutations are acknowledged. */
  const ackOf = (row: TextRow, lsn: string | undefined): BatchAck | undefined =>
    table === 'client_progress' && row['replica_id'] === options.replicaId() && row['last_seq']
      ? { seq: Number(row['last_seq']), lsn: lsn === undefined ? undefined : BigInt(lsn) }
      : undefined

  const receive = async (
    messages: readonly ShapeMessage[],
    nowHandle: string,
    schema: string | undefined,
  ): Promise<void> => {
    if (handle !== undefined && handle !== nowHandle && !messages.some(isMustRefetch)) refetch()
    handle = nowHandle
    const snapshot = new Map<string, TextRow>()
    let live = new Map<string, TextRow | null>()
    let offset: string | undefined
    let highest = position
    let ack: BatchAck | undefined

    const flush = async (): Promise<void> => {
      if (offset === undefined) return
      signal.throwIfAborted()
      const upserts = [...live.values()].filter((row) => row !== null)
      const deletes = [...live].flatMap(([id, row]) => (row === null ? [id] : []))
      await applier.apply({ table, upserts, deletes, place: { handle: nowHandle, offset, position, schema }, ack })
      live = new Map()
      offset = undefined
      ack = undefined
    }
    const endSnapshot = async (): Promise<void> => {
      await snapshotPart([...snapshot.values()])
      snapshot.clear()
      await snapshotEnd(schema)
    }

    for (const message of messages) {
      const { operation, control, lsn, op_position: op, global_last_seen_lsn: seen } = message.headers
      const row = message.value
      if (row) {
        const id = row['id']
        if (typeof id !== 'string') throw new Error(`A message of ${table} has no id`)
        if (typeof lsn !== 'string') {
          if (phase === 'live') refetch()
          snapshot.set(id, row)
          continue
        }
        if (phase === 'snapshot') await endSnapshot()
        live.delete(id)
        live.set(id, operation === 'delete' ? null : row)
        offset = `${lsn}_${op ?? 0}`
        if (BigInt(lsn) > highest) highest = BigInt(lsn)
        ack = ackOf(row, lsn) ?? ack
        if (live.size >= ROWS_PER_TRANSACTION) await flush()
      } else if (isMustRefetch(message)) {
        snapshot.clear()
        live.clear()
        offset = undefined
        refetch()
      } else if (control === 'snapshot-end') {
        if (phase === 'snapshot') await endSnapshot()
      } else if (control === 'up-to-date') {
        if (phase === 'snapshot') await endSnapshot()
        if (typeof seen === 'string' && BigInt(seen) > highest) highest = BigInt(seen)
        position = highest
        await flush()
        options.onPosition(table, position)
      }
    }
    if (phase === 'snapshot' && snapshot.size > 0) await snapshotPart([...snapshot.values()])
    await flush()
  }

  return { receive }
}

const isMustRefetch = ({ headers }: ShapeMessage): boolean => headers.control === 'must-refetch'

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Waits through missing connections itself, so that a reconnect is used at once and not after the client's own back-off. */
async function patientFetch(link: Link, url: string, init: RequestInit | undefined): Promise<Response> {
  const { pathname, search } = new URL(url)
  for (let attempt = 0; ; attempt++) {
    try {
      return await link.request(`${pathname}${search}`, init)
    } catch (error) {
      if (init?.signal?.aborted || !(error instanceof TypeError)) throw error
      await link.sleep(backoffMs(attempt), init?.signal ?? undefined)
      if (init?.signal?.aborted) throw error
    }
  }
}

async function storedPlace(db: PGlite, table: TableName): Promise<Place | undefined> {
  const { rows } = await db.query<{ handle: string | null; offset: string; position: string }>(
    'select handle, "offset", position::text from sync.shapes where table_name = $1',
    [table],
  )
  const row = rows[0]
  if (!row?.handle || row.offset === '-1') return undefined
  return { handle: row.handle, offset: row.offset, position: BigInt(row.position) }
}

async function hasRows(db: PGlite, table: TableName): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>(`select exists (select from "${table}") as found`)
  return rows[0]?.found ?? false
}
