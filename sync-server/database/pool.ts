/**
 * Connections to Postgres, and one transaction.
 *
 *  1. Times are read and written in UTC, whatever the database's own zone is: values must travel alike from every server.
 *  2. A connection that Postgres drops is replaced, and logged if it was idle; it never ends the process.
 *  3. `isDatabaseAway` tells errors that time heals (Postgres is down, starting, full) from those of the request or of ours.
 */
import pg from 'pg'

export type Pool = pg.Pool
export type Client = pg.PoolClient

/** What can run a query: the pool, or a connection inside a transaction. */
export interface Queryable {
  query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    text: string | { name: string; text: string; values?: unknown[] },
    values?: unknown[],
  ): Promise<pg.QueryResult<R>>
}

export interface PoolOptions {
  readonly max?: number
  readonly onError?: (error: Error) => void
}

export function createPool(connectionString: string, { max = 12, onError }: PoolOptions = {}): Pool {
  const pool = new pg.Pool({
    connectionString,
    max,
    options: '-c TimeZone=UTC -c DateStyle=ISO',
    application_name: 'hq sync-server',
    idleTimeoutMillis: 60_000,
  })
  pool.on('error', (error) => onError?.(error))
  // The pool does not listen while a connection is lent out: between two statements its end would go unheard, and an error that nobody hears ends Node.
  // Whoever has the connection learns it from the next statement.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** Runs `work` in one transaction on one connection; rolls back and rethrows what it throws. */
export async function transaction<T>(pool: Pool, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    // The error that matters is the first; a connection that cannot even roll back is thrown away.
    await client.query('rollback').catch((failure: unknown) => {
      broken = failure instanceof Error ? failure : new Error(String(failure))
    })
    throw error
  } finally {
    client.release(broken)
  }
}

/** The SQLSTATE of an error from Postgres, if it is one. */
export const sqlState = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

const GONE = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'])

/** Whether trying again later is all it takes: connection lost or refused, shutdown or start of Postgres, no room. */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const state = sqlState(error)
  if (state) return /^(08|53|57P)/.test(state) || GONE.has(state)
  // What node-postgres says without a code.
  return /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed)/.test(
    error.message,
  )
}
