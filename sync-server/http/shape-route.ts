/**
 * `/v1/shape` of the product: a table's name in, that table's rows as this reader may see them out.
 *
 *  1. The server alone makes the definition: condition and params come from `shared/schema` and the principal. `where`, `params`, `columns`,
 *     `replica` and subset parameters of the client have no effect.
 *  2. Only the parameters that move a reader through a log are passed on.
 *  3. Embedded engine and real Electric get the very same definition.
 *  4. No answer is stored by a cache in between.
 *  5. A live request is held only as long as its reader may read: when access changes it is asked again, and one that was revoked meanwhile is answered
 *     with the refusal, not with rows.
 */
import { visibleRows } from '@hq/shared/domain/access.ts'
import { quote } from '@hq/shared/schema/sql.ts'
import { isTableName, tables } from '@hq/shared/schema/tables.ts'
import { type Principal, REPLICA_HEADER } from '@hq/shared/sync/protocol.ts'
import { HttpError, unauthenticated } from '../errors.ts'
import type { Hold, ShapeDefinition, ShapeRequest, ShapeResponse } from '../shapes/protocol.ts'
import type { AccessChanges } from './context.ts'
import type { Replicas } from './replicas.ts'

/** What answers shape requests: the engine in this process, or `electric-proxy.ts`. */
export interface ShapeSource {
  handle(request: ShapeRequest): Promise<ShapeResponse>
  /** See the engine's; a source that can't is asked with `handle` alone. */
  hold?(request: ShapeRequest, done: () => void): Hold | undefined
}

export interface ShapeQuery {
  readonly principal: Principal
  readonly method: string
  readonly search: URLSearchParams
  readonly header: (name: string) => string | null | undefined
  readonly signal: AbortSignal
  /** Who the caller is by now; for requests that are held. Without it only the replica is asked about again. */
  readonly authenticate?: () => Promise<Principal | null>
  /** `false`: it was held already, by `hold`. */
  readonly mayHold?: boolean
}

export interface ServeShape {
  (query: ShapeQuery): Promise<ShapeResponse>
  /**
   * Holds a live request that has nothing to say yet; `done` is called when it is to be asked with `mayHold: false`. Whoever uses this watches for
   * changes of access: `replicaId` is what to check then (5). `undefined`: ask at once.
   */
  hold(query: ShapeQuery, done: () => void): Promise<(Hold & { readonly replicaId: string }) | undefined>
}

const PASSED = [
  'offset',
  'handle',
  'live',
  'cursor',
  'live_sse',
  'experimental_live_sse',
  'log',
  'cache-buster',
  'expired_handle',
]

export function createServeShape(
  source: ShapeSource,
  replicas: Replicas,
  changes: Pick<AccessChanges, 'subscribe'>,
): ServeShape {
  const requestOf = async ({ principal, method, search, header, mayHold }: ShapeQuery) => {
    if (method !== 'GET' && method !== 'POST') {
      throw new HttpError(
        405,
        'forbidden',
        'Shapes are shared between readers; they are not deleted by one of them.',
        {},
        { allow: 'GET, POST' },
      )
    }
    const replicaId = await replicas.check(
      principal,
      search.get('replica_id') ?? header(REPLICA_HEADER) ?? undefined,
      header('x-hq-label') ?? undefined,
    )
    const params: Record<string, string> = {}
    for (const name of PASSED) {
      const value = search.get(name)
      if (value !== null) params[name] = value
    }
    const request: ShapeRequest = {
      method: 'GET',
      params,
      definition: shapeDefinition(search.get('table') ?? '', principal, replicaId),
      headers: { 'if-none-match': header('if-none-match') ?? undefined },
      mayHold,
    }
    return { request, replicaId }
  }

  const serve = async (query: ShapeQuery): Promise<ShapeResponse> => {
    const { principal, signal, authenticate } = query
    const { request, replicaId } = await requestOf(query)
    const answer = async (until: AbortSignal): Promise<ShapeResponse> => {
      const response = await source.handle({ ...request, signal: until })
      return { ...response, headers: { ...response.headers, 'cache-control': 'no-store' } }
    }
    if (request.params['live'] === undefined) return answer(signal)
    return whileAllowed(answer, signal, changes, async () => {
      const now = authenticate ? await authenticate() : principal
      if (!now || now.kind !== principal.kind || ownerOf(now) !== ownerOf(principal)) throw unauthenticated()
      await replicas.check(now, replicaId)
    })
  }

  const hold: ServeShape['hold'] = async (query, done) => {
    if (!source.hold) return undefined
    const { request, replicaId } = await requestOf(query)
    if (query.signal.aborted) return undefined
    const held = source.hold(request, done)
    return held && { replicaId, cancel: held.cancel }
  }

  return Object.assign(serve, { hold })
}

const ownerOf = (principal: Principal): string =>
  principal.kind === 'person' ? principal.person_id : principal.gateway_id

/** Answers as `answer` does, unless `check` throws after a change of access (5). */
async function whileAllowed(
  answer: (signal: AbortSignal) => Promise<ShapeResponse>,
  signal: AbortSignal,
  changes: Pick<AccessChanges, 'subscribe'>,
  check: () => Promise<void>,
): Promise<ShapeResponse> {
  // Not AbortSignal.any: its bookkeeping is the most expensive part of a request that is held, and thousands are.
  const ending = new AbortController()
  const end = (): void => ending.abort(signal.reason)
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  let refused: HttpError | undefined
  let checking: Promise<void> = Promise.resolve()
  const unsubscribe = changes.subscribe(() => {
    checking = check().catch((error: unknown) => {
      // A database that can't be asked just now refuses nobody: the next request is asked anyway.
      if (!(error instanceof HttpError) || error.status === 503) return
      refused = error
      ending.abort(error)
    })
  })
  const over = (): void => {
    signal.removeEventListener('abort', end)
    unsubscribe()
  }
  let isStreaming = false
  try {
    const response = await answer(ending.signal)
    // Rows that came together with the change wait for the verdict.
    await checking
    if (refused) throw refused
    if (!(response.body instanceof ReadableStream)) return response
    isStreaming = true
    const isEvents = response.headers['content-type']?.startsWith('text/event-stream') ?? false
    return { ...response, body: streamUntil(response.body, isEvents, ending.signal, over) }
  } catch (error) {
    throw refused ?? error
  } finally {
    if (!isStreaming) over()
  }
}

type Bytes = Uint8Array<ArrayBuffer>

/** The same bytes; the stream breaks off when `signal` is aborted. `over` is called when it has ended, however that came. */
function streamUntil(
  body: ReadableStream<Bytes>,
  isEvents: boolean,
  signal: AbortSignal,
  over: () => void,
): ReadableStream<Bytes> {
  const reader = body.getReader()
  let isOver = false
  const finish = (): void => {
    isOver = true
    signal.removeEventListener('abort', breakOff)
    over()
  }
  let breakOff = (): void => undefined
  return new ReadableStream<Bytes>(
    {
      start(controller) {
        breakOff = () => {
          if (isOver) return
          finish()
          // A stream of events may end at any time; half an answer of another kind must not look whole.
          if (isEvents) controller.close()
          else controller.error(signal.reason)
          // Its reader is gone; that it fails to end is nobody's trouble any more.
          reader.cancel().catch(() => undefined)
        }
        signal.addEventListener('abort', breakOff)
        if (signal.aborted) breakOff()
      },
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (isOver) return
          if (done) {
            finish()
            controller.close()
          } else controller.enqueue(value)
        } catch (error) {
          if (isOver) return
          finish()
          controller.error(error)
        }
      },
      cancel(reason) {
        finish()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/** The shape that `table` names for this reader. */
export function shapeDefinition(table: string, principal: Principal, replicaId: string): ShapeDefinition {
  if (!isTableName(table))
    throw new HttpError(400, 'unknown_table', `There is no table '${table.slice(0, 80)}' to read.`)
  const conditions = visibleRows(tables[table], principal, replicaId)
  if (!conditions) throw new HttpError(403, 'forbidden', `You may not read ${table}.`)
  const entries = Object.entries(conditions)
  return {
    table,
    where: entries.map(([column], index) => `${quote(column)} = $${index + 1}`).join(' AND '),
    params: entries.map(([, value]) => value),
    replica: 'full',
  }
}
