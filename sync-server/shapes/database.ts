/**
 * Connections to Postgres: a small pool for catalog, snapshots and conditions, and the settings of every connection.
 *
 *  1. Every connection prints values in the protocol's text forms, so snapshot and log agree to the letter.
 *  2. Values come back as the text that Postgres printed; rows as arrays.
 *  3. `isRequestError` tells errors that the request caused from those that time may heal.
 */
import pg from 'pg'
import type { Queryable } from './catalog.ts'
import type { Logger } from './protocol.ts'
import { createTurns } from './turns.ts'

export const WIRE_SETTINGS = [
  'bytea_output=hex',
  'DateStyle=ISO,DMY',
  'TimeZone=UTC',
  'extra_float_digits=1',
  'IntervalStyle=iso_8601',
  'standard_conforming_strings=on',
  'client_encoding=UTF8',
]

const RAW_TEXT = { getTypeParser: () => (text: unknown) => text }

export interface Session extends Queryable {
  query(text: string, values?: readonly unknown[]): Promise<{ rows: string[][] }>
  /** Several statements in one message. Returns the rows of the last. */
  script(...statements: readonly string[]): Promise<string[][]>
}

export interface Database extends Session {
  /** Runs `work` on one connection; whatever it left open is rolled back, and a broken connection is thrown away. */
  session<T>(work: (session: Session) => Promise<T>): Promise<T>
  serverVersion(): Promise<number>
  close(): Promise<void>
}

export const clientConfig = (base: pg.ClientConfig, settings: readonly string[]): pg.ClientConfig => ({
  ...base,
  keepAlive: true,
  connectionTimeoutMillis: 10_000,
  options: [...WIRE_SETTINGS, ...settings].map((setting) => `-c ${setting}`).join(' '),
  types: RAW_TEXT as unknown as pg.CustomTypesConfig,
})

const withClient = async <T>(pool: pg.Pool, work: (session: Session) => Promise<T>): Promise<T> => {
  const client = await pool.connect()
  let broken = true
  try {
    const result = await work(toSession(client))
    broken = false
    return result
  } finally {
    if (broken)
      broken = await client.query('rollback').then(
        () => false,
        () => true,
      )
    client.release(broken)
  }
}

const toSession = (client: pg.ClientBase): Session => ({
  async query(text, values) {
    const result = await client.query<string[]>({
      text,
      values: values ? [...values] : undefined,
      rowMode: 'array',
    } as pg.QueryArrayConfig)
    return { rows: result.rows as unknown as string[][] }
  },
  async script(...statements) {
    const results: unknown = await client.query({
      text: statements.join(';\n'),
      rowMode: 'array',
    } as pg.QueryArrayConfig)
    const last = (Array.isArray(results) ? results.at(-1) : results) as pg.QueryArrayResult
    return last.rows as string[][]
  },
})

export const openDatabase = (base: pg.ClientConfig, connections: number, logger: Logger): Database => {
  const pool = new pg.Pool({
    ...clientConfig(base, ['statement_timeout=600000', 'idle_in_transaction_session_timeout=900000']),
    application_name: 'hq-shapes',
    max: connections,
    idleTimeoutMillis: 30_000,
  })
  // Without a listener the end of an idle connection would end the process.
  pool.on('error', (error) => logger.debug('an idle database connection ended', { reason: error.message }))
  // Nor does the pool listen while a connection is lent out: between two statements its end would go unheard.
  pool.on('connect', (client) => {
    client.on('error', (error) => logger.debug('a database connection ended', { reason: error.message }))
  })
  // The pool's time limit is for connecting; to wait for one of its connections may take as long as it takes.
  const turns = createTurns(connections)
  let version: Promise<number> | undefined

  const database: Database = {
    session: (work) => turns.run(() => withClient(pool, work)),
    query: (text, values) => database.session((session) => session.query(text, values)),
    script: (...statements) => database.session((session) => session.script(...statements)),
    serverVersion() {
      version ??= database.query('show server_version_num').then(({ rows }) => Number(rows[0]?.[0]))
      version.catch(() => {
        version = undefined
      })
      return version
    },
    close: () => pool.end(),
  }
  return database
}

export const sqlState = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

/** Errors in what was asked: syntax, names, types, values. */
export const isRequestError = (error: unknown): boolean => {
  const state = sqlState(error) ?? ''
  // A missing privilege is the operator's to grant: the client may come again.
  return /^(42|22|0A|54|21)/.test(state) && state !== '42501'
}
export const isMissingTable = (error: unknown): boolean => ['42P01', '3F000'].includes(sqlState(error) ?? '')
/** Lock timeout, deadlock, serialisation: trying again is all it takes. */
export const isTransient = (error: unknown): boolean =>
  ['55P03', '40P01', '40001', '57014'].includes(sqlState(error) ?? '')
