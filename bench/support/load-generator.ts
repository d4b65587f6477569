/**
 * The process behind `startLoad` (load.ts): sockets and shapes of many replicas, no databases.
 *
 * A shape here does what Electric's client does: reads from `-1` until it is up to date, then holds a live request; 409 means from the start, with the
 * handle of the answer; what fails is asked again after a while. A socket that ends comes back after a jittered pause and goes on.
 */
import { createHash } from 'node:crypto'
import { SYNC_SUBPROTOCOL } from '@hq/shared/sync/protocol.ts'
import { WebSocket } from 'ws'
import { type Held, type LoadNews, type LoadOrder, type LoadReplica, type LoadReport, nowMs } from './load.ts'

interface Shape {
  readonly table: string
  offset: string
  handle: string | undefined
  cursor: string | undefined
  isLive: boolean
  /** Row keys with the time of their last change. */
  readonly rows: Map<string, string> | undefined
}

interface Message {
  readonly key?: string
  readonly value?: Readonly<Record<string, string | null>>
  readonly headers: { readonly operation?: string; readonly control?: string }
}

interface Answer {
  readonly t: 'res' | 'pong'
  readonly id: number
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const OPENED_AT_ONCE = 50
const AGAIN_MS = 1_000

const say = (news: LoadNews): void => void process.send?.(news)

let watched: { readonly text: string; readonly at: Map<Replica, number> } | undefined
let requests = 0
let refetches = 0
const refused: Record<string, number> = {}
const replicas: Replica[] = []
let keep = false

class Replica {
  readonly shapes: readonly Shape[]
  readonly #waiting = new Map<number, Shape>()
  #socket: WebSocket | undefined
  #nextId = 1
  readonly #url: string
  readonly #about: LoadReplica

  constructor(url: string, about: LoadReplica) {
    this.#url = url
    this.#about = about
    this.shapes = about.tables.map((table) => ({
      table,
      offset: '-1',
      handle: undefined,
      cursor: undefined,
      isLive: false,
      rows: keep ? new Map() : undefined,
    }))
  }

  get isConnected(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN
  }

  connect(): void {
    const address = `${this.#url.replace(/^http/, 'ws')}/v1/sync`
    const socket = new WebSocket(address, SYNC_SUBPROTOCOL, {
      headers: { ...this.#about.headers },
      origin: this.#url,
      perMessageDeflate: false,
    })
    this.#socket = socket
    socket.on('open', () => {
      for (const shape of this.shapes) this.#ask(shape)
    })
    socket.on('message', (data) => this.#hear(String(data)))
    socket.on('error', () => undefined) // `close` follows
    socket.on('close', () => {
      this.#waiting.clear()
      setTimeout(() => this.connect(), Math.random() * AGAIN_MS)
    })
  }

  cut(): void {
    this.#socket?.terminate()
  }

  #ask(shape: Shape): void {
    if (!this.isConnected) return
    const id = this.#nextId++
    const query = new URLSearchParams({
      table: shape.table,
      replica: 'full',
      replica_id: this.#about.replicaId,
      offset: shape.offset,
    })
    if (shape.handle && shape.offset !== '-1') query.set('handle', shape.handle)
    if (shape.isLive) {
      query.set('live', 'true')
      if (shape.cursor) query.set('cursor', shape.cursor)
    }
    this.#waiting.set(id, shape)
    requests++
    this.#socket?.send(JSON.stringify({ t: 'req', id, method: 'GET', path: `/v1/shape?${query}`, headers: {} }))
  }

  #hear(data: string): void {
    if (watched && !watched.at.has(this) && data.includes(watched.text)) {
      watched.at.set(this, nowMs())
      if (watched.at.size === replicas.length) {
        say({ type: 'seen', text: watched.text, at: [...watched.at.values()] })
        watched = undefined
      }
    }
    const answer = JSON.parse(data) as Answer
    const shape = answer.t === 'res' ? this.#waiting.get(answer.id) : undefined
    if (!shape) return
    this.#waiting.delete(answer.id)
    this.#take(shape, answer)
  }

  #take(shape: Shape, { status, headers, body }: Answer): void {
    if (status === 200) {
      shape.offset = headers['electric-offset'] ?? shape.offset
      shape.handle = headers['electric-handle'] ?? shape.handle
      shape.cursor = headers['electric-cursor']
      if (shape.rows) apply(shape.rows, JSON.parse(body) as Message[])
      if (headers['electric-up-to-date'] !== undefined && !shape.isLive) {
        shape.isLive = true
        checkReady()
      }
      this.#ask(shape)
      return
    }
    if (status === 409) {
      refetches++
      shape.offset = '-1'
      shape.handle = headers['electric-handle']
      shape.isLive = false
      shape.rows?.clear()
      this.#ask(shape)
      return
    }
    const what = `${status} ${body.slice(0, 200)}`
    refused[what] = (refused[what] ?? 0) + 1
    setTimeout(() => this.#ask(shape), AGAIN_MS * (0.5 + Math.random()))
  }
}

function apply(rows: Map<string, string>, messages: readonly Message[]): void {
  for (const { key, value, headers } of messages) {
    if (key === undefined) continue
    if (headers.operation === 'delete') rows.delete(key)
    else rows.set(key, `${value?.['id']} ${value?.['updated_at']}`)
  }
}

let isReady = false
let upToDate = 0

function checkReady(): void {
  upToDate++
  if (isReady || upToDate < replicas.reduce((sum, { shapes }) => sum + shapes.length, 0)) return
  isReady = true
  say({ type: 'ready' })
}

function report(): LoadReport {
  return {
    connected: replicas.filter(({ isConnected }) => isConnected).length,
    upToDate,
    shapes: replicas.reduce((sum, { shapes }) => sum + shapes.length, 0),
    requests,
    refetches,
    refused,
    held: keep
      ? replicas.map(({ shapes }) => Object.fromEntries(shapes.map(({ table, rows }) => [table, heldOf(rows)])))
      : [],
  }
}

function heldOf(rows: Map<string, string> | undefined): Held {
  const lines = [...(rows?.values() ?? [])].sort()
  return { rows: lines.length, digest: createHash('md5').update(lines.join('\n')).digest('hex') }
}

/** A few at a time: a thousand devices do not come in the same millisecond either. */
async function openAll(url: string, all: readonly LoadReplica[]): Promise<void> {
  replicas.push(...all.map((about) => new Replica(url, about)))
  for (let from = 0; from < replicas.length; from += OPENED_AT_ONCE) {
    for (const replica of replicas.slice(from, from + OPENED_AT_ONCE)) replica.connect()
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

process.on('disconnect', () => process.exit(0))
process.on('message', (message) => {
  const order = message as LoadOrder
  if (order.type === 'open') {
    keep = order.keep
    openAll(order.url, order.replicas).catch((error: unknown) => say({ type: 'failed', message: String(error) }))
  } else if (order.type === 'watch') watched = { text: order.text, at: new Map() }
  else if (order.type === 'reconnect') {
    for (let n = 0; n < order.count; n++) replicas[Math.floor(Math.random() * replicas.length)]?.cut()
  } else say({ type: 'report', report: report() })
})
