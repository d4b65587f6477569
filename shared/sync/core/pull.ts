/**
 * One table's stream of changes, pure: turns the server's answers into batches for the database, and failures into another try.
 *
 * R1 A batch carries the position of the last message in it, never the one that the answer's headers promise; a snapshot's rows carry none until all of
 *    them are in.
 * R3 A failed batch ends the stream; it is read again from the stored position. Nothing of a stream that has ended is applied.
 * R4 No answer ends a stream for good: 401 and 403 ask again later, 400 leads to a refetch, everything else to a restart.
 * R6 Whatever starts from the beginning although rows are there is staged and swapped in one step; the old rows stay readable until then.
 *
 * Messages are those of Electric's protocol (wire.ts). All values are the text they were sent as (R7, attach.ts).
 */
import { type Step, step } from './step.ts'

export type TextRow = Readonly<Record<string, string | null>>

/** Where a stream stands. */
export interface Place {
  readonly handle: string
  /** Of the last message applied, `<lsn>_<op>`; `0_inf`: the whole snapshot, and nothing after it. */
  readonly offset: string
  /** The shape has brought everything up to here. */
  readonly position: bigint
  readonly schema?: string | undefined
}

/** An acknowledgement that a row of `client_progress` brings. */
export interface BatchAck {
  readonly seq: number
  /** Undefined: came with a snapshot. */
  readonly lsn: bigint | undefined
  /** Of the mutation numbered `seq`; undefined: the server doesn't say. */
  readonly mutationId?: string | undefined
}

export interface ShapeMessage {
  readonly key?: string
  readonly value?: TextRow
  readonly headers: {
    readonly operation?: 'insert' | 'update' | 'delete'
    readonly control?: 'up-to-date' | 'must-refetch' | 'snapshot-end'
    readonly lsn?: string
    readonly op_position?: number
    readonly global_last_seen_lsn?: string
  }
}

export interface PullState {
  readonly table: string
  readonly status: 'stopped' | 'streaming'
  readonly handle: string | undefined
  readonly position: bigint
  readonly phase: 'snapshot' | 'live'
  /** Rows of the snapshot are staged, because there are rows already (R6). */
  readonly staging: boolean
  readonly staged: boolean
  readonly snapshotAck: BatchAck | undefined
  /** The snapshot is in, what changed since then perhaps not. */
  readonly loading: boolean
  /** Tries in a row that brought nothing. */
  readonly failures: number
  /** The next start is from the beginning, whatever is stored. */
  readonly refetch: boolean
}

export type PullEvent =
  /** `stored`: where the database says the stream stands; undefined: at its beginning. */
  | { readonly type: 'started'; readonly stored: Place | undefined; readonly hasRows: boolean }
  | {
      readonly type: 'answered'
      readonly handle: string
      readonly messages: readonly ShapeMessage[]
      readonly schema?: string | undefined
      /** Whose acknowledgements in `client_progress` count. */
      readonly replicaId: string
    }
  /** All effects of an answer were carried out. */
  | { readonly type: 'applied' }
  /** What is stored could not be read, so the stream did not begin. */
  | { readonly type: 'not_started'; readonly reason: string }
  /** The stream broke, or an effect failed. `status`: of the HTTP answer, if it was one. */
  | { readonly type: 'failed'; readonly reason: string; readonly status?: number | undefined }

export type PullEffect =
  | { readonly type: 'begin_staging' }
  | { readonly type: 'stage'; readonly rows: readonly TextRow[] }
  | { readonly type: 'load'; readonly rows: readonly TextRow[] }
  | { readonly type: 'swap'; readonly place: Place; readonly ack: BatchAck | undefined }
  | {
      readonly type: 'apply'
      readonly upserts: readonly TextRow[]
      readonly deletes: readonly string[]
      readonly place: Place
      readonly ack: BatchAck | undefined
    }
  /** The snapshot is in, and what had changed since it was taken. */
  | { readonly type: 'loaded' }
  /** Everything up to here is in. */
  | { readonly type: 'reached'; readonly position: bigint }
  /** The stream has begun from the beginning, for the first time or anew: what it had reached no longer counts (settle.ts, E7). */
  | { readonly type: 'started_over' }
  | { readonly type: 'set_unauthorized' }
  /** Ask again, on the same stream, after the pause for missing rights (a new session ends it at once). */
  | { readonly type: 'wait_for_rights' }
  /** End the stream; read the stored place and start anew after the back-off of this attempt. */
  | { readonly type: 'restart'; readonly attempt: number; readonly fromBeginning: boolean; readonly reason: string }

/** Rows of one transaction: few enough that a local write never waits long behind it. */
export const ROWS_PER_TRANSACTION = 1_000

export const newPull = (table: string): PullState => ({
  table,
  status: 'stopped',
  handle: undefined,
  position: 0n,
  phase: 'snapshot',
  staging: false,
  staged: false,
  snapshotAck: undefined,
  loading: false,
  failures: 0,
  refetch: false,
})

export function pull(state: PullState, event: PullEvent): Step<PullState, PullEffect> {
  switch (event.type) {
    case 'started':
      return step(started(state, event.stored, event.hasRows))
    case 'answered':
      return state.status === 'streaming' ? answered(state, event) : step(state)
    case 'applied':
      return step({ ...state, failures: 0 })
    case 'not_started':
      return failed(state, { type: 'failed', reason: event.reason })
    case 'failed':
      return state.status === 'streaming' ? failed(state, event) : step(state)
  }
}

function started(state: PullState, stored: Place | undefined, hasRows: boolean): PullState {
  return {
    ...state,
    status: 'streaming',
    handle: stored?.handle,
    position: stored?.position ?? 0n,
    phase: stored ? 'live' : 'snapshot',
    staging: !stored && hasRows,
    staged: false,
    snapshotAck: undefined,
    refetch: false,
  }
}

/** R4 */
function failed(state: PullState, { reason, status }: PullEvent & { type: 'failed' }): Step<PullState, PullEffect> {
  if (status === 401) return step(state, { type: 'set_unauthorized' }, { type: 'wait_for_rights' })
  if (status === 403) return step(state, { type: 'wait_for_rights' })
  const fromBeginning = state.refetch || status === 400
  return step<PullState, PullEffect>(
    { ...state, status: 'stopped', failures: state.failures + 1, refetch: fromBeginning },
    { type: 'restart', attempt: state.failures, fromBeginning, reason },
  )
}

function answered(
  before: PullState,
  { messages, handle, schema, replicaId }: PullEvent & { type: 'answered' },
): Step<PullState, PullEffect> {
  const effects: PullEffect[] = []
  let state = before
  let snapshot = new Map<string, TextRow>()
  let live = new Map<string, TextRow | null>()
  let offset: string | undefined
  let highest: bigint
  let ack: BatchAck | undefined

  const refetch = (): void => {
    snapshot = new Map()
    live = new Map()
    offset = undefined
    state = { ...state, phase: 'snapshot', staging: true, staged: false, snapshotAck: undefined, position: 0n }
    highest = 0n
    // The log may have begun anew (a restored server): what was reached in the old one says nothing of the new one.
    effects.push({ type: 'started_over' })
  }
  const flush = (): void => {
    if (offset === undefined) return
    const upserts = [...live.values()].filter((row) => row !== null)
    const deletes = [...live].flatMap(([id, row]) => (row === null ? [id] : []))
    effects.push({ type: 'apply', upserts, deletes, place: { handle, offset, position: state.position, schema }, ack })
    live = new Map()
    offset = undefined
    ack = undefined
  }
  const snapshotPart = (): void => {
    const rows = [...snapshot.values()]
    snapshot = new Map()
    if (state.staging && !state.staged) {
      effects.push({ type: 'begin_staging' })
      state = { ...state, staged: true }
    }
    for (let start = 0; start < rows.length; start += ROWS_PER_TRANSACTION) {
      effects.push({ type: state.staging ? 'stage' : 'load', rows: rows.slice(start, start + ROWS_PER_TRANSACTION) })
    }
    for (const row of rows) {
      state = { ...state, snapshotAck: ackOf(state.table, row, undefined, replicaId) ?? state.snapshotAck }
    }
  }
  const snapshotEnd = (): void => {
    snapshotPart()
    const place: Place = { handle, offset: '0_inf', position: state.position, schema }
    if (state.staging) effects.push({ type: 'swap', place, ack: state.snapshotAck })
    else effects.push({ type: 'apply', upserts: [], deletes: [], place, ack: state.snapshotAck })
    state = { ...state, phase: 'live', staging: false, staged: false, snapshotAck: undefined, loading: true }
  }

  highest = state.position
  if (state.handle !== undefined && state.handle !== handle && !messages.some(isMustRefetch)) refetch()
  // The first answer from the beginning may be of another log than what other tables stand in, as that of a refetch may.
  if (state.handle === undefined && state.phase === 'snapshot') effects.push({ type: 'started_over' })
  state = { ...state, handle }
  for (const message of messages) {
    const { operation, control, lsn, op_position: op, global_last_seen_lsn: seen } = message.headers
    const row = message.value
    if (row) {
      const id = row['id']
      if (typeof id !== 'string') {
        return failed(before, { type: 'failed', reason: `a message of ${state.table} has no id` })
      }
      if (typeof lsn !== 'string') {
        if (state.phase === 'live') refetch()
        snapshot.set(id, row)
        continue
      }
      if (state.phase === 'snapshot') snapshotEnd()
      live.delete(id)
      live.set(id, operation === 'delete' ? null : row)
      offset = `${lsn}_${op ?? 0}`
      if (BigInt(lsn) > highest) highest = BigInt(lsn)
      ack = ackOf(state.table, row, BigInt(lsn), replicaId) ?? ack
      if (live.size >= ROWS_PER_TRANSACTION) flush()
    } else if (isMustRefetch(message)) {
      refetch()
    } else if (control === 'snapshot-end') {
      if (state.phase === 'snapshot') snapshotEnd()
    } else if (control === 'up-to-date') {
      if (state.phase === 'snapshot') snapshotEnd()
      if (typeof seen === 'string' && BigInt(seen) > highest) highest = BigInt(seen)
      state = { ...state, position: highest }
      flush()
      effects.push({ type: 'reached', position: highest })
      // A snapshot may be old, even empty: only with the changes since then is the table what it is.
      if (state.loading) effects.push({ type: 'loaded' })
      state = { ...state, loading: false }
    }
  }
  if (state.phase === 'snapshot' && snapshot.size > 0) snapshotPart()
  flush()
  return { state, effects }
}

/** `client_progress` is more than rows: it is where mutations are acknowledged. */
function ackOf(table: string, row: TextRow, lsn: bigint | undefined, replicaId: string): BatchAck | undefined {
  if (table !== 'client_progress' || row['replica_id'] !== replicaId || !row['last_seq']) return undefined
  return { seq: Number(row['last_seq']), lsn, mutationId: row['last_mutation_id'] ?? undefined }
}

const isMustRefetch = ({ headers }: ShapeMessage): boolean => headers.control === 'must-refetch'
