/**
 * A query whose result follows the database, shared by everybody who asks the same thing.
 *
 * L1 A result never goes blank: while it runs again, the last rows stay.
 * L2 It runs again at most every `interval` ms, and once more after the last change (no change is missed).
 * L3 Rows that did not change keep their identity, and so does the array when nothing changed: memoised components stay put.
 * L4 Nobody listening: it does not run. It is forgotten some time after the last listener left, and until then answers at once.
 * L5 A query that takes long rests as long as it took, so that it never has the database to itself.
 */
import type { TableName } from '@hq/shared/schema/tables.ts'
import type { SqlValue } from '@hq/shared/sync/contract.ts'
import type { Changed } from './messages.ts'

export type WatchedTable = TableName | 'sync'

export interface LiveResult<T> {
  readonly rows: readonly T[]
  /** False until the first answer. */
  readonly ready: boolean
  /** Why the last run failed; the rows are then those of the run before. */
  readonly error: Error | undefined
}

export interface Source {
  query(sql: string, params: readonly SqlValue[]): Promise<unknown[]>
}

export interface LiveQuery<T> {
  readonly key: string
  snapshot(): LiveResult<T>
  subscribe(listener: () => void): () => void
}

const NOTHING: LiveResult<never> = { rows: [], ready: false, error: undefined }

export interface LiveOptions {
  readonly interval?: number
  readonly keepFor?: number
}

export class LiveQueries {
  readonly #source: Source
  readonly #interval: number
  readonly #keepFor: number
  readonly #entries = new Map<string, Entry>()

  constructor(source: Source, { interval = 60, keepFor = 30_000 }: LiveOptions = {}) {
    this.#source = source
    this.#interval = interval
    this.#keepFor = keepFor
  }

  get<T>(sql: string, params: readonly SqlValue[], tables: readonly WatchedTable[]): LiveQuery<T> {
    const key = keyOf(sql, params, tables)
    let entry = this.#entries.get(key)
    if (!entry) {
      entry = new Entry(key, new Set(tables), () => this.#source.query(sql, params), this.#interval)
      entry.onIdle = (idle) => this.#forgetLater(idle)
      this.#entries.set(key, entry)
      this.#forgetLater(entry)
    }
    return entry as unknown as LiveQuery<T>
  }

  /** To be called with every change of the database. */
  changed(changed: Changed): void {
    for (const entry of this.#entries.values()) {
      if (changed === 'all' || changed.some((table) => entry.tables.has(table))) entry.invalidate()
    }
  }

  get size(): number {
    return this.#entries.size
  }

  #forgetLater(entry: Entry): void {
    clearTimeout(entry.forget)
    entry.forget = setTimeout(() => {
      if (!entry.watched) this.#entries.delete(entry.key)
    }, this.#keepFor)
  }
}

export const keyOf = (sql: string, params: readonly SqlValue[], tables: readonly WatchedTable[]): string =>
  JSON.stringify([sql, params, tables])

class Entry implements LiveQuery<unknown> {
  readonly key: string
  readonly tables: ReadonlySet<WatchedTable>
  readonly #run: () => Promise<unknown[]>
  readonly #interval: number
  readonly #listeners = new Set<() => void>()
  #result: LiveResult<unknown> = NOTHING
  #stale = true
  #running = false
  #failures = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #lastStart = Number.NEGATIVE_INFINITY
  #took = 0
  onIdle: (entry: Entry) => void = () => undefined
  forget: ReturnType<typeof setTimeout> | undefined

  constructor(key: string, tables: ReadonlySet<WatchedTable>, run: () => Promise<unknown[]>, interval: number) {
    this.key = key
    this.tables = tables
    this.#run = run
    this.#interval = interval
  }

  get watched(): boolean {
    return this.#listeners.size > 0
  }

  snapshot(): LiveResult<unknown> {
    return this.#result
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    clearTimeout(this.forget)
    this.#schedule()
    return () => {
      this.#listeners.delete(listener)
      if (this.watched) return
      clearTimeout(this.#timer)
      this.#timer = undefined
      this.onIdle(this)
    }
  }

  invalidate(): void {
    this.#stale = true
    this.#schedule()
  }

  #schedule(): void {
    if (!this.#stale || this.#running || this.#timer !== undefined || !this.watched) return
    const pause =
      this.#failures > 0 ? Math.min(5_000, 100 * 2 ** this.#failures) : Math.max(this.#interval, 2 * this.#took)
    const wait = this.#lastStart + pause - performance.now()
    if (wait <= 0) void this.#execute()
    else {
      this.#timer = setTimeout(() => {
        this.#timer = undefined
        void this.#execute()
      }, wait)
    }
  }

  async #execute(): Promise<void> {
    this.#running = true
    this.#stale = false
    this.#lastStart = performance.now()
    try {
      const rows = shareRows(this.#result.rows, await this.#run())
      this.#failures = 0
      if (rows !== this.#result.rows || !this.#result.ready || this.#result.error) {
        this.#publish({ rows, ready: true, error: undefined })
      }
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause))
      this.#failures += 1
      // A wrong statement stays wrong: it runs again with the next change. Anything else (another leader) passes.
      if (!isSqlError(error)) this.#stale = true
      if (isSqlError(error) || this.#failures > 3) this.#publish({ ...this.#result, error })
      if (isSqlError(error))
        console.error('A screen asked the local database something it cannot answer.', this.key, error)
    } finally {
      this.#took = performance.now() - this.#lastStart
      this.#running = false
      this.#schedule()
    }
  }

  #publish(result: LiveResult<unknown>): void {
    this.#result = result
    for (const listener of this.#listeners) listener()
  }
}

const isSqlError = (error: Error): boolean => 'code' in error && error.code === 'sql'

/** `after`, with the rows (and the array) of `before` wherever they are equal (L3). */
export function shareRows(before: readonly unknown[], after: readonly unknown[]): readonly unknown[] {
  const known = new Map<unknown, unknown>()
  for (const row of before) known.set(idOf(row), row)
  let same = before.length === after.length
  const shared = after.map((row, index) => {
    const id = idOf(row)
    const candidate = id === undefined ? before[index] : known.get(id)
    const kept = candidate !== undefined && deepEqual(candidate, row) ? candidate : row
    if (kept !== before[index]) same = false
    return kept
  })
  return same ? before : shared
}

const idOf = (row: unknown): unknown => (typeof row === 'object' && row !== null && 'id' in row ? row.id : undefined)

export function deepEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (a instanceof Date || b instanceof Date) return a instanceof Date && b instanceof Date && +a === +b
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return keys.every((key) => key in b && deepEqual((a as Keyed)[key], (b as Keyed)[key]))
}

type Keyed = Record<string, unknown>
