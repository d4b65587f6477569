/**
 * The way to the server as the sync parts see it: requests with the replica's headers, whether we are online, and sleeping that a reconnect ends.
 *
 * N1 A request that cannot reach the server is repeated by its caller after full-jitter back-off; whoever sleeps because of it is woken at once when
 *    the connection is back (`sleep`).
 * N2 The state follows what really happened: the transport's word when there is one, otherwise the fate of the last request.
 * N3 Online means that changes can be read: while the server answers a table's shape with 503 (its database or its Electric is away), the state is
 *    `connecting`, so that nobody is told that all is up to date.
 */
import type { ReplicaEnvironment, SyncStatus } from './contract.ts'
import { REPLICA_HEADER } from './protocol.ts'

export type LinkState = 'connecting' | 'online' | 'offline'

/** What a transport with its own connection (the WebSocket multiplexer) adds to `fetch`. */
export interface TransportSignals {
  state(): LinkState
  onState(listener: (state: LinkState) => void): () => void
}

export interface Link {
  /** Path and query below the server's address. Rejects with a TypeError when the server cannot be reached. */
  request(path: string, init?: RequestInit): Promise<Response>
  /** Resolves after `ms`, or when the connection came (back), or when the signal fires. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Ends every sleep: something changed that makes another try worth while. */
  wake(): void
  setUnauthorized(unauthorized: boolean): void
  connection(): SyncStatus['connection']
  lastHeardAt(): string | null
  /** Since when the server is there but some table cannot be read (N3). */
  stalledSince(): string | null
  /** Called when `connection` or `lastHeardAt` changed, and with true when we came online. */
  onChange(listener: (cameOnline: boolean) => void): () => void
  close(): void
}

export const BACKOFF = { firstMs: 250, maxMs: 15_000 } as const

/** Full jitter: anywhere between 0 and the doubled limit. `random` is in [0, 1). */
export const backoffMs = (attempt: number, random: number = Math.random()): number =>
  random * Math.min(BACKOFF.maxMs, BACKOFF.firstMs * 2 ** Math.min(attempt, 16))

export interface LinkOptions {
  readonly serverUrl: string
  readonly environment: ReplicaEnvironment
  readonly replicaId: () => string
  readonly signals?: TransportSignals | undefined
}

export function createLink({ serverUrl, environment, replicaId, signals }: LinkOptions): Link {
  let state: LinkState = signals?.state() ?? 'connecting'
  let unauthorized = false
  let heardAt: number | undefined
  /** Tables whose shape the server could not read when it was last asked (N3). */
  const unreadable = new Set<string>()
  let unreadableAt = 0
  const listeners = new Set<(cameOnline: boolean) => void>()
  const sleepers = new Set<() => void>()

  const wake = (): void => {
    for (const end of [...sleepers]) end()
  }
  const notify = (cameOnline: boolean): void => {
    for (const listener of [...listeners]) listener(cameOnline)
  }
  const setState = (next: LinkState): void => {
    if (next === state) return
    state = next
    if (next === 'online') wake()
    notify(next === 'online')
  }
  const unsubscribe = signals?.onState(setState)

  const noteRead = (path: string, status: number): void => {
    const { pathname, searchParams } = new URL(path, serverUrl)
    if (pathname !== '/v1/shape') return
    const before = unreadable.size
    const table = searchParams.get('table') ?? ''
    if (status === 503 && before === 0) unreadableAt = environment.now()
    if (status === 503) unreadable.add(table)
    else unreadable.delete(table)
    if ((before === 0) !== (unreadable.size === 0)) notify(false)
  }

  return {
    async request(path, init = {}) {
      const headers = new Headers(init.headers)
      headers.set(REPLICA_HEADER, replicaId())
      try {
        const response = await environment.fetch(new URL(path, serverUrl).toString(), { ...init, headers })
        heardAt = environment.now()
        if (response.ok) this.setUnauthorized(false)
        noteRead(path, response.status)
        if (!signals) setState('online')
        return response
      } catch (error) {
        if (!signals && !init.signal?.aborted) setState('offline')
        throw error
      }
    },
    sleep(ms, signal) {
      if (ms <= 0) return Promise.resolve()
      return new Promise((resolve) => {
        const end = (): void => {
          clearTimeout(timer)
          sleepers.delete(end)
          signal?.removeEventListener('abort', end)
          resolve()
        }
        const timer = setTimeout(end, ms)
        sleepers.add(end)
        signal?.addEventListener('abort', end, { once: true })
        if (signal?.aborted) end()
      })
    },
    wake,
    setUnauthorized(next) {
      if (next === unauthorized) return
      unauthorized = next
      if (!next) wake()
      notify(false)
    },
    connection: () => {
      if (unauthorized) return 'unauthorized'
      return state === 'online' && unreadable.size > 0 ? 'connecting' : state
    },
    lastHeardAt: () => (heardAt === undefined ? null : new Date(heardAt).toISOString()),
    stalledSince: () => (state === 'online' && unreadable.size > 0 ? new Date(unreadableAt).toISOString() : null),
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close() {
      unsubscribe?.()
      wake()
      listeners.clear()
    },
  }
}
