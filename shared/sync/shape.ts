/**
 * One table's stream as IO: reads its shape with Electric's client, carries out what `core/pull.ts` decides, for as long as the replica is open.
 *
 * The rules R1, R3, R4 and R6 are those of core/pull.ts. Here on top:
 * R3 No error gets past this module, so that the client's habit of rethrowing them in a microtask never ends a process.
 *
 * The client sees no rows (wire.ts): all values arrive as the text they were sent as (R7).
 */
import { FetchError, ShapeStream } from '@electric-sql/client'
import type { PGlite } from '@electric-sql/pglite'
import type { TableName } from '../schema/tables.ts'
import type { Applier } from './apply.ts'
import type { ReplicaEnvironment } from './contract.ts'
import { newPace, paced, pauseMs } from './core/pace.ts'
import { newPull, type Place, type PullEffect, type PullEvent, pull, type ShapeMessage } from './core/pull.ts'
import { backoffMs, type Link } from './link.ts'
import { createWire, isStream } from './wire.ts'

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
  readonly liveSse?: boolean | undefined
  /** The shape has brought everything up to here. */
  readonly onPosition: (table: TableName, position: bigint) => void
  /** The stream begins anew: where it stood no longer counts. */
  readonly onStartedOver: (table: TableName) => void
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
  let state = newPull(table)
  let said: string | undefined
  let pace = newPace
  let pausing = false

  const next = (event: PullEvent): readonly PullEffect[] => {
    const { state: after, effects } = pull(state, event)
    state = after
    return effects
  }

  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      let restart: Restart | undefined
      try {
        restart = await readOnce()
        // Its failure, if it failed, is the reason why the stream ended.
        await receiving?.catch(() => undefined)
      } catch (error) {
        restart = restartOf(next({ type: 'not_started', reason: messageOf(error) }))
      }
      if (closing.signal.aborted) return
      if (restart) {
        // The same trouble again and again is said once.
        log(restart.reason === said ? 'debug' : 'warn', `Stream of ${table} starts again: ${restart.reason}`, { table })
        said = restart.reason
      }
      await link.sleep(backoffMs(restart?.attempt ?? 0), closing.signal)
    }
  }

  /** Reads until something fails or the replica closes. */
  const readOnce = async (): Promise<Restart | undefined> => {
    const stored = state.refetch ? undefined : await storedPlace(options.db, table)
    next({ type: 'started', stored, hasRows: stored ? false : await hasRows(options.db, table) })
    const stopping = new AbortController()
    const signal = AbortSignal.any([closing.signal, stopping.signal])
    return new Promise((resolve) => {
      const end = (restart: Restart | undefined): void => {
        if (stopping.signal.aborted) return
        stopping.abort()
        current = undefined
        resolve(restart)
      }
      const fail = (error: unknown): void => {
        const status = error instanceof FetchError ? error.status : undefined
        end(restartOf(next({ type: 'failed', reason: messageOf(error), status })))
      }
      closing.signal.addEventListener('abort', () => end(undefined), { once: true })
      if (closing.signal.aborted) return end(undefined)
      let schema: string | undefined
      const wire = createWire()
      const stream = new ShapeStream<Row>({
        url: new URL('/v1/shape', options.serverUrl).toString(),
        // `stream` varies the address, so that the client's own caches never mistake a new stream for an old one.
        params: { table, replica: 'full', replica_id: options.replicaId(), stream: crypto.randomUUID() },
        ...(stored && { offset: stored.offset as `${number}_${number}`, handle: stored.handle }),
        signal,
        liveSse: options.liveSse ?? false,
        backoffOptions: { initialDelay: 250, maxDelay: 15_000, multiplier: 2 },
        fetchClient: async (input, init) => {
          await pause(pauseMs(pace), signal)
          const asked = performance.now()
          const response = await patientFetch(link, input.toString(), init)
          const { searchParams } = new URL(input.toString())
          // How a stream of events goes on is the client's to watch.
          if (!isStream(response))
            pace = paced(pace, {
              offset: searchParams.get('offset'),
              live: searchParams.has('live'),
              status: response.status,
              reached: response.headers.get('electric-offset'),
              tookMs: performance.now() - asked,
            })
          schema = response.headers.get('electric-schema') ?? schema
          return wire.withoutRows(response)
        },
        onError: async (error) => {
          const rights = error instanceof FetchError && (error.status === 401 || error.status === 403)
          if (!rights) {
            fail(error)
            return {}
          }
          const effects = next({ type: 'failed', reason: messageOf(error), status: error.status })
          if (effects.some(({ type }) => type === 'set_unauthorized')) link.setUnauthorized(true)
          await link.sleep(UNAUTHORIZED_RETRY_MS, signal)
          return {}
        },
      })
      current = stream
      stream.subscribe(
        async (messages) => {
          if (signal.aborted) return
          try {
            receiving = receive(wire.take(messages), stream.shapeHandle ?? '', schema, signal, end)
            await receiving
          } catch (error) {
            end(restartOf(next({ type: 'failed', reason: `applying failed: ${messageOf(error)}` })))
          }
        },
        (error) => fail(error),
      )
    })
  }

  const pause = async (ms: number, signal: AbortSignal): Promise<void> => {
    if (ms === 0) return
    pausing = true
    await link.sleep(ms, signal)
    pausing = false
  }

  /** Carries out one answer's effects, in order; nothing more of them once the stream has ended. */
  const receive = async (
    messages: readonly ShapeMessage[],
    handle: string,
    schema: string | undefined,
    signal: AbortSignal,
    end: (restart: Restart | undefined) => void,
  ): Promise<void> => {
    const effects = next({ type: 'answered', messages, handle, schema, replicaId: options.replicaId() })
    for (const effect of effects) {
      signal.throwIfAborted()
      if (effect.type === 'restart') return end(effect)
      await carryOut(effect)
    }
    said = undefined
    next({ type: 'applied' })
  }

  const carryOut = async (effect: PullEffect): Promise<void> => {
    const { applier } = options
    switch (effect.type) {
      case 'begin_staging':
        return applier.beginStaging(table)
      case 'stage':
        await applier.stage(table, effect.rows)
        return options.onProgress(table, effect.rows.length)
      case 'load':
        await applier.load(table, effect.rows)
        return options.onProgress(table, effect.rows.length)
      case 'swap':
        return applier.swap(table, effect.place, effect.ack)
      case 'apply':
        return applier.apply({ ...effect, table })
      case 'loaded':
        return options.onLoaded(table)
      case 'reached':
        return options.onPosition(table, effect.position)
      case 'started_over':
        return options.onStartedOver(table)
      case 'set_unauthorized':
      case 'wait_for_rights':
      case 'restart':
        throw new Error(`${effect.type} is no effect of an answer`)
    }
  }

  const finished = run()
  return {
    refresh() {
      // A stream that pauses is about to ask anyway; being refreshed again and again it never would.
      const stream = pausing ? undefined : current
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

type Restart = Extract<PullEffect, { type: 'restart' }>

const restartOf = (effects: readonly PullEffect[]): Restart | undefined =>
  effects.find((effect): effect is Restart => effect.type === 'restart')

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
