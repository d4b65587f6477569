/**
 * How screens read and write. Everything is local: nothing here waits for the network, and there is nothing to make
 * optimistic, because a write returns when it is durable on this device and every reader sees it within a frame or two.
 *
 *     const { rows } = useRows<Row<'tasks'>>('select * from tasks where deleted_at is null order by sort_order limit $1', [80], { tables: ['tasks'] })
 *     const write = useWrite()
 *     await write([{ sql: 'update tasks set status = $2 where id = $1', params: [id, 'done'] }])
 *
 * Name every table that a query reads in `tables`: only their changes run it again. Keep lists windowed (limit and offset,
 * with `useCount` beside): a result is copied to the page each time. Values: timestamps are ISO strings (see `Row`).
 */
import { tables as declared, type TableName } from '@hq/shared/schema/tables.ts'
import type { OutboxEntry, SqlValue, Statement, SyncStatus, WriteOptions, Written } from '@hq/shared/sync/contract.ts'
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import { replica } from './current.ts'
import { keyOf, type LiveResult, type WatchedTable } from './live-query.ts'

export { type Person, type Session, useSession } from '../session/session.ts'
export { ReplicaError } from './connection.ts'
export { replica } from './current.ts'
export { newId } from './id.ts'
export type { OutboxEntry, SqlValue, Statement, SyncStatus, WriteOptions, Written }

export interface QueryOptions {
  /** Every table the statement reads; `sync` for the outbox and row states. */
  readonly tables: readonly WatchedTable[]
  /** While the answer to new parameters is on its way, show the rows of the old ones (default for `useRows`: true). */
  readonly keepPrevious?: boolean
  /** False: do not run (rows are empty, not ready). */
  readonly enabled?: boolean
}

export interface RowsResult<T> {
  readonly rows: readonly T[]
  /** The rows are the answer to this very statement and these parameters. */
  readonly ready: boolean
  readonly error: Error | undefined
}

export interface RowResult<T> {
  /** Undefined: not loaded yet (`ready` false), or there is none (`ready` true). */
  readonly row: T | undefined
  readonly ready: boolean
  readonly error: Error | undefined
}

const EMPTY: LiveResult<never> = { rows: [], ready: false, error: undefined }
const NO_PARAMS: readonly SqlValue[] = []
const noSubscription = () => () => undefined

/** The rows of a statement, kept up to date. Never goes blank while it runs again. */
export function useRows<T>(sql: string, params: readonly SqlValue[] | undefined, options: QueryOptions): RowsResult<T> {
  const { tables, keepPrevious = true, enabled = true } = options
  const list = params ?? NO_PARAMS
  const key = keyOf(sql, list, tables)
  // The key stands for the statement, its parameters and its tables, which callers write inline.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  const query = useMemo(() => (enabled ? replica().live.get<T>(sql, list, tables) : undefined), [key, enabled])
  const result = useSyncExternalStore<LiveResult<T>>(
    useMemo(() => (query ? (listener: () => void) => query.subscribe(listener) : noSubscription), [query]),
    () => query?.snapshot() ?? EMPTY,
    () => EMPTY,
  )
  const previous = useRef(EMPTY as LiveResult<T>)
  useEffect(() => {
    if (result.ready) previous.current = result
  }, [result])
  return result.ready || !keepPrevious || !enabled ? result : { ...result, rows: previous.current.rows }
}

/** The first row of a statement, kept up to date. Never the row of other parameters, unless `keepPrevious`. */
export function useRow<T>(sql: string, params: readonly SqlValue[] | undefined, options: QueryOptions): RowResult<T> {
  const { rows, ready, error } = useRows<T>(sql, params, { keepPrevious: false, ...options })
  return { row: rows[0], ready, error }
}

/** The first column of the first row as a number (`select count(*) …`); undefined until it is known. */
export function useCount(
  sql: string,
  params: readonly SqlValue[] | undefined,
  options: QueryOptions,
): number | undefined {
  const { rows } = useRows<Record<string, unknown>>(sql, params, options)
  const value = rows[0] && Object.values(rows[0])[0]
  return value === undefined ? undefined : Number(value)
}

/** The rows of a statement, once; runs again only when the statement or its parameters change. For what need not stay up to date. */
export function useQueryOnce<T>(sql: string, params: readonly SqlValue[] = NO_PARAMS, enabled = true): RowsResult<T> {
  const key = keyOf(sql, params, [])
  const [state, setState] = useState<{ key: string; result: LiveResult<T> }>({ key: '', result: EMPTY })
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the statement and its parameters
  useEffect(() => {
    if (!enabled) return
    let current = true
    const set = (result: LiveResult<T>) => current && setState({ key, result })
    replica()
      .query<T>(sql, params)
      .then(
        (rows) => set({ rows, ready: true, error: undefined }),
        (error: Error) => set({ rows: [], ready: false, error }),
      )
    return () => {
      current = false
    }
  }, [key, enabled])
  return state.key === key ? state.result : { ...state.result, ready: false }
}

export type WriteFunction = (
  statements: readonly Statement[],
  options?: WriteOptions,
) => Promise<Written<Record<string, unknown>[][]>>

/**
 * Changes data: all statements in one transaction here, one mutation on the server. Resolves when it is durable on this
 * device, with the rows of each statement (`returning`). Rejects with a `ReplicaError`, whose message a person can read.
 */
export function useWrite(): WriteFunction {
  return useCallback((statements, options) => replica().write(statements, options), [])
}

/** How syncing stands: connection, what waits and since when, what was refused, progress of the first load. */
export function useSyncStatus(): SyncStatus {
  const connection = replica()
  return useSyncExternalStore(
    connection.subscribe,
    () => connection.state().status,
    () => connection.state().status,
  )
}

/** The one row of `table` with this id. */
export function useById<T>(table: TableName, id: string | undefined): RowResult<T> {
  return useRow<T>(`select * from "${declared[table].name}" where id = $1`, [id ?? null], {
    tables: [table],
    enabled: id !== undefined,
  })
}
