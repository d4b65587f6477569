/**
 * The Electric shape protocol as plain data: offsets, requests, responses, header names, control messages.
 *
 *  1. An offset is `tx_op`: `tx` a commit LSN as a decimal number, `op` the position inside that transaction. `tx = 0` is
 *     the virtual range of snapshot chunks. An offset is exclusive: it means "everything after".
 *  2. LSNs are numbers: exact up to 2^53, which is nine petabytes of write-ahead log.
 *  3. A body is never the empty list: at the end of a log it ends in `up-to-date`, elsewhere it holds a message.
 */

export const ELECTRIC_HEADERS = [
  'electric-cursor',
  'electric-handle',
  'electric-has-data',
  'electric-offset',
  'electric-schema',
  'electric-snapshot',
  'electric-up-to-date',
  'electric-internal-known-error',
  'etag',
  'retry-after',
] as const

export type OffsetString = '-1' | 'now' | `${number}_${number}` | `${number}_inf`

export interface Offset {
  readonly tx: number
  /** `Infinity` is written `inf`. */
  readonly op: number
}

/** The end of a snapshot, which is the beginning of the log. */
export const SNAPSHOT_END: Offset = { tx: 0, op: Infinity }

export const formatOffset = ({ tx, op }: Offset): OffsetString => (op === Infinity ? `${tx}_inf` : `${tx}_${op}`)

/** `undefined` when the text is not of the form `tx_op`; `-1` and `now` are not offsets in the log. */
export const parseOffset = (text: string): Offset | undefined => {
  const match = /^(\d+)_(\d+|inf)$/.exec(text)
  return match ? { tx: Number(match[1]), op: match[2] === 'inf' ? Infinity : Number(match[2]) } : undefined
}

export const compareOffsets = (a: Offset, b: Offset): number =>
  a.tx !== b.tx ? a.tx - b.tx : a.op === b.op ? 0 : a.op - b.op

/** What one shape is. Two requests with equal definitions share one log. */
export interface ShapeDefinition {
  /** `table` or `schema.table`, identifiers as in SQL. */
  readonly table: string
  /** An SQL condition with `$1`… for params. */
  readonly where?: string | undefined
  readonly params?: readonly string[] | undefined
  /** Plain column names; default: all. */
  readonly columns?: readonly string[] | undefined
  readonly replica?: 'default' | 'full' | undefined
}

export interface ShapeRequest {
  readonly method: string
  /** Decoded query parameters, `params[1]` under that very name. */
  readonly params: Readonly<Record<string, string | undefined>>
  /** When the server decides what the shape is, not the client: `table`, `where`, `params`, `columns` and `replica` of
   *  `params` are then ignored. */
  readonly definition?: ShapeDefinition | undefined
  readonly headers?: { readonly 'if-none-match'?: string | undefined } | undefined
  /** The parsed JSON body of a POST. */
  readonly body?: unknown
  /** Aborted when the client is gone: a held request then ends and frees what it had. */
  readonly signal?: AbortSignal | undefined
  /** Whether a live request may be held; `false` answers at once, also when there is nothing to say. Default true. */
  readonly mayHold?: boolean | undefined
}

/** A held request that costs next to nothing. */
export interface Hold {
  /** The client is gone. */
  cancel(): void
}

export interface ShapeResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null
}

export interface Logger {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
  error(message: string, fields?: Readonly<Record<string, unknown>>): void
}

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

export const MUST_REFETCH = '[{"headers":{"control":"must-refetch"}}]'

export const upToDate = (lsn: number): string => `{"headers":{"control":"up-to-date","global_last_seen_lsn":"${lsn}"}}`

const ENCODER = new TextEncoder()
export const encode = (text: string): Uint8Array<ArrayBuffer> => ENCODER.encode(text)

/** Reasons by parameter name, as the protocol's 400 lists them. */
export type RequestErrors = Readonly<Record<string, readonly string[]>>

/** Thrown for what only another request can repair; becomes a 400. */
export class InvalidRequest extends Error {
  readonly errors: RequestErrors
  constructor(errors: RequestErrors) {
    super('Invalid request')
    this.errors = errors
  }
}

/** Thrown for what time can repair; becomes a 503 with `retry-after`. */
export class Unavailable extends Error {
  readonly retryAfterSeconds: number
  constructor(message: string, retryAfterSeconds = 5) {
    super(message)
    this.retryAfterSeconds = retryAfterSeconds
  }
}

const LSN = /^([0-9A-F]+)\/([0-9A-F]+)$/i

/** `16/B374D848` to a number. */
export const parseLsn = (text: string): number => {
  const match = LSN.exec(text)
  if (!match) throw new Error(`not an LSN: ${text}`)
  return Number.parseInt(match[1] as string, 16) * 2 ** 32 + Number.parseInt(match[2] as string, 16)
}

export const formatLsn = (lsn: number): string =>
  `${Math.floor(lsn / 2 ** 32).toString(16)}/${(lsn % 2 ** 32).toString(16)}`.toUpperCase()
