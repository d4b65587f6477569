/**
 * HTTP requests of a replica, multiplexed over one WebSocket (frames: protocol.ts). A browser allows six connections per origin; every live shape
 * would hold one of them.
 *
 * T1 One socket at a time; requests that come while it is being opened wait for it and share it.
 * T2 A request that cannot be sent, or whose answer can no longer come, rejects with a TypeError, like `fetch` without a network.
 *    It may have had its effect: repeating is its sender's matter.
 * T3 A connection that is silently dead is noticed within 25 s and given up; a reconnect is tried with full jitter, at once after `wake`.
 * T4 An aborted or timed-out request tells the server, and its late answer is thrown away.
 * T5 A socket closed for lack of rights answers its requests, and all until the next successful connect, with 401 or 403, not as a missing network.
 */
import { backoffMs, type LinkState, type TransportSignals } from './link.ts'
import { CLOSE, type ClientFrame, SYNC_SUBPROTOCOL, serverFrameSchema } from './protocol.ts'

/** What browsers' `WebSocket` and that of the package `ws` have in common. */
export interface WebSocketLike {
  send(data: string): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'open' | 'error', listener: () => void): void
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void
  addEventListener(type: 'close', listener: (event: { readonly code: number; readonly reason?: unknown }) => void): void
}

export interface MultiplexerOptions {
  /** `ws://…/v1/sync` or `wss://…`. */
  readonly url: string
  /** Browser: `(url, protocol) => new WebSocket(url, protocol)`; Node: the same from `ws`, with an Authorization header. */
  readonly openSocket: (url: string, protocol: string) => WebSocketLike
  /** Milliseconds; for tests. */
  readonly timing?: Partial<Timing>
}

export interface Timing {
  readonly connect: number
  readonly pingEvery: number
  readonly deadAfter: number
  readonly request: number
  /** Delay before reconnect number n. */
  readonly reconnect: (attempt: number) => number
}

export interface Multiplexer extends TransportSignals {
  readonly fetch: (input: string, init?: RequestInit) => Promise<Response>
  onOnline(listener: () => void): () => void
  /** The network is back, or somebody has signed in: connect now; when connected, check that the connection lives. */
  wake(): void
  close(): void
}

const TIMING: Timing = { connect: 10_000, pingEvery: 10_000, deadAfter: 25_000, request: 60_000, reconnect: backoffMs }

interface Pending {
  readonly frame: ClientFrame & { t: 'req' }
  readonly resolve: (response: Response) => void
  readonly reject: (error: Error) => void
}

export function createMultiplexer(options: MultiplexerOptions): Multiplexer {
  const timing = { ...TIMING, ...options.timing }
  const pending = new Map<number, Pending>()
  const listeners = new Set<(state: LinkState) => void>()
  let state: LinkState = 'connecting'
  let socket: WebSocketLike | undefined
  let refusal: { status: number; code: string } | undefined
  let reconnectTimer: ReturnType<typeof setTimeout> | undefined
  let attempt = 0
  let nextId = 1
  let closed = false

  const setState = (next: LinkState): void => {
    if (next === state) return
    state = next
    for (const listener of [...listeners]) listener(next)
  }

  const connect = (): void => {
    clearTimeout(reconnectTimer)
    reconnectTimer = undefined
    if (socket || closed) return
    let opened: WebSocketLike
    try {
      opened = options.openSocket(options.url, SYNC_SUBPROTOCOL)
    } catch (error) {
      lost(error instanceof Error ? error.message : String(error))
      return
    }
    socket = opened
    let heardAt = performance.now()
    let pingedAt = heardAt
    let pings = 0
    let watch: ReturnType<typeof setInterval> | undefined
    const ours = (): boolean => socket === opened
    const giveUp = (reason: string): void => {
      clearTimeout(connecting)
      clearInterval(watch)
      if (!ours()) return
      socket = undefined
      lost(reason)
      opened.close()
    }
    const connecting = setTimeout(() => giveUp('the connection could not be opened in time'), timing.connect)

    opened.addEventListener('open', () => {
      if (!ours()) return opened.close()
      clearTimeout(connecting)
      heardAt = performance.now()
      watch = setInterval(
        () => {
          const now = performance.now()
          if (now - heardAt > timing.deadAfter) return giveUp('the server fell silent')
          if (now - pingedAt < timing.pingEvery) return
          pingedAt = now
          opened.send(JSON.stringify({ t: 'ping', n: ++pings } satisfies ClientFrame))
        },
        Math.max(10, Math.min(timing.pingEvery, timing.deadAfter) / 4),
      )
      for (const { frame } of pending.values()) opened.send(JSON.stringify(frame))
      setState('online')
    })
    opened.addEventListener('message', ({ data }: { data: unknown }) => {
      if (!ours()) return
      heardAt = performance.now()
      const frame = readFrame(data)
      if (!frame) return
      // A refused socket opens and closes at once; only an answer proves that the server lets us in.
      attempt = 0
      refusal = undefined
      if (frame.t === 'res') settle(frame.id, toResponse(frame.status, frame.headers, frame.body))
    })
    opened.addEventListener('close', ({ code, reason }: { code: number; reason?: unknown }) => {
      clearTimeout(connecting)
      clearInterval(watch)
      if (!ours()) return
      socket = undefined
      refusal = REFUSALS[code]
      lost(refusal?.code ?? `the connection ended (${code}${reason ? ` ${String(reason)}` : ''})`)
    })
    // 'close' follows; Node's `ws` would throw without a listener.
    opened.addEventListener('error', () => undefined)
  }

  /** There is no connection any more. Everything that waits fails; a new connection is tried later. */
  const lost = (reason: string): void => {
    const waiting = [...pending.values()]
    pending.clear()
    setState('offline')
    for (const { resolve, reject } of waiting) {
      if (refusal) resolve(refused(refusal))
      else reject(new TypeError(`The server cannot be reached: ${reason}`))
    }
    if (!closed) reconnectTimer ??= setTimeout(connect, timing.reconnect(attempt++))
  }

  const settle = (id: number, response: Response): void => {
    pending.get(id)?.resolve(response)
    pending.delete(id)
  }

  const send = (frame: ClientFrame): void => {
    if (socket && state === 'online') socket.send(JSON.stringify(frame))
  }

  const request = (input: string, init: RequestInit = {}): Promise<Response> =>
    new Promise((resolve, reject) => {
      const signal = init.signal ?? undefined
      if (signal?.aborted) return reject(abortReason(signal))
      if (!socket) {
        if (refusal) return resolve(refused(refusal))
        return reject(new TypeError('The server cannot be reached: not connected'))
      }
      const url = new URL(input)
      const id = nextId++
      const headers: Record<string, string> = {}
      new Headers(init.headers).forEach((value, name) => {
        headers[name] = value
      })
      const frame: ClientFrame & { t: 'req' } = {
        t: 'req',
        id,
        method: (init.method ?? 'GET') as 'GET',
        path: `${url.pathname}${url.search}`,
        headers,
        ...(init.body != null && { body: String(init.body) }),
      }
      const finish = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', aborted)
      }
      const giveUp = (error: Error): void => {
        if (!pending.delete(id)) return
        send({ t: 'cancel', id })
        finish()
        reject(error)
      }
      const aborted = (): void => giveUp(abortReason(signal))
      const timer = setTimeout(() => giveUp(new TypeError(`No answer within ${timing.request} ms`)), timing.request)
      signal?.addEventListener('abort', aborted, { once: true })
      pending.set(id, {
        frame,
        resolve: (response) => {
          finish()
          resolve(response)
        },
        reject: (error) => {
          finish()
          reject(error)
        },
      })
      send(frame)
    })

  connect()
  return {
    fetch: request,
    state: () => state,
    onState(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    onOnline(listener) {
      const heard = (next: LinkState): void => {
        if (next === 'online') listener()
      }
      listeners.add(heard)
      return () => listeners.delete(heard)
    },
    wake() {
      attempt = 0
      if (!socket) connect()
      else send({ t: 'ping', n: 0 })
    },
    close() {
      if (closed) return
      closed = true
      clearTimeout(reconnectTimer)
      const open = socket
      socket = undefined
      lost('closed')
      open?.close(1000)
      listeners.clear()
    },
  }
}

const REFUSALS: Readonly<Record<number, { status: number; code: string }>> = {
  [CLOSE.unauthenticated]: { status: 401, code: 'unauthenticated' },
  [CLOSE.forbidden]: { status: 403, code: 'forbidden' },
  [CLOSE.protocol]: { status: 426, code: 'protocol' },
}

const refused = ({ status, code }: { status: number; code: string }): Response =>
  Response.json({ code, message: `The server closed the connection: ${code}` }, { status })

const WITHOUT_BODY = new Set([204, 205, 304])

const toResponse = (status: number, headers: Record<string, string>, body: string): Response =>
  new Response(WITHOUT_BODY.has(status) ? null : body, { status, headers })

const readFrame = (data: unknown) => {
  try {
    const frame = serverFrameSchema.safeParse(JSON.parse(String(data)))
    return frame.success ? frame.data : undefined
  } catch {
    // Not JSON: a newer server's frame or noise. What waits for an answer times out.
    return undefined
  }
}

const abortReason = (signal: AbortSignal | undefined): Error =>
  signal?.reason instanceof Error ? signal.reason : new DOMException('This operation was aborted', 'AbortError')
