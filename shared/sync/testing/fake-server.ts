/**
 * The server in memory, for tests of replicas: shapes with the real protocol's semantics (handles, offsets, chunks, long poll, up-to-date,
 * `client_progress`, `mutation_results`) and mutations with the `lww` merge. No database, no sockets: `fetch` is a function.
 *
 * Not in it: rights, validation (use `reject`), derivations. Faults are hooks (`Faults`); all may be changed while it runs.
 */
import type { SqlType, TableSpec } from '../../schema/columns.ts'
import { type TableName, tables } from '../../schema/tables.ts'
import type { LinkState, TransportSignals } from '../link.ts'
import {
  LIMITS,
  type Mutation,
  type Patch,
  type PushRequest,
  type PushResult,
  type RejectionCode,
} from '../protocol.ts'

type TextRow = Record<string, string | null>

interface LogEntry {
  readonly lsn: bigint
  readonly op: number
  readonly last: boolean
  readonly table: TableName
  readonly operation: 'insert' | 'update' | 'delete'
  readonly row: TextRow
}

interface Shape {
  readonly handle: string
  readonly table: TableName
  readonly replicaId: string
  readonly lsn: bigint
  readonly chunks: readonly (readonly TextRow[])[]
}

export interface FakeRequest {
  readonly method: string
  readonly path: '/v1/shape' | '/v1/mutations'
  readonly table: string | undefined
  readonly live: boolean
  readonly offset: string | undefined
  readonly replicaId: string
}

export type Fault =
  /** The request never arrives. */
  | { readonly kind: 'drop' }
  /** It arrives and has its effect; the answer is lost. */
  | { readonly kind: 'lose' }
  | { readonly kind: 'status'; readonly status: number; readonly code?: string }
  | { readonly kind: 'body'; readonly body: string }

export interface Faults {
  /** False: nothing gets through, and long polls break. */
  online: boolean
  /** Before each request; undefined lets it through. */
  fault: (request: FakeRequest) => Fault | undefined
  /** Milliseconds before each answer. */
  delay: (request: FakeRequest) => number
  /** Refuses a mutation. */
  reject: (mutation: Mutation) => { code: RejectionCode; message: string } | undefined
  /** Up-to-date at the end of a snapshot's last chunk (ours) or only on the next request (Electric). */
  upToDateWithSnapshot: boolean
  /** Rows of one answer. */
  chunkRows: number
  longPollMs: number
  /** What up-to-date says of the log's end: tests of settling hold it back. */
  lastSeenLsn: (table: TableName, lsn: bigint) => bigint
}

export interface FakeServer {
  readonly faults: Faults
  readonly requests: FakeRequest[]
  /** For `transport`: says at once when `faults.online` changes. Without it a replica finds out by its requests. */
  readonly signals: TransportSignals
  /** What a socket that was lost and made anew tells: everybody who sleeps tries again. */
  reconnect(): void
  readonly fetch: (input: string, init?: RequestInit) => Promise<Response>
  /** A change made on the server, values as Postgres prints them; missing columns get their defaults. Returns the id. */
  put(table: TableName, row: TextRow & { id: string }): string
  putMany(table: TableName, rows: readonly (TextRow & { id: string })[]): void
  remove(table: TableName, id: string): void
  rows(table: TableName): TextRow[]
  row(table: TableName, id: string): TextRow | undefined
  /** Every handle of the table becomes invalid: 409 must-refetch. */
  rotate(table: TableName): void
  lastSeq(replicaId: string): number
  setLastSeq(replicaId: string, seq: number): void
  /** Mutations that took effect, each as often as it did. */
  readonly applied: Mutation[]
  /** Long polls that hang at this moment. */
  waiting(): number
  /** Goes offline for good; long polls break. */
  close(): void
}

export const createFakeServer = (options: { tenantId: string; now?: () => number }): FakeServer => {
  const now = options.now ?? Date.now
  const data = new Map<TableName, Map<string, TextRow>>()
  const clocks = new Map<string, string>()
  const log: LogEntry[] = []
  const shapes = new Map<string, Shape>()
  const waiters = new Set<() => void>()
  const breakers = new Set<() => void>()
  const requests: FakeRequest[] = []
  const applied: Mutation[] = []
  const sequences = new Map<string, number>()
  let lsn = 1000n
  let handles = 0
  let open: Omit<LogEntry, 'last' | 'lsn' | 'op'>[] = []

  let online = true
  const listeners = new Set<(state: LinkState) => void>()
  const announce = (state: LinkState): void => {
    for (const listener of [...listeners]) listener(state)
  }

  const faults: Faults = {
    get online() {
      return online
    },
    set online(next) {
      if (next === online) return
      online = next
      if (!next) for (const broken of [...breakers]) broken()
      announce(next ? 'online' : 'offline')
    },
    fault: () => undefined,
    delay: () => 0,
    reject: () => undefined,
    upToDateWithSnapshot: true,
    chunkRows: 10_000,
    longPollMs: 5_000,
    lastSeenLsn: (_table, end) => end,
  }

  const tableOf = (name: TableName): Map<string, TextRow> => {
    let rows = data.get(name)
    if (!rows) {
      rows = new Map()
      data.set(name, rows)
    }
    return rows
  }
  const commit = (): void => {
    if (open.length === 0) return
    lsn += 10n
    open.forEach((entry, index) => {
      log.push({ ...entry, lsn, op: index * 2, last: index === open.length - 1 })
    })
    open = []
    for (const wake of [...waiters]) wake()
  }
  const write = (table: TableName, row: TextRow & { id: string }): void => {
    const rows = tableOf(table)
    const operation = rows.has(row.id) ? 'update' : 'insert'
    const whole = { ...(rows.get(row.id) ?? defaultsOf(table, options.tenantId, now())), ...row }
    rows.set(row.id, whole)
    open.push({ table, operation, row: { ...whole } })
  }

  const visible = (table: TableName, row: TextRow, replicaId: string): boolean =>
    tables[table].visibility.browser !== 'replica' || row['replica_id'] === replicaId

  const snapshot = (table: TableName, replicaId: string): Shape => {
    const rows = [...tableOf(table).values()].filter((row) => visible(table, row, replicaId)).map((row) => ({ ...row }))
    const chunks: TextRow[][] = []
    for (let start = 0; start < rows.length || start === 0; start += faults.chunkRows)
      chunks.push(rows.slice(start, start + faults.chunkRows))
    const shape = { handle: `${table}-${++handles}-${replicaId.slice(0, 8)}`, table, replicaId, lsn, chunks }
    shapes.set(shape.handle, shape)
    return shape
  }

  const shapeAnswer = async (url: URL, replicaId: string, signal: AbortSignal | undefined): Promise<Response> => {
    const table = url.searchParams.get('table') as TableName
    const offset = url.searchParams.get('offset') ?? '-1'
    const live = url.searchParams.get('live') === 'true'
    const from = offset === '-1' ? undefined : shapes.get(url.searchParams.get('handle') ?? '')
    if (offset !== '-1' && (!from || from.table !== table || from.replicaId !== replicaId))
      return mustRefetch(snapshot(table, replicaId).handle)
    const shape = from ?? snapshot(table, replicaId)
    const [tx = '0', op = '0'] = offset.split('_')

    if (offset === '-1' || (tx === '0' && op !== 'inf')) {
      const index = offset === '-1' ? 0 : Number(op) + 1
      const isLast = index >= shape.chunks.length - 1
      const messages: unknown[] = (shape.chunks[index] ?? []).map((row) => ({
        key: keyOf(table, row),
        value: row,
        headers: { operation: 'insert', relation: ['public', table] },
      }))
      if (isLast) messages.push({ headers: { control: 'snapshot-end', xmin: '1', xmax: '2', xip_list: [] } })
      const complete =
        isLast && faults.upToDateWithSnapshot && !log.some((entry) => entry.lsn > shape.lsn && entry.table === table)
      if (complete) messages.push(upToDate(table))
      return answer(messages, shape, isLast ? '0_inf' : `0_${index}`, live)
    }

    const since = op === 'inf' ? { lsn: shape.lsn, op: Number.POSITIVE_INFINITY } : { lsn: BigInt(tx), op: Number(op) }
    const newer = (): LogEntry[] =>
      log.filter(
        (entry) =>
          entry.table === table &&
          entry.lsn > shape.lsn &&
          (entry.lsn > since.lsn || (entry.lsn === since.lsn && entry.op > since.op)) &&
          visible(table, entry.row, replicaId),
      )
    let entries = newer()
    if (live && entries.length === 0) {
      await waitFor(() => newer().length > 0 || !shapes.has(shape.handle), signal)
      if (!shapes.has(shape.handle)) return mustRefetch(snapshot(table, replicaId).handle)
      entries = newer()
    }
    const part = entries.slice(0, faults.chunkRows)
    const messages: unknown[] = part.map((entry) => ({
      key: keyOf(table, entry.row),
      value: entry.row,
      headers: {
        operation: entry.operation,
        relation: ['public', table],
        txids: [Number(entry.lsn)],
        lsn: entry.lsn.toString(),
        op_position: entry.op,
        ...(entry.last && { last: true }),
      },
    }))
    if (part.length === entries.length) messages.push(upToDate(table))
    const end = part.at(-1)
    return answer(messages, shape, end ? `${end.lsn}_${end.op}` : offset, live)
  }

  const upToDate = (table: TableName): unknown => ({
    headers: { control: 'up-to-date', global_last_seen_lsn: faults.lastSeenLsn(table, lsn).toString() },
  })

  const waitFor = (ready: () => boolean, signal: AbortSignal | undefined): Promise<void> =>
    new Promise((resolve, reject) => {
      const end = (error?: Error): void => {
        clearTimeout(timer)
        waiters.delete(wake)
        breakers.delete(broken)
        signal?.removeEventListener('abort', aborted)
        if (error) reject(error)
        else resolve()
      }
      const wake = (): void => {
        if (ready()) end()
      }
      const broken = (): void => end(new TypeError('fetch failed: connection lost'))
      const aborted = (): void => end(abortError())
      const timer = setTimeout(() => end(), faults.longPollMs)
      waiters.add(wake)
      breakers.add(broken)
      signal?.addEventListener('abort', aborted, { once: true })
      if (signal?.aborted) aborted()
    })

  const push = (body: PushRequest): Response => {
    const replicaId = body.replica_id
    let last = sequences.get(replicaId) ?? 0
    const first = body.mutations[0]?.seq ?? last + 1
    if (first > last + 1) return problem(409, 'out_of_order', last + 1)
    const results: PushResult[] = []
    if (body.mutations.length > LIMITS.mutationsPerPush) return problem(413, 'too_large')
    for (const mutation of body.mutations) {
      if (mutation.seq <= last) {
        results.push({ seq: mutation.seq, outcome: 'applied' })
        continue
      }
      if (mutation.seq !== last + 1) return problem(409, 'out_of_order', last + 1)
      last = mutation.seq
      const refusal = faults.reject(mutation)
      if (!refusal) {
        for (const patch of mutation.patches) merge(patch, mutation)
        applied.push(mutation)
      }
      const result: PushResult = refusal
        ? { seq: last, outcome: 'rejected', ...refusal }
        : { seq: last, outcome: 'applied' }
      if (refusal) {
        write('mutation_results', {
          id: crypto.randomUUID(),
          replica_id: replicaId,
          seq: String(last),
          mutation_id: mutation.mutation_id,
          outcome: 'rejected',
          code: refusal.code,
          message: refusal.message,
        })
      }
      results.push(result)
      sequences.set(replicaId, last)
      write('client_progress', { id: replicaId, replica_id: replicaId, last_seq: String(last) })
      commit()
    }
    return Response.json({ last_seq: last, results })
  }

  const merge = (patch: Patch, mutation: Mutation): void => {
    const table = patch.table as TableName
    const columns: TableSpec['columns'] = tables[table].columns
    const present = tableOf(table).get(patch.id)
    if (patch.op === 'update' && !present) return
    const row: TextRow & { id: string } = {
      id: patch.id,
      updated_at: toText(new Date(now()).toISOString(), 'timestamptz'),
    }
    for (const [column, value] of Object.entries(patch.set)) {
      const type = columns[column]?.spec.type
      if (!type) continue
      const clock = `${table}/${patch.id}/${column}`
      const before = toText(patch.base[column], type)
      const untouched = patch.op === 'insert' || sameText(present?.[column] ?? null, before, type)
      if (!untouched && mutation.hlc < (clocks.get(clock) ?? '')) continue
      if ((clocks.get(clock) ?? '') < mutation.hlc) clocks.set(clock, mutation.hlc)
      row[column] = toText(value, type)
    }
    write(table, row)
  }

  const handle = async (input: string, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input)
    const signal = init.signal ?? undefined
    const replicaId = new Headers(init.headers).get('x-hq-replica') ?? url.searchParams.get('replica_id') ?? ''
    const request: FakeRequest = {
      method: init.method ?? 'GET',
      path: url.pathname as FakeRequest['path'],
      table: url.searchParams.get('table') ?? undefined,
      live: url.searchParams.get('live') === 'true',
      offset: url.searchParams.get('offset') ?? undefined,
      replicaId,
    }
    requests.push(request)
    const delay = faults.delay(request)
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay))
    if (signal?.aborted) throw abortError()
    const fault = faults.fault(request)
    if (!faults.online || fault?.kind === 'drop') throw new TypeError('fetch failed')
    if (fault?.kind === 'status') return problem(fault.status, fault.code ?? 'fault')
    const response =
      url.pathname === '/v1/mutations'
        ? push(JSON.parse(String(init.body)) as PushRequest)
        : await shapeAnswer(url, replicaId, signal)
    if (!faults.online || fault?.kind === 'lose') throw new TypeError('fetch failed: connection lost')
    if (fault?.kind === 'body') return new Response(fault.body, { status: response.status, headers: response.headers })
    return response
  }

  return {
    faults,
    signals: {
      state: () => (online ? 'online' : 'offline'),
      onState(listener) {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    },
    reconnect() {
      announce('offline')
      announce('online')
    },
    requests,
    applied,
    fetch: (input, init) => handle(input, init),
    put(table, row) {
      write(table, row)
      commit()
      return row.id
    },
    putMany(table, rows) {
      for (const row of rows) write(table, row)
      commit()
    },
    remove(table, id) {
      const row = tableOf(table).get(id)
      if (!row) return
      tableOf(table).delete(id)
      open.push({ table, operation: 'delete', row })
      commit()
    },
    rows: (table) => [...tableOf(table).values()],
    row: (table, id) => tableOf(table).get(id),
    rotate(table) {
      for (const [key, shape] of shapes) if (shape.table === table) shapes.delete(key)
      for (const wake of [...waiters]) wake()
    },
    lastSeq: (replicaId) => sequences.get(replicaId) ?? 0,
    setLastSeq: (replicaId, seq) => sequences.set(replicaId, seq),
    waiting: () => waiters.size,
    close() {
      faults.online = false
    },
  }
}

const abortError = (): Error => new DOMException('This operation was aborted', 'AbortError')

const keyOf = (table: string, row: TextRow): string => `"public"."${table}"/"${row['id']}"`

const answer = (messages: readonly unknown[], shape: Shape, offset: string, live: boolean): Response =>
  new Response(JSON.stringify(messages), {
    headers: {
      'content-type': 'application/json',
      'electric-handle': shape.handle,
      'electric-offset': offset,
      ...(live ? { 'electric-cursor': String(Date.now()) } : { 'electric-schema': schemaOf(shape.table) }),
    },
  })

const mustRefetch = (handle: string | undefined): Response =>
  new Response('[{"headers":{"control":"must-refetch"}}]', {
    status: 409,
    headers: handle ? { 'electric-handle': handle } : {},
  })

const problem = (status: number, code: string, expected?: number): Response =>
  Response.json({ code, message: code, ...(expected !== undefined && { expected_seq: expected }) }, { status })

const ELECTRIC_TYPES: Partial<Record<SqlType, object>> = {
  boolean: { type: 'bool' },
  integer: { type: 'int4' },
  bigint: { type: 'int8' },
  'double precision': { type: 'float8' },
  'text[]': { type: 'text', dims: 1 },
}

const schemaOf = (table: TableName): string =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(tables[table].columns as TableSpec['columns']).map(([name, { spec }]) => [
        name,
        ELECTRIC_TYPES[spec.type] ?? { type: spec.type },
      ]),
    ),
  )

/** A value as it travels in a patch, to what Postgres prints. */
export const toText = (value: unknown, type: SqlType): string | null => {
  if (value === null || value === undefined) return null
  switch (type) {
    case 'boolean':
      return value ? 't' : 'f'
    case 'jsonb':
      return JSON.stringify(value)
    case 'text[]':
      return `{${(value as (string | null)[]).map((item) => (item === null ? 'NULL' : `"${item.replace(/["\\]/g, '\\$&')}"`)).join(',')}}`
    case 'timestamptz':
      return String(value)
        .replace('T', ' ')
        .replace(/\+00:00$|Z$/, '+00')
    default:
      return String(value)
  }
}

const sameText = (a: string | null, b: string | null, type: SqlType): boolean =>
  a === b ||
  (type === 'timestamptz' && a !== null && b !== null && Date.parse(a) === Date.parse(b)) ||
  (type === 'jsonb' && a !== null && b !== null && canonical(JSON.parse(a)) === canonical(JSON.parse(b)))

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, item: unknown) =>
    item && typeof item === 'object' && !Array.isArray(item) ? Object.fromEntries(Object.entries(item).sort()) : item,
  )

const defaultsOf = (table: TableName, tenantId: string, nowMs: number): TextRow => {
  const row: TextRow = {}
  for (const [name, { spec }] of Object.entries(tables[table].columns as TableSpec['columns'])) {
    const text = spec.default
    if (text === undefined) row[name] = null
    else if (text === 'now()') row[name] = toText(new Date(nowMs).toISOString(), 'timestamptz')
    else if (spec.type === 'boolean') row[name] = text === 'true' ? 't' : 'f'
    else row[name] = text.replace(/^'|'$/g, '')
  }
  row['tenant_id'] = tenantId
  return row
}
