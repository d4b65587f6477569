/**
 * `WS /v1/sync`: HTTP requests of one replica, multiplexed over one WebSocket (frames in `shared/sync/protocol.ts`).
 *
 *  1. The upgrade is authenticated and its origin checked like any request; the principal is looked up again every 30 s, whenever access changed, and
 *     for everything but shapes with each request. Gone: close 4401; somebody else: 4403.
 *  2. `cancel`, and the end of the socket, abort the request they belong to; nothing is answered then.
 *  3. A socket has at most 200 requests in flight; more are answered 429. A frame over the limit, or one that is no frame, closes the socket (4400).
 *  4. What a peer doesn't read is bounded (unsent.ts): answers wait, and large ones are read from disk one after the other and only when their turn has
 *     come.
 *  5. A peer that is gone without a word is noticed by the server's own pings.
 *  6. A live request with nothing to say is a record (shapes/holding.ts), not a promise: there are thirty of them for every socket. When access
 *     changes, whoever may not read any more is answered with the refusal, and a changed role has every held request looked at anew.
 */
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  CLOSE,
  type ClientFrame,
  clientFrameSchema,
  LIMITS,
  type Principal,
  type ServerFrame,
  SYNC_SUBPROTOCOL,
} from '@hq/shared/sync/protocol.ts'
import { WebSocket, WebSocketServer } from 'ws'
import { HttpError, knownError, unauthenticated } from '../errors.ts'
import type { ShapeResponse } from '../shapes/protocol.ts'
import { createTurns } from '../shapes/turns.ts'
import type { Env, Services } from './context.ts'
import { isOwnHost, isOwnOrigin, type Site } from './security.ts'
import type { ServeShape, ShapeQuery } from './shape-route.ts'
import { createUnsent, drained, type Unsent } from './unsent.ts'

const MAX_IN_FLIGHT = 200
const RECHECK_MS = 30_000
const PING_MS = 30_000
/** Requests of one socket that read a shape, and are not held. */
const READ_AT_ONCE = 8
/** Large answers that are in memory as text at the same time, over all sockets. */
const LARGE_AT_ONCE = 4
/** A body of the largest size, quoted once more as a JSON string. */
const MAX_FRAME = LIMITS.pushBytes * 2 + 64 * 1024

export interface SyncSocketOptions {
  readonly site: Site
  readonly services: Services
  readonly serveShape: ServeShape
  /** Every other route, called in process. */
  readonly fetch: (request: Request, env: Env['Bindings']) => Response | Promise<Response>
}

export interface SyncSockets {
  readonly count: () => number
  /** Closes all of them, with the code for a shutdown. */
  close(): void
}

export function attachSyncSockets(server: Server, options: SyncSocketOptions): SyncSockets {
  const wss = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME,
    perMessageDeflate: false,
    clientTracking: true,
    handleProtocols: (offered) => (offered.has(SYNC_SUBPROTOCOL) ? SYNC_SUBPROTOCOL : false),
  })
  const unsent = createUnsent(wss)
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    upgrade(request, socket, head, wss, options, unsent).catch((error: unknown) => {
      options.services.log('error', 'A WebSocket could not be opened.', { error: String(error) })
      socket.destroy()
    })
  })
  return {
    count: () => wss.clients.size,
    close: () => {
      for (const client of wss.clients) client.close(CLOSE.shuttingDown, 'the server is stopping')
      wss.close()
      unsent.stop()
    },
  }
}

const refuse = (socket: Duplex, status: string): void => {
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
}

async function upgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  wss: WebSocketServer,
  options: SyncSocketOptions,
  unsent: Unsent,
): Promise<void> {
  const { site, services } = options
  const path = (request.url ?? '').split('?')[0]
  if (path !== '/v1/sync') return refuse(socket, '404 Not Found')
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) if (typeof value === 'string') headers.set(name, value)
  if (!isOwnHost(site, request.headers.host)) return refuse(socket, '421 Misdirected Request')
  if (!headers.has('authorization') && !isOwnOrigin(headers)) return refuse(socket, '403 Forbidden')
  const principal = await services.authenticate(headers)
  wss.handleUpgrade(request, socket, head, (ws) => {
    // A browser sees the reason only after the upgrade: a refused upgrade looks like no network.
    if (!principal) return ws.close(CLOSE.unauthenticated, 'please sign in')
    if (ws.protocol !== SYNC_SUBPROTOCOL) return ws.close(CLOSE.protocol, `this server speaks ${SYNC_SUBPROTOCOL}`)
    serve(ws, principal, headers, request.socket.remoteAddress ?? 'unknown', options, unsent)
  })
}

function serve(
  ws: WebSocket,
  first: Principal,
  headers: Headers,
  address: string,
  options: SyncSocketOptions,
  unsent: Unsent,
): void {
  const { services } = options
  const inFlight = new Map<number, Flight>()
  const turns = createTurns(1)
  const reading = createTurns(READ_AT_ONCE)
  let principal = first
  let alive = true
  /** Settles when what was announced of access is known here. */
  let verdict: Promise<unknown> = Promise.resolve()

  const recheck = async (): Promise<Principal | undefined> => {
    const now = await services.authenticate(headers)
    if (!now) ws.close(CLOSE.unauthenticated, 'please sign in')
    else if (identityOf(now) !== identityOf(first))
      ws.close(CLOSE.forbidden, 'this connection belongs to somebody else')
    else {
      const before = principal
      principal = now
      if (roleOf(before) !== roleOf(now)) for (const { resume } of [...inFlight.values()]) resume?.()
      return now
    }
    // What is held for somebody who is out is not answered any more.
    for (const flight of inFlight.values()) flight.abort()
    return undefined
  }
  const recheckSafely = (): void => {
    verdict = Promise.all([recheck(), checkHeld()]).catch((error: unknown) =>
      services.log('warn', 'Could not check who a socket belongs to; trying again later.', { error: String(error) }),
    )
  }
  /** Of those that are held, whose replica was removed are answered: with that. */
  const checkHeld = async (): Promise<void> => {
    const held = new Set([...inFlight.values()].map(({ replicaId }) => replicaId))
    for (const replicaId of held) {
      if (replicaId === undefined) continue
      const isAllowed = await services.replicas.check(principal, replicaId).then(
        () => true,
        // A database that can't be asked just now refuses nobody: the next request is asked anyway.
        (error: unknown) => !(error instanceof HttpError) || error.status === 503,
      )
      if (isAllowed) continue
      for (const flight of [...inFlight.values()]) if (flight.replicaId === replicaId) flight.resume?.()
    }
  }
  const rechecking = setInterval(recheckSafely, RECHECK_MS)
  const unsubscribe = services.accessChanges.subscribe(recheckSafely)
  const pinging = setInterval(() => {
    if (!alive) return ws.terminate()
    alive = false
    ws.ping()
  }, PING_MS)

  const answer = async (frame: RequestFrame): Promise<void> => {
    const abort = new AbortController()
    const flight: Flight = { abort: () => abort.abort() }
    inFlight.set(frame.id, flight)
    try {
      if (!isShape(frame)) return await answerNow(frame, abort.signal)
      if (isLive(frame)) {
        if (!(await holds(frame, abort.signal))) await answerNow(frame, abort.signal)
        return
      }
      // What reads a shape from somewhere on is made only when it can be sent.
      await reading.run(async () => {
        await drained(ws, unsent)
        if (!abort.signal.aborted) await answerNow(frame, abort.signal)
      })
    } finally {
      if (inFlight.get(frame.id) === flight) inFlight.delete(frame.id)
    }
  }

  /** Whether the request is held now, under the same id (6). */
  const holds = async (frame: RequestFrame, signal: AbortSignal): Promise<boolean> => {
    const { id } = frame
    const resume = (): void => {
      inFlight.get(id)?.abort()
      inFlight.delete(id)
      start(answerHeld(frame))
    }
    let hold: Awaited<ReturnType<ServeShape['hold']>>
    try {
      hold = await options.serveShape.hold(shapeQuery(frame, principal, signal), resume)
    } catch {
      return false // `answerNow` meets the same and says it
    }
    if (!hold) return false
    const { replicaId, cancel } = hold
    if (signal.aborted) cancel()
    else inFlight.set(id, { replicaId, resume, abort: cancel })
    return true
  }

  /** What was held has something to say, or to be told. */
  const answerHeld = async (frame: RequestFrame): Promise<void> => {
    const abort = new AbortController()
    const flight: Flight = { abort: () => abort.abort() }
    inFlight.set(frame.id, flight)
    try {
      // Rows that came together with a change of access wait for the verdict.
      await verdict
      if (!abort.signal.aborted) await answerNow(frame, abort.signal, false)
    } finally {
      if (inFlight.get(frame.id) === flight) inFlight.delete(frame.id)
    }
  }

  const answerNow = async (frame: RequestFrame, signal: AbortSignal, mayHold = true): Promise<void> => {
    const caller = async (): Promise<Principal> => {
      const known = isShape(frame) ? principal : await recheck()
      if (!known) throw unauthenticated()
      return known
    }
    const response = await respond(frame, caller, address, signal, mayHold, options)
    if (response.body instanceof ReadableStream) {
      const { body } = response
      await turns.run(() => sendLarge(ws, frame.id, { ...response, body }, signal, unsent))
    } else {
      await drained(ws, unsent)
      if (!signal.aborted) sendAnswer(ws, frame.id, response, quoted(response.body))
    }
  }

  const start = (work: Promise<void>): void => {
    work.catch((error: unknown) =>
      services.log('error', 'A request over the WebSocket failed.', { error: String(error) }),
    )
  }

  ws.on('pong', () => (alive = true))
  ws.on('message', (data, isBinary) => {
    alive = true
    const frame = isBinary ? undefined : readFrame(String(data))
    if (!frame) return ws.close(CLOSE.protocol, 'not a frame of this protocol')
    if (frame.t === 'ping') return send(ws, { t: 'pong', n: frame.n })
    if (frame.t === 'cancel') {
      inFlight.get(frame.id)?.abort()
      inFlight.delete(frame.id)
      return
    }
    if (inFlight.has(frame.id)) return ws.close(CLOSE.protocol, 'a request id was used twice')
    if (inFlight.size >= MAX_IN_FLIGHT) {
      const busy = errorResponse(new HttpError(429, 'busy', `More than ${MAX_IN_FLIGHT} requests at once.`))
      return sendAnswer(ws, frame.id, busy, quoted(busy.body))
    }
    start(answer(frame))
  })
  ws.on('error', (error) => services.log('debug', 'A WebSocket ended with an error.', { error: String(error) }))
  ws.on('close', () => {
    clearInterval(rechecking)
    clearInterval(pinging)
    unsubscribe()
    for (const flight of inFlight.values()) flight.abort()
    inFlight.clear()
  })
}

type RequestFrame = ClientFrame & { t: 'req' }

/** A request that is not answered yet. The last two are of those that are held. */
interface Flight {
  readonly abort: () => void
  readonly replicaId?: string
  /** Answers it now. */
  readonly resume?: () => void
}

const isShape = ({ path }: { readonly path: string }): boolean => /^\/v1\/shape(?:[?#]|$)/.test(path)

const isLive = ({ path }: { readonly path: string }): boolean => /[?&]live=/.test(path)

const identityOf = (principal: Principal): string =>
  principal.kind === 'person' ? principal.person_id : principal.gateway_id

const roleOf = (principal: Principal): string | undefined => (principal.kind === 'person' ? principal.role : undefined)

/** No Request and no router: these are the bulk of all requests. */
function shapeQuery(
  { method, path, headers }: RequestFrame,
  principal: Principal,
  signal: AbortSignal,
  mayHold = true,
): ShapeQuery {
  const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  const search = new URLSearchParams(/\?([^#]*)/.exec(path)?.[1])
  return { principal, method, search, header: (name) => lower.get(name), signal, mayHold }
}

function readFrame(text: string): ClientFrame | undefined {
  try {
    return clientFrameSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined // not JSON; the caller closes the socket and says so
  }
}

type Answer = Omit<ShapeResponse, 'body'> & { readonly body: ShapeResponse['body'] | string }

async function respond(
  frame: RequestFrame,
  callerOf: () => Promise<Principal>,
  address: string,
  signal: AbortSignal,
  mayHold: boolean,
  { serveShape, fetch, services }: SyncSocketOptions,
): Promise<Answer> {
  try {
    const principal = await callerOf()
    if (isShape(frame)) return await serveShape(shapeQuery(frame, principal, signal, mayHold))
    const response = await fetch(requestOf(frame, signal), { inProcess: { principal, address } })
    return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() }
  } catch (error) {
    const known = knownError(error)
    if (known) return errorResponse(known)
    if (!signal.aborted)
      services.log('error', 'A request failed.', {
        path: frame.path.split('?')[0],
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      })
    return errorResponse(new HttpError(500, 'internal', 'Something went wrong in the server; its log says what.'))
  }
}

function requestOf({ method, path, headers, body }: RequestFrame, signal: AbortSignal): Request {
  const init: RequestInit = { method, headers: { ...headers, host: 'localhost' }, signal }
  if (body !== undefined && method !== 'GET') init.body = body
  try {
    return new Request(new URL(path, 'http://hq.local'), init)
  } catch (error) {
    throw new HttpError(400, 'malformed', `That is no request of HTTP: ${String(error).slice(0, 200)}`)
  }
}

const errorResponse = ({ status, body, headers }: HttpError): Omit<Answer, 'body'> & { readonly body: string } => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

const large = createTurns(LARGE_AT_ONCE)

async function sendLarge(
  ws: WebSocket,
  id: number,
  { body, ...rest }: Answer & { readonly body: ReadableStream<Uint8Array<ArrayBuffer>> },
  signal: AbortSignal,
  unsent: Unsent,
): Promise<void> {
  await drained(ws, unsent)
  await large.run(async () => {
    // Others may have been sent much meanwhile.
    await drained(ws, unsent)
    while (unsent.isTooMuch() && ws.readyState === WebSocket.OPEN) await new Promise((later) => setTimeout(later, 20))
    if (signal.aborted) return body.cancel()
    // A snapshot that was thrown away at this moment: asked again, there is another.
    const text = await new Response(body).text().catch(() => undefined)
    if (signal.aborted) return
    if (text === undefined) {
      const gone = errorResponse(
        new HttpError(503, 'busy', 'The snapshot changed while it was read; please ask again.'),
      )
      sendAnswer(ws, id, gone, quoted(gone.body))
    } else sendAnswer(ws, id, rest, JSON.stringify(text))
    unsent.watch(ws)
  })
}

/** A change that a thousand sockets get is quoted once; larger bodies are not kept twice. */
const QUOTED_BYTES = 64 * 1024
const alreadyQuoted = new WeakMap<Uint8Array, string>()

/** A body as a JSON string. */
function quoted(body: Uint8Array<ArrayBuffer> | string | null): string {
  if (body === null || typeof body === 'string') return JSON.stringify(body ?? '')
  const known = alreadyQuoted.get(body)
  if (known !== undefined) return known
  const text = JSON.stringify(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'))
  if (body.byteLength <= QUOTED_BYTES) alreadyQuoted.set(body, text)
  return text
}

const sendAnswer = (
  ws: WebSocket,
  id: number,
  { status, headers }: Pick<Answer, 'status' | 'headers'>,
  body: string,
): void => {
  if (ws.readyState !== WebSocket.OPEN) return
  ws.send(`{"t":"res","id":${id},"status":${status},"headers":${JSON.stringify(headers)},"body":${body}}`)
}

const send = (ws: WebSocket, frame: ServerFrame): void => {
  if (ws.readyState === WebSocket.OPEN) ws.send(JSON.stringify(frame))
}
