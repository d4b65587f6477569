/**
 * The page's end of the replica: calls to this tab's worker, what it reports, and the live queries.
 *
 * C1 Every call ends: with its answer, or with an error at most `CALL_LIMIT_MS` after the database was first open here.
 *    Before that (first visit: the database is being installed) calls wait, because the screen shows how far it is.
 * C2 A worker that dies is replaced and its unanswered calls are sent again with their ids; writes count once.
 */
import type { OutboxEntry, SqlValue, Statement, SyncStatus, WriteOptions, Written } from '@hq/shared/sync/contract.ts'
import { newId } from './id.ts'
import { LiveQueries } from './live-query.ts'
import {
  type Answer,
  CALL_LIMIT_MS,
  type Changed,
  type Corrections,
  type DatabaseIdentity,
  type FailureCode,
  type ImportedChanges,
  type Phase,
  type Request,
  type RescuedChanges,
  type ToPage,
  type ToWorker,
  UNKNOWN_STATUS,
} from './messages.ts'

export class ReplicaError extends Error {
  override name = 'ReplicaError'
  readonly code: FailureCode
  constructor(code: FailureCode, message: string) {
    super(message)
    this.code = code
  }
}

type WrittenRows = Written<Record<string, unknown>[][]>

interface Waiting {
  readonly request: Request
  readonly deadline: number | undefined
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
  timer: ReturnType<typeof setTimeout> | undefined
}

/** What the page knows of its replica at a moment; replaced, never changed. */
export interface ReplicaState {
  readonly phase: Phase
  readonly status: SyncStatus
  /** This tab's worker holds the database. */
  readonly leading: boolean
}

export class ReplicaConnection {
  readonly identity: DatabaseIdentity
  readonly live: LiveQueries
  #state: ReplicaState = { phase: { name: 'starting' }, status: UNKNOWN_STATUS, leading: false }
  #worker: Worker | undefined
  #everOpen = false
  #closed = false
  #restarts = 0
  readonly #makeWorker: () => Worker
  readonly #waiting = new Map<string, Waiting>()
  readonly #listeners = new Set<() => void>()
  readonly #changeListeners = new Set<(changed: Changed) => void>()

  constructor(identity: DatabaseIdentity, makeWorker: () => Worker) {
    this.identity = identity
    this.#makeWorker = makeWorker
    this.live = new LiveQueries({ query: (sql, params) => this.query(sql, params) })
    this.#start()
  }

  /** Rows of one statement. Throws `ReplicaError`. */
  query<T = Record<string, unknown>>(sql: string, params: readonly SqlValue[] = []): Promise<T[]> {
    return this.#call({ kind: 'query', sql, params }) as Promise<T[]>
  }

  /** All statements in one transaction and one mutation, durable here when it returns. Throws `ReplicaError`. */
  write(statements: readonly Statement[], options: WriteOptions = {}): Promise<WrittenRows> {
    return this.#call({ kind: 'write', statements, options }) as Promise<WrittenRows>
  }

  outbox(): Promise<OutboxEntry[]> {
    return this.#call({ kind: 'outbox' }) as Promise<OutboxEntry[]>
  }

  /** Sends a rejected change again, with other values where `set` names them. */
  async retry(seq: number, set?: Corrections): Promise<void> {
    await this.#call({ kind: 'retry', seq, set })
  }

  /** Gives a rejected change up. */
  async discard(seq: number): Promise<void> {
    await this.#call({ kind: 'discard', seq })
  }

  /** Throws the local database away and builds it anew from the server; what waits to be sent is carried over. */
  async rebuild(): Promise<void> {
    await this.#call({ kind: 'rebuild' })
  }

  /** What was taken out of a lost database and is not back yet. */
  rescued(): Promise<RescuedChanges> {
    return this.#call({ kind: 'rescued' }) as Promise<RescuedChanges>
  }

  /** Gives up what could not be made again; only ever because a person said so. */
  async forgetRescued(): Promise<void> {
    await this.#call({ kind: 'forget-rescued' })
  }

  /** Makes the changes of an exported file again. */
  importChanges(lines: readonly string[]): Promise<ImportedChanges> {
    return this.#call({ kind: 'import', lines }) as Promise<ImportedChanges>
  }

  /** Tries to reach the server now instead of waiting out a pause. */
  wake(): void {
    this.#post({ t: 'wake' })
  }

  get closed(): boolean {
    return this.#closed
  }

  state(): ReplicaState {
    return this.#state
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  onChanged(listener: (changed: Changed) => void): () => void {
    this.#changeListeners.add(listener)
    return () => this.#changeListeners.delete(listener)
  }

  /** Lets the worker close the database, if it holds it; resolves when it has, or after two seconds. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const worker = this.#worker
    const closed = new Promise<void>((resolve) => {
      worker?.addEventListener('message', (event: MessageEvent<ToPage>) => event.data.t === 'closed' && resolve())
      setTimeout(resolve, 2_000)
    })
    this.#post({ t: 'close' })
    for (const id of [...this.#waiting.keys()]) this.#fail(id, 'closed', 'You were signed out.')
    await closed
    worker?.terminate()
  }

  #start(): void {
    const worker = this.#makeWorker()
    this.#worker = worker
    worker.onmessage = (event: MessageEvent<ToPage>) => this.#receive(event.data)
    worker.onerror = (event) => {
      event.preventDefault()
      console.error('The database worker stopped; starting another.', event.message)
      this.#restart(event.message)
    }
    this.#post({ t: 'start', identity: this.identity })
    for (const [id, call] of this.#waiting) this.#send(id, call)
  }

  #restart(reason: string): void {
    this.#worker?.terminate()
    this.#restarts += 1
    if (this.#closed) return
    if (this.#restarts > 5) {
      this.#set({ phase: { name: 'failed', message: `The local database keeps stopping: ${reason}` } })
      return
    }
    setTimeout(() => this.#start(), 200 * this.#restarts)
  }

  #receive(message: ToPage): void {
    switch (message.t) {
      case 'answer':
        this.#settle(message.answer)
        return
      case 'phase':
        if (message.phase.name === 'open') this.#restarts = 0
        if (message.phase.name === 'open' && !this.#everOpen) {
          this.#everOpen = true
          for (const [id, call] of this.#waiting) this.#limit(id, call)
        }
        this.#set({ phase: message.phase })
        return
      case 'status':
        this.#set({ status: message.status })
        return
      case 'leading':
        this.#set({ leading: message.leading })
        return
      case 'changed':
        this.live.changed(message.changed)
        for (const listener of this.#changeListeners) listener(message.changed)
        return
      case 'restart':
        this.#restart(message.reason)
        return
      case 'closed':
        return
    }
  }

  #call(request: Request): Promise<unknown> {
    if (this.#closed) return Promise.reject(new ReplicaError('closed', 'You were signed out.'))
    const { phase } = this.#state
    if (phase.name === 'failed') return Promise.reject(new ReplicaError('failed', phase.message))
    return new Promise((resolve, reject) => {
      const id = newId()
      const limit = request.kind === 'rebuild' || request.kind === 'import' ? 120_000 : CALL_LIMIT_MS
      const deadline = this.#everOpen ? Date.now() + limit : undefined
      const call: Waiting = { request, deadline, resolve, reject, timer: undefined }
      this.#waiting.set(id, call)
      if (this.#everOpen) this.#limit(id, call, limit)
      this.#send(id, call)
    })
  }

  #limit(id: string, call: Waiting, limit = CALL_LIMIT_MS): void {
    clearTimeout(call.timer)
    call.timer = setTimeout(() => {
      this.#post({ t: 'cancel', id })
      const saved = call.request.kind === 'write' ? ' The change may still be saved in a moment.' : ''
      this.#fail(id, 'timeout', `The database on this device did not answer within ${limit / 1000} seconds.${saved}`)
    }, limit)
  }

  #send(id: string, { request, deadline }: Waiting): void {
    this.#post({ t: 'call', call: { id, request, deadline: deadline ?? Number.MAX_SAFE_INTEGER } })
  }

  #post(message: ToWorker): void {
    this.#worker?.postMessage(message)
  }

  #settle(answer: Answer): void {
    const call = this.#waiting.get(answer.id)
    if (!call) return
    if (!answer.ok) {
      this.#fail(answer.id, answer.error.code, answer.error.message)
      return
    }
    this.#waiting.delete(answer.id)
    clearTimeout(call.timer)
    call.resolve(answer.value)
  }

  #fail(id: string, code: FailureCode, message: string): void {
    const call = this.#waiting.get(id)
    this.#waiting.delete(id)
    clearTimeout(call?.timer)
    call?.reject(new ReplicaError(code, message))
  }

  #set(part: Partial<ReplicaState>): void {
    this.#state = { ...this.#state, ...part }
    if (this.#state.phase.name === 'failed') {
      const { message } = this.#state.phase
      for (const id of [...this.#waiting.keys()]) this.#fail(id, 'failed', message)
    }
    for (const listener of this.#listeners) listener()
  }
}
