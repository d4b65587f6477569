/**
 * One WebSocket to a running OpenClaw.
 *
 *  S1 Every request ends: with its answer, with a timeout, or with the connection (`ConnectionLost`). Nothing is sent twice by itself.
 *  S2 A lost connection is made anew, after 0.25 s at first, at most 10 s, jittered, until `close`. `onUp` is told each time, with the server's boot id:
 *     another one means that what ran there before is gone.
 *  S3 Events carry a number; one that is missing is told once by `onGap`, so that the owner asks for what it may have missed.
 *  S4 A frame that can't be read is dropped and logged without its content.
 */
import { WebSocket } from 'ws'
import type { Log } from '../../service.ts'
import { type Frame, frameSchema, helloSchema, PROTOCOL } from './frames.ts'

export interface OpenClawSocket {
  /** Two answers under one id: `accepted` resolves with the first, the promise with the last. */
  request(method: string, params: object, options?: RequestOptions): Promise<unknown>
  connected(): boolean
  /** Resolves when it is connected; rejects when `signal` is aborted or it was closed. */
  up(signal: AbortSignal): Promise<void>
  close(): void
}

export interface RequestOptions {
  /** ms. Default 20,000. */
  readonly timeoutMs?: number
  /** The first answer may be followed by another (`status: accepted`). */
  readonly twoAnswers?: boolean
  readonly onAccepted?: (payload: unknown) => void
  readonly signal?: AbortSignal
}

export interface SocketOptions {
  readonly url: string
  readonly token: string
  readonly version: string
  readonly log: Log
  readonly random?: () => number
  readonly onEvent: (event: string, payload: unknown) => void
  readonly onUp: (bootId: string | undefined) => void
  readonly onGap: () => void
}

export class ConnectionLost extends Error {
  override name = 'ConnectionLost'
}

/** What the other side refused. */
export class RequestRefused extends Error {
  override name = 'RequestRefused'
  readonly code: string
  readonly retryable: boolean
  constructor(code: string, message: string, retryable: boolean) {
    super(message)
    this.code = code
    this.retryable = retryable
  }
}

const SCOPES = ['operator.read', 'operator.write', 'operator.admin', 'operator.pairing', 'operator.approvals']

interface Waiting {
  readonly method: string
  readonly options: RequestOptions
  readonly resolve: (payload: unknown) => void
  readonly reject: (error: Error) => void
}

export function connectOpenClaw({
  url,
  token,
  version,
  log,
  random = Math.random,
  ...told
}: SocketOptions): OpenClawSocket {
  const waiting = new Map<string, Waiting>()
  const listeners = new Set<() => void>()
  let socket: WebSocket | undefined
  let greeted = false
  let closed = false
  let failures = 0
  let retry: NodeJS.Timeout | undefined
  let next = 0
  let seq: number | undefined

  const announce = (): void => {
    for (const listener of [...listeners]) listener()
  }

  function open(): void {
    if (closed) return
    const opening = new WebSocket(url, { maxPayload: 32 * 1024 * 1024, handshakeTimeout: 10_000 })
    socket = opening
    seq = undefined
    opening.on('message', (data) => {
      if (socket === opening) read(String(data))
    })
    // A close follows, and says the same.
    opening.on('error', () => undefined)
    opening.on('close', () => {
      if (socket === opening) lost()
    })
  }

  function lost(): void {
    socket = undefined
    greeted = false
    for (const [id, { reject, method }] of waiting) {
      waiting.delete(id)
      reject(new ConnectionLost(`The connection to OpenClaw ended before ${method} was answered.`))
    }
    if (closed) return
    const delay = Math.min(10_000, 250 * 2 ** failures) * (0.5 + random() / 2)
    failures += 1
    retry = setTimeout(open, delay)
  }

  function read(text: string): void {
    let frame: Frame
    try {
      frame = frameSchema.parse(JSON.parse(text))
    } catch {
      log('warn', 'OpenClaw sent a frame that HQ can’t read (S4)', { length: text.length })
      return
    }
    if (frame.type === 'event') {
      if (frame.event === 'connect.challenge') {
        greet()
        return
      }
      if (frame.seq !== undefined) {
        const gap = seq !== undefined && frame.seq > seq + 1
        seq = frame.seq
        if (gap) told.onGap()
      }
      told.onEvent(frame.event, frame.payload)
      return
    }
    const waiter = waiting.get(frame.id)
    if (!waiter) return
    if (!frame.ok) {
      waiting.delete(frame.id)
      const { code = 'ERROR', message = 'no reason given', retryable = false } = frame.error ?? {}
      waiter.reject(new RequestRefused(code, `OpenClaw refused ${waiter.method}: ${message} (${code})`, retryable))
      return
    }
    if (waiter.options.twoAnswers && isAccepted(frame.payload)) {
      waiter.options.onAccepted?.(frame.payload)
      return
    }
    waiting.delete(frame.id)
    waiter.resolve(frame.payload)
  }

  function greet(): void {
    send('connect', {
      minProtocol: PROTOCOL,
      maxProtocol: PROTOCOL,
      client: { id: 'gateway-client', version, platform: process.platform, mode: 'backend' },
      role: 'operator',
      scopes: SCOPES,
      caps: ['tool-events'],
      auth: { token },
    }).then(
      (payload) => {
        const hello = helloSchema.parse(payload)
        greeted = true
        failures = 0
        told.onUp(hello.server?.bootId)
        announce()
      },
      (error: Error) => {
        log('warn', 'OpenClaw did not let the gateway in', { reason: error.message })
        socket?.terminate()
      },
    )
  }

  function send(method: string, params: object, options: RequestOptions = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const live = socket
      if (closed || live?.readyState !== WebSocket.OPEN) {
        reject(new ConnectionLost('OpenClaw is not connected.'))
        return
      }
      if (options.signal?.aborted) {
        reject(new Error('aborted'))
        return
      }
      const id = String(++next)
      const timer = setTimeout(() => {
        waiting.delete(id)
        end()
        reject(new RequestRefused('TIMEOUT', `OpenClaw did not answer ${method} in time.`, true))
      }, options.timeoutMs ?? 20_000)
      const abort = (): void => {
        waiting.delete(id)
        end()
        reject(new Error('aborted'))
      }
      const end = (): void => {
        clearTimeout(timer)
        options.signal?.removeEventListener('abort', abort)
      }
      options.signal?.addEventListener('abort', abort, { once: true })
      waiting.set(id, {
        method,
        options,
        resolve: (payload) => {
          end()
          resolve(payload)
        },
        reject: (error) => {
          end()
          reject(error)
        },
      })
      live.send(JSON.stringify({ type: 'req', id, method, params }))
    })
  }

  open()
  return {
    request: (method, params, options) =>
      greeted ? send(method, params, options) : Promise.reject(new ConnectionLost('OpenClaw is not connected.')),
    connected: () => greeted,
    up(signal) {
      if (greeted) return Promise.resolve()
      return new Promise((resolve, reject) => {
        const stop = (): void => {
          listeners.delete(look)
          signal.removeEventListener('abort', look)
        }
        const look = (): void => {
          if (greeted) {
            stop()
            resolve()
          } else if (closed || signal.aborted) {
            stop()
            reject(new ConnectionLost('OpenClaw is not connected.'))
          }
        }
        listeners.add(look)
        signal.addEventListener('abort', look, { once: true })
        look()
      })
    },
    close() {
      closed = true
      clearTimeout(retry)
      const closing = socket
      if (closing) {
        closing.close()
        lost()
        // A peer that never says goodbye holds nothing of ours.
        setTimeout(() => closing.terminate(), 1_000).unref()
      }
      announce()
    },
  }
}

const isAccepted = (payload: unknown): boolean =>
  typeof payload === 'object' && payload !== null && 'status' in payload && payload.status === 'accepted'
