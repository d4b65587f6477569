/**
 * Answers `/v1/shape`.
 *
 *  1. Handles are compared before offsets; at `-1` and `now` the handle is ignored.
 *  2. A 409 always carries a handle to begin again with, other than the one refused, unless there can't be one.
 *  3. Only requests that no retry or refetch can repair are answered with 400.
 *  4. A held request costs a record in holding.ts; an aborted one frees it at once. `hold` is for callers who keep no promise meanwhile.
 *  5. `electric-cursor` is on live replies only, `electric-schema` on all others.
 */
import { createHolding } from './holding.ts'
import type { Lifecycle, Wanted } from './lifecycle.ts'
import { Retired } from './lifecycle.ts'
import {
  compareOffsets,
  encode,
  formatOffset,
  type Hold,
  InvalidRequest,
  type Logger,
  MUST_REFETCH,
  type Offset,
  type ShapeRequest,
  type ShapeResponse,
  Unavailable,
  upToDate,
} from './protocol.ts'
import { createCache, readLog } from './reader.ts'
import { readOptionalDefinition, readQuery, type ShapeQuery } from './request.ts'
import { logEnd, newest, type Served, type Shape, type Shapes } from './shapes.ts'
import { chunkFile, readChunk } from './snapshot.ts'
import { eventStream } from './sse.ts'
import type { Store } from './store.ts'

export interface ServeOptions {
  readonly shapes: Shapes
  readonly store: Store
  readonly lifecycle: Lifecycle
  readonly logger: Logger
  readonly longPollMs: number
  readonly logChunkBytes: number
  readonly allowDeletion: boolean
  readonly cacheControl: 'electric' | 'no-store'
  /** Aborted when the engine stops: nobody is held any longer. */
  readonly stopping: AbortSignal
  /** Resolves true when the log has reached an LSN, false when it has not within the time that a client may be ahead. */
  readonly catchesUpWith: (lsn: number, signal: AbortSignal | undefined) => Promise<boolean>
}

type Body = ShapeResponse['body']

const CACHE_BYTES = 16 * 1024 * 1024
const MAX_RETRIES = 5

export const createServe = (options: ServeOptions) => {
  const { shapes, store, lifecycle, logger } = options
  const bodies = createCache<Uint8Array<ArrayBuffer>>(CACHE_BYTES)
  const holding = createHolding(options)

  const handle = async (request: ShapeRequest): Promise<ShapeResponse> => {
    try {
      if (request.method === 'DELETE') return await remove(request)
      if (!['GET', 'HEAD', 'POST'].includes(request.method)) return reply(405, {}, null)
      return await serve(readQuery(request), request)
    } catch (error) {
      return failure(error)
    }
  }

  const failure = (error: unknown): ShapeResponse => {
    if (error instanceof InvalidRequest) return json(400, { message: error.message, errors: error.errors })
    const retryAfter = error instanceof Unavailable ? error.retryAfterSeconds : 2
    if (!(error instanceof Unavailable))
      logger.error('a request failed', {
        reason: error instanceof Error ? (error.stack ?? error.message) : String(error),
      })
    const message = error instanceof Unavailable ? error.message : 'the request failed; try again'
    return json(503, { message }, { 'retry-after': String(retryAfter), 'electric-internal-known-error': 'true' })
  }

  const serve = async (query: ShapeQuery, request: ShapeRequest): Promise<ShapeResponse> => {
    const wanted: Wanted = query
    if (typeof query.start !== 'object') return serveStart(query, request)
    const served = shapes.byHandle(query.handle as string)
    const shape = served?.shape
    // The definition as written was resolved when its shape was made; if not, the handle can't be the right one, or we restarted.
    const current = shape && (lifecycle.find(wanted) ?? (await lifecycle.ensure(wanted)))
    if (!served || !shape || shape !== current) return refuse(wanted, request)
    if (shape.state !== 'ready') {
      const isServed = await lifecycle.begin(shape).then(
        () => true,
        () => false,
      )
      if (!isServed) return refuse(wanted, request)
    }
    shape.usedAt = Date.now()
    return serveLog(served, query, query.start, request)
  }

  const serveStart = async (query: ShapeQuery, request: ShapeRequest): Promise<ShapeResponse> => {
    for (let attempt = 1; ; attempt++) {
      const shape = await lifecycle.ensure(query)
      try {
        await abortable(lifecycle.begin(shape), request.signal)
      } catch (error) {
        if (error instanceof Retired && attempt < MAX_RETRIES) continue
        if (error instanceof Retired) throw new Unavailable('the table keeps changing', 1)
        throw error
      }
      shape.usedAt = Date.now()
      const generation = newest(shape)
      const served = { shape, generation }
      if (query.start === 'beginning') return serveChunk(served, 0, '-1', request)
      const end = formatOffset(logEnd(shape, generation))
      const headers = {
        ...head(served, 'now', end, `:${store.position()}`),
        'electric-up-to-date': '',
        'electric-has-data': 'false',
      }
      return finish(
        request,
        'now',
        { ...headers, 'electric-schema': shape.definition.schemaHeader },
        encode(`[${upToDate(store.position())}]`),
      )
    }
  }

  const serveChunk = async (
    { shape, generation }: Served,
    chunk: number,
    asked: string,
    request: ShapeRequest,
  ): Promise<ShapeResponse> => {
    const { files, chunks } = generation
    const headers = {
      ...head({ generation }, asked, formatOffset({ tx: 0, op: chunk })),
      'electric-schema': shape.definition.schemaHeader,
      'electric-has-data': 'true',
    }
    if (isUnchanged(request, headers)) return reply(304, headers, null)
    const path = chunkFile(store.dataDir, shape.id, files, chunk)
    const cached = bodies.get(path)
    const body = cached ?? (await readChunk(path, chunks[chunk] as number))
    if (!cached && body instanceof Uint8Array) bodies.set(path, body, body.length)
    return finish(request, asked, headers, body)
  }

  const serveLog = async (
    served: Served,
    query: ShapeQuery,
    asked: Offset,
    request: ShapeRequest,
  ): Promise<ShapeResponse> => {
    const { shape, generation } = served
    const after = afterSnapshot(generation, asked)
    if (!after) return serveChunk(served, asked.op + 1, formatOffset(asked), request)
    if (compareOffsets(after, shape.floor) < 0) return refuse(query, request)
    if (after.tx > store.position() && compareOffsets(after, logEnd(shape, generation)) > 0) {
      // A client that is ahead has seen what we have not: the log catches up at once, or it is not the same log.
      if (!(await options.catchesUpWith(after.tx, request.signal))) return refuse(query, request)
    }
    if (query.sse) return serveEvents(served, query, after)
    const mayHold = query.live && request.mayHold !== false && !options.stopping.aborted
    if (mayHold && compareOffsets(after, logEnd(shape, generation)) >= 0) await grows(served, after, request.signal)
    if (options.stopping.aborted) throw new Unavailable('the server is stopping', 1)
    if (isDead(shape)) return refuse(query, request)
    return serveMessages(served, query, after, asked, request)
  }

  const serveMessages = (
    { shape, generation }: Served,
    query: ShapeQuery,
    after: Offset,
    asked: Offset,
    request: ShapeRequest,
  ): ShapeResponse => {
    const position = store.position()
    const askedText = formatOffset(asked)
    const key = `${shape.id}:${formatOffset(after)}:${formatOffset(logEnd(shape, generation))}:${position}`
    let cached = logBodies.get(key)
    if (!cached) {
      const chunk = readLog(store, shape, generation, after, options.logChunkBytes)
      const hasData = chunk.text.length > 0
      const tail = chunk.reachesEnd ? `${hasData ? ',' : ''}${upToDate(position)}]` : ']'
      const body = new Uint8Array(Buffer.concat([OPEN, chunk.text, Buffer.from(tail)]))
      cached = { body, end: chunk.end, hasData, isUpToDate: chunk.reachesEnd }
      logBodies.set(key, cached, body.length)
    }
    const headers: Record<string, string> = {
      ...head(
        { generation },
        askedText,
        formatOffset(cached.end),
        query.live && !cached.hasData ? `:${Date.now()}` : '',
      ),
      'electric-has-data': String(cached.hasData),
      ...(cached.isUpToDate ? { 'electric-up-to-date': '' } : {}),
      ...(query.live
        ? { 'electric-cursor': nextCursor(query.cursor, options.longPollMs) }
        : { 'electric-schema': shape.definition.schemaHeader }),
    }
    return finish(request, query.live ? 'live' : askedText, headers, cached.body)
  }
  const logBodies = createCache<{ body: Uint8Array<ArrayBuffer>; end: Offset; hasData: boolean; isUpToDate: boolean }>(
    CACHE_BYTES,
  )

  const serveEvents = (served: Served, query: ShapeQuery, after: Offset): ShapeResponse => {
    if (isDead(served.shape)) return refuseWithout()
    const headers = {
      ...head(served, formatOffset(after), formatOffset(after)),
      'electric-cursor': nextCursor(query.cursor, options.longPollMs),
      'content-type': 'text/event-stream',
      'cache-control': options.cacheControl === 'electric' ? 'public, max-age=59' : 'no-store',
      connection: 'keep-alive',
    }
    return { status: 200, headers, body: eventStream(store, served, after, options.stopping) }
  }

  /** Resolves when the shape has something after the offset, is dead, or has been waited for long enough. */
  const grows = (served: Served, after: Offset, signal: AbortSignal | undefined): Promise<void> =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const gone = (): void => {
        hold.cancel()
        resolve()
      }
      const hold = holding.hold(served, after, () => {
        signal?.removeEventListener('abort', gone)
        resolve()
      })
      signal?.addEventListener('abort', gone, { once: true })
    })

  const hold = (request: ShapeRequest, done: () => void): Hold | undefined => {
    const waits = waiting(request)
    return waits && holding.hold(waits.served, waits.after, done)
  }

  /** Whose log has nothing for a live request, when that is all there is to it; everything else is `handle`'s. */
  const waiting = (request: ShapeRequest): { served: Served; after: Offset } | undefined => {
    const query = readQueryIfValid(request)
    if (!query?.live || query.sse || typeof query.start !== 'object' || options.stopping.aborted) return undefined
    const served = shapes.byHandle(query.handle as string)
    if (served?.shape.state !== 'ready' || lifecycle.find(query) !== served.shape) return undefined
    const { shape, generation } = served
    const after = afterSnapshot(generation, query.start)
    if (!after || compareOffsets(after, shape.floor) < 0) return undefined
    // Behind: there is something to say. Ahead of the whole log: that must be found out about.
    if (compareOffsets(after, logEnd(shape, generation)) < 0) return undefined
    if (after.tx > store.position() && compareOffsets(after, logEnd(shape, generation)) > 0) return undefined
    shape.usedAt = Date.now()
    return { served, after }
  }

  const refuse = async (wanted: Wanted, request: ShapeRequest): Promise<ShapeResponse> => {
    const shape = await lifecycle.ensure(wanted)
    const { handle } = newest(shape)
    return refuseWithout(handle === request.params['handle'] ? lifecycle.mintHandle(shape) : handle)
  }

  const refuseWithout = (handle?: string): ShapeResponse => ({
    status: 409,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'cache-control':
        options.cacheControl === 'electric' ? `public, max-age=${handle ? 60 : 1}, must-revalidate` : 'no-store',
      ...(handle ? { 'electric-handle': handle } : {}),
    },
    body: encode(MUST_REFETCH),
  })

  const remove = async (request: ShapeRequest): Promise<ShapeResponse> => {
    if (!options.allowDeletion) return json(405, { message: 'DELETE is not enabled on this server' })
    const { handle: name } = request.params
    const wanted = readOptionalDefinition(request)
    if (!wanted && !name) throw new InvalidRequest({ handle: [`can't be blank when shape definition is missing`] })
    const byHandle = name ? shapes.byHandle(name)?.shape : undefined
    let shape = byHandle
    if (wanted) {
      const current = lifecycle.find(wanted) ?? (byHandle ? await lifecycle.ensure(wanted) : undefined)
      if (name && byHandle && current !== byHandle) {
        throw new InvalidRequest({ handle: ['does not belong to the shape that the other parameters define'] })
      }
      if (!name) shape = current
    }
    if (!shape) return json(404, { message: 'Shape not found' })
    lifecycle.retire(shape, 'it was deleted')
    return reply(202, {}, null)
  }

  const head = (
    { generation: { handle } }: Pick<Served, 'generation'>,
    asked: string,
    end: string,
    suffix = '',
  ): Record<string, string> => ({
    'electric-handle': handle,
    'electric-offset': end,
    etag: `"${handle}:${asked}:${end}${suffix}"`,
  })

  const isUnchanged = (request: ShapeRequest, headers: Readonly<Record<string, string>>): boolean => {
    const known = request.headers?.['if-none-match']
    return known?.split(/\s*,\s*/).includes(headers['etag'] as string) ?? false
  }

  const finish = (
    request: ShapeRequest,
    asked: string,
    headers: Readonly<Record<string, string>>,
    body: Body,
  ): ShapeResponse => {
    const all = { ...headers, 'cache-control': cacheControl(asked) }
    if (isUnchanged(request, headers)) return reply(304, all, null)
    return reply(200, { ...all, 'content-type': 'application/json; charset=utf-8' }, body)
  }

  const cacheControl = (asked: string): string => {
    if (options.cacheControl === 'no-store') return 'no-store'
    if (asked === '-1') return 'public, max-age=604800, s-maxage=3600, stale-while-revalidate=2629746'
    if (asked === 'live') return 'public, max-age=5, stale-while-revalidate=5'
    return 'public, max-age=60, stale-while-revalidate=300'
  }

  return { handle, hold }
}

const OPEN = Buffer.from('[')

/** Where the log goes on; `undefined` for an offset inside the snapshot. */
const afterSnapshot = ({ chunks, from }: Served['generation'], asked: Offset): Offset | undefined => {
  if (asked.tx !== 0) return asked
  return asked.op < chunks.length - 1 ? undefined : from
}

const readQueryIfValid = (request: ShapeRequest): ShapeQuery | undefined => {
  try {
    return readQuery(request)
  } catch {
    return undefined // `handle` reads it again and says what is wrong
  }
}

const isDead = (shape: Shape): boolean => shape.state === 'dead'

const reply = (status: number, headers: Readonly<Record<string, string>>, body: Body): ShapeResponse => ({
  status,
  headers,
  body,
})

const json = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): ShapeResponse =>
  reply(
    status,
    {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'surrogate-control': 'no-store',
      ...headers,
    },
    encode(JSON.stringify(body)),
  )

const abortable = (work: Promise<void>, signal: AbortSignal | undefined): Promise<void> => {
  if (!signal) return work
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(new Unavailable('the client is gone'))
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
    if (signal.aborted) abort()
  })
}

const CURSOR_EPOCH = Date.UTC(2024, 9, 9)

/** Varies the URL of live requests so that no cache replays an old reply: never the cursor that was asked with. */
const nextCursor = (previous: string | undefined, longPollMs: number): string => {
  const interval = Math.max(1, Math.ceil(longPollMs / 1000))
  const next = Math.ceil((Date.now() - CURSOR_EPOCH) / 1000 / interval) * interval
  const known = previous !== undefined && /^\d{1,15}$/.test(previous) ? Number(previous) : -1
  return String(known >= next ? known + 1 + Math.floor(Math.random() * 3600) : next)
}
