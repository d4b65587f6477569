/**
 * One database, many tabs: each tab's worker runs a coordinator, and the one that holds the Web Lock leads.
 *
 * The leader opens the database and answers; the others pass their page's calls to it over a BroadcastChannel. Browsers
 * release a lock when its worker goes, however it goes, and the next in line leads.
 *
 * T1 A call is sent to one reign (epoch). When a new leader announces itself, every unanswered read and write is sent to
 *    it again: a read has no effect, and a write is recorded under its id in its own transaction, so it counts once and its
 *    caller gets its answer. What cannot be repeated (retry, discard, rebuild) ends as `unsure`.
 * T2 A leader ignores calls of another reign and those whose deadline has passed. Who asks again with the same id (its worker
 *    crashed) gets the first one's answer; only reads are carried out again.
 * T3 While anything waits, or no leader is known, a worker asks "who" every `askMs`; a leader answers always.
 * T4 With a new reign everything counts as changed, because its predecessor's last announcements may be lost.
 */
import type { OutboxEntry, SqlValue, Statement, SyncStatus, WriteOptions, Written } from '@hq/shared/sync/contract.ts'
import { lockName } from './database-files.ts'
import { newId } from './id.ts'
import {
  type Answer,
  type Broadcast,
  type Call,
  type Changed,
  type Corrections,
  type Failure,
  type ImportedChanges,
  type Phase,
  type Request,
  type RescuedChanges,
  type ToPage,
  UNKNOWN_STATUS,
} from './messages.ts'

/** The open database, as its leader uses it. */
export interface Engine {
  query(sql: string, params: readonly SqlValue[]): Promise<unknown[]>
  /** Carries out a write once, however often it is asked for with the same id. */
  write(id: string, statements: readonly Statement[], options: WriteOptions): Promise<Written<unknown>>
  outbox(): Promise<OutboxEntry[]>
  retry(seq: number, set: Corrections | undefined): Promise<void>
  discard(seq: number): Promise<void>
  /** Builds the database anew from the server, keeping what waits to be sent. */
  rebuild(): Promise<void>
  rescued(): Promise<RescuedChanges>
  forgetRescued(): Promise<void>
  importChanges(lines: readonly string[]): Promise<ImportedChanges>
  status(): SyncStatus
  wake(): void
  close(): Promise<void>
}

export interface EngineEvents {
  phase(phase: Phase): void
  status(status: SyncStatus): void
  changed(changed: Changed): void
  /** This worker cannot go on: the page ends it and starts another. */
  restart(reason: string): void
}

export interface CoordinatorOptions {
  /** Unique for each database; lock and channel are named after it. */
  readonly name: string
  readonly open: (events: EngineEvents) => Promise<Engine>
  readonly post: (message: ToPage) => void
  readonly locks?: LockManager | undefined
  readonly askMs?: number
}

interface Pending {
  readonly call: Call
  /** The reign it was last sent to. */
  sentTo: string | undefined
}

export class Coordinator {
  readonly #options: CoordinatorOptions
  readonly #channel: BroadcastChannel
  readonly #pending = new Map<string, Pending>()
  /** The reign this worker follows; its own while it leads. */
  #epoch: string | undefined
  #phase: Phase = { name: 'starting' }
  #status: SyncStatus = UNKNOWN_STATUS
  #ask: ReturnType<typeof setInterval> | undefined
  readonly #abort = new AbortController()
  #leader: Leader | undefined
  #release: () => void = () => undefined
  #closed = false

  constructor(options: CoordinatorOptions) {
    this.#options = options
    this.#channel = new BroadcastChannel(`hq:${options.name}`)
    this.#channel.onmessage = (event: MessageEvent<Broadcast>) => this.#hear(event.data)
  }

  start(): void {
    const { locks = navigator.locks, name, askMs = 250 } = this.#options
    // Without a secure address there are no locks; then the database lives in this tab alone (storage.ts, S3).
    if (!locks) {
      void this.#lead()
      return
    }
    locks
      .request(lockName(name), { signal: this.#abort.signal }, () => this.#lead())
      .catch((error: unknown) => {
        if (this.#abort.signal.aborted) return
        this.#setPhase({
          name: 'failed',
          message: `This browser does not let HQ lock its database: ${messageOf(error)}`,
        })
      })
    this.#say({ t: 'who' })
    this.#ask = setInterval(() => {
      if (!this.#leader && (this.#epoch === undefined || this.#pending.size > 0)) this.#say({ t: 'who' })
    }, askMs)
  }

  call(call: Call): void {
    if (this.#leader) {
      void this.#leader.serve(call).then((answer) => answer && this.#options.post({ t: 'answer', answer }))
      return
    }
    const pending: Pending = { call, sentTo: undefined }
    this.#pending.set(call.id, pending)
    this.#send(pending)
  }

  cancel(id: string): void {
    this.#pending.delete(id)
  }

  wake(): void {
    if (this.#leader) this.#leader.wake()
    else this.#say({ t: 'wake' })
  }

  async close(): Promise<void> {
    clearInterval(this.#ask)
    this.#abort.abort()
    await this.#leader?.close()
    this.#closed = true
    this.#release()
    this.#channel.close()
  }

  /** Holds the lock until the worker is closed. */
  async #lead(): Promise<void> {
    if (this.#closed) return
    const epoch = newId()
    const forward = (message: Broadcast): void => this.#say(message)
    this.#epoch = epoch
    const leader = new Leader(epoch, this.#options.open, {
      phase: (phase) => {
        this.#setPhase(phase)
        forward({ t: 'leader', epoch, phase, status: leader.status() })
      },
      status: (status) => {
        this.#setStatus(status)
        forward({ t: 'status', epoch, status })
      },
      changed: (changed) => {
        this.#options.post({ t: 'changed', changed })
        forward({ t: 'changed', epoch, changed })
      },
      restart: (reason) => this.#options.post({ t: 'restart', reason }),
    })
    this.#leader = leader
    this.#options.post({ t: 'leading', leading: true })
    leader.begin()
    const waiting = [...this.#pending.values()]
    this.#pending.clear()
    for (const pending of waiting) {
      const answer = this.#unrepeatable(pending)
      if (answer) this.#options.post({ t: 'answer', answer })
      else this.call(pending.call)
    }
    this.#options.post({ t: 'changed', changed: 'all' })
    await new Promise<void>((resolve) => {
      this.#release = resolve
    })
  }

  #hear(message: Broadcast): void {
    if (this.#leader) this.#hearAsLeader(this.#leader, message)
    else this.#hearAsFollower(message)
  }

  #hearAsLeader(leader: Leader, message: Broadcast): void {
    if (message.t === 'who') {
      this.#say({ t: 'leader', epoch: leader.epoch, phase: this.#phase, status: leader.status() })
    } else if (message.t === 'wake') {
      leader.wake()
    } else if (message.t === 'call' && message.epoch === leader.epoch) {
      void leader
        .serve(message.call)
        .then((answer) => answer && this.#say({ t: 'answer', epoch: leader.epoch, answer }))
    }
  }

  #hearAsFollower(message: Broadcast): void {
    switch (message.t) {
      case 'leader':
        if (message.epoch !== this.#epoch) this.#follow(message.epoch)
        this.#setPhase(message.phase)
        this.#setStatus(message.status)
        return
      case 'answer':
        if (this.#pending.delete(message.answer.id)) this.#options.post({ t: 'answer', answer: message.answer })
        return
      case 'status':
        if (message.epoch === this.#epoch) this.#setStatus(message.status)
        return
      case 'changed':
        if (message.epoch === this.#epoch) this.#options.post({ t: 'changed', changed: message.changed })
        return
      default:
        return
    }
  }

  #follow(epoch: string): void {
    this.#epoch = epoch
    for (const [id, pending] of this.#pending) {
      const answer = this.#unrepeatable(pending)
      if (answer) {
        this.#pending.delete(id)
        this.#options.post({ t: 'answer', answer })
      } else this.#send(pending)
    }
    this.#options.post({ t: 'changed', changed: 'all' })
  }

  #send(pending: Pending): void {
    if (this.#epoch === undefined) return
    pending.sentTo = this.#epoch
    this.#say({ t: 'call', epoch: this.#epoch, call: pending.call })
  }

  #unrepeatable({ call, sentTo }: Pending): Answer | undefined {
    if (sentTo === undefined || REPEATABLE.has(call.request.kind)) return undefined
    const message = 'The tab that held the database was closed in the middle of this. Please check whether it was done.'
    return { id: call.id, ok: false, error: { code: 'unsure', message } }
  }

  #setPhase(phase: Phase): void {
    if (JSON.stringify(phase) === JSON.stringify(this.#phase)) return
    this.#phase = phase
    this.#options.post({ t: 'phase', phase })
  }

  #setStatus(status: SyncStatus): void {
    if (JSON.stringify(status) === JSON.stringify(this.#status)) return
    this.#status = status
    this.#options.post({ t: 'status', status })
  }

  #say(message: Broadcast): void {
    if (!this.#closed) this.#channel.postMessage(message)
  }
}

const REPEATABLE: ReadonlySet<Request['kind']> = new Set(['query', 'write', 'outbox', 'rescued'])

/** Calls whose answers a leader keeps, for those who ask again. */
const REMEMBERED = 500

/** The reign of this worker: the engine, and what it has begun. */
class Leader {
  readonly epoch: string
  readonly #open: CoordinatorOptions['open']
  readonly #events: EngineEvents
  readonly #begun = new Map<string, Promise<Answer | undefined>>()
  #engine: Promise<Engine> | undefined
  #opened: Engine | undefined

  constructor(epoch: string, open: CoordinatorOptions['open'], events: EngineEvents) {
    this.epoch = epoch
    this.#open = open
    this.#events = events
  }

  begin(): void {
    this.#engine = this.#open(this.#events)
    this.#engine.then(
      (engine) => {
        this.#opened = engine
        this.#events.status(engine.status())
      },
      (error: unknown) => this.#events.phase({ name: 'failed', message: messageOf(error) }),
    )
  }

  status(): SyncStatus {
    return this.#opened?.status() ?? UNKNOWN_STATUS
  }

  wake(): void {
    this.#opened?.wake()
  }

  /** Undefined: nobody needs an answer any more (T2). */
  serve(call: Call): Promise<Answer | undefined> {
    if (call.request.kind === 'query') return this.#carryOut(call)
    const begun = this.#begun.get(call.id) ?? this.#carryOut(call)
    this.#begun.set(call.id, begun)
    if (this.#begun.size > REMEMBERED) for (const id of [...this.#begun.keys()].slice(0, 50)) this.#begun.delete(id)
    return begun
  }

  async #carryOut(call: Call): Promise<Answer | undefined> {
    let engine: Engine
    try {
      engine = await (this.#engine as Promise<Engine>)
    } catch (error) {
      return { id: call.id, ok: false, error: { code: 'failed', message: messageOf(error) } }
    }
    if (Date.now() > call.deadline) return undefined
    try {
      return { id: call.id, ok: true, value: await perform(engine, call) }
    } catch (error) {
      return { id: call.id, ok: false, error: failureOf(error) }
    }
  }

  async close(): Promise<void> {
    try {
      await (await this.#engine)?.close()
    } catch (error) {
      console.warn('The database did not close cleanly; what was written is in it.', error)
    }
  }
}

function perform(engine: Engine, { id, request }: Call): Promise<unknown> {
  switch (request.kind) {
    case 'query':
      return engine.query(request.sql, request.params)
    case 'write':
      return engine.write(id, request.statements, request.options)
    case 'outbox':
      return engine.outbox()
    case 'retry':
      return engine.retry(request.seq, request.set)
    case 'discard':
      return engine.discard(request.seq)
    case 'rebuild':
      return engine.rebuild()
    case 'rescued':
      return engine.rescued()
    case 'forget-rescued':
      return engine.forgetRescued()
    case 'import':
      return engine.importChanges(request.lines)
  }
}

function failureOf(error: unknown): Failure {
  const message = messageOf(error)
  const full =
    /quota|no space left|ENOSPC|disk full/i.test(message) ||
    (error instanceof Error && error.name === 'QuotaExceededError')
  if (!full) return { code: 'sql', message }
  return {
    code: 'full',
    message: 'There is no space left on this device, so this was not saved. Free some space and try again.',
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
