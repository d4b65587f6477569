/**
 * The server of the simulation: the real decisions (`sequence`, `planMutation`, `mergeUpdate`, `visibleRows`) over rows in memory, and the shape protocol
 * as local-first.md §1 states it. One transaction at a time, so its log is in commit order by construction.
 *
 * It can crash (what is committed stays), lose its log below some position (retention), rotate shapes, and be restored from an older copy of itself.
 */

import { visibleRows } from '@hq/shared/domain/access.ts'
import { derivedId } from '@hq/shared/domain/ids.ts'
import { isTableName, tables } from '@hq/shared/schema/tables.ts'
import type { ShapeMessage, TextRow } from '@hq/shared/sync/core/pull.ts'
import type { ErrorBody, Mutation, Principal, PushResult } from '@hq/shared/sync/protocol.ts'
import type { Clocks, Values } from '@hq/sync-server/mutations/merge.ts'
import { type Entry, planMutation, Rejected } from '@hq/sync-server/mutations/plan.ts'
import { otherMutation, sequence } from '@hq/sync-server/mutations/sequence.ts'
import { createStore, withDefaults } from '@hq/sync-server/mutations/store.ts'
import type { Random } from './random.ts'

export const TENANT = '0197f000-0000-7000-8000-000000000001'
export const TABLES = ['contacts', 'streams', 'conflicts', 'client_progress', 'mutation_results'] as const
export type SimTable = (typeof TABLES)[number]

interface LogEntry {
  readonly lsn: bigint
  readonly op: number
  readonly table: SimTable
  readonly before: Values | undefined
  readonly after: Values | undefined
}

interface Shape {
  readonly handle: string
  readonly table: SimTable
  readonly where: Readonly<Record<string, string>>
  readonly snapshot: readonly Values[]
  readonly lsn: bigint
}

/** Everything that is on the server's disk: what a backup holds. */
interface Stored {
  readonly rows: ReadonlyMap<string, Values>
  readonly clocks: ReadonlyMap<string, Clocks>
  readonly progress: ReadonlyMap<string, number>
  /** `replica/seq` → mutation id */
  readonly taken: ReadonlyMap<string, string>
  /** Mutation id → how often it took effect, and where the log then stood. */
  readonly effects: ReadonlyMap<string, { readonly times: number; readonly lsn: bigint }>
  readonly refusals: ReadonlySet<string>
  readonly lsn: bigint
}

export interface ShapeRequest {
  readonly table: SimTable
  readonly handle: string | undefined
  readonly offset: string
  readonly live: boolean
  readonly principal: Principal
  readonly replicaId: string
}

export interface ShapeAnswer {
  readonly status: 200 | 409
  readonly handle: string | undefined
  readonly offset: string
  readonly messages: readonly ShapeMessage[]
  readonly upToDate: boolean
}

export interface PushAnswer {
  readonly status: number
  readonly results?: readonly PushResult[]
  readonly lastSeq?: number
  readonly body?: ErrorBody
}

export interface Authority {
  /** Undefined: nothing to say yet (`live`); `onChange` tells when there may be. */
  shape(request: ShapeRequest, random: Random): ShapeAnswer | undefined
  push(principal: Principal, replicaId: string, mutations: readonly Mutation[], now: number): PushAnswer
  onChange(listener: () => void): () => void
  rotate(table: SimTable): void
  /** The log is kept from here on only. */
  prune(): void
  backup(): void
  /** False: there is no backup. */
  restore(): boolean
  /** What a reader sees, by id. */
  visible(table: SimTable, principal: Principal, replicaId: string): Map<string, Values>
  effectOf(mutationId: string): { readonly times: number; readonly lsn: bigint } | undefined
  refused(mutationId: string): boolean
  /** What a shape of this reader held at that place of its log; undefined: that handle is no longer served. */
  contentAt(handle: string, offset: string): Map<string, Values> | undefined
  /** In `conflicts`: is this value kept as the loser of this column? */
  keptAsLoser(table: string, id: string, column: string, value: unknown): boolean
  row(table: string, id: string): Values | undefined
  clocksOf(table: string, id: string): Clocks
  readonly epoch: () => number
  readonly lsn: () => bigint
}

const isSimTable = (name: string): name is SimTable => (TABLES as readonly string[]).includes(name)
const keyOf = (table: string, id: string): string => `${table}/${id}`

export function createAuthority(start: number): Authority {
  let stored: Stored = {
    rows: new Map(),
    clocks: new Map(),
    progress: new Map(),
    taken: new Map(),
    effects: new Map(),
    refusals: new Set(),
    lsn: 1000n,
  }
  let log: LogEntry[] = []
  /** Everything up to here is no longer in the log; `floorOp` is the last operation of that transaction. */
  let floor = 0n
  let floorOp = 0
  let backup: Stored | undefined
  let shapes = new Map<string, Shape>()
  let handles = 0
  let epoch = 1
  const listeners = new Set<() => void>()
  const changed = (): void => {
    for (const listener of [...listeners]) listener()
  }

  /** One transaction: all its rows in the log under one position. */
  const begin = () => {
    const rows = new Map(stored.rows)
    const lsn = stored.lsn + 10n
    const entries: LogEntry[] = []
    return {
      lsn,
      rows,
      put(table: SimTable, id: string, row: Values | undefined) {
        const key = keyOf(table, id)
        entries.push({ lsn, op: entries.length * 2, table, before: rows.get(key), after: row })
        if (row) rows.set(key, row)
        else rows.delete(key)
      },
      commit(rest: Partial<Stored>) {
        stored = { ...stored, ...rest, rows, lsn }
        log.push(...entries)
        changed()
      },
    }
  }

  const shapeFor = (table: SimTable, principal: Principal, replicaId: string, beginning: boolean): Shape => {
    const where = visibleRows(tables[table], principal, replicaId)
    if (!where) throw new Error(`${table} is not visible to a ${principal.kind}`)
    const name = `${table} ${JSON.stringify(where)}`
    const known = shapes.get(name)
    // Whoever begins now needs what the log no longer has, if the snapshot is older than it.
    if (known && (known.lsn >= floor || !beginning)) return known
    const shape: Shape = {
      handle: `${table}-${++handles}`,
      table,
      where,
      snapshot: rowsOf(stored.rows, table).filter((row) => matches(row, where)),
      lsn: stored.lsn,
    }
    shapes.set(name, shape)
    return shape
  }

  const changesSince = (shape: Shape, after: readonly [bigint, number]): ShapeMessage[] => {
    const messages: ShapeMessage[] = []
    for (const { lsn, op, table, before, after: row } of log) {
      if (table !== shape.table || lsn <= shape.lsn || lsn < after[0] || (lsn === after[0] && op <= after[1])) continue
      const was = before !== undefined && matches(before, shape.where)
      const is = row !== undefined && matches(row, shape.where)
      if (!was && !is) continue
      const operation = !is ? 'delete' : was ? 'update' : 'insert'
      messages.push({
        value: toText((is ? row : before) ?? {}),
        headers: { operation, lsn: String(lsn), op_position: op },
      })
    }
    return messages
  }

  const shape = (request: ShapeRequest, random: Random): ShapeAnswer | undefined => {
    const found = shapeFor(request.table, request.principal, request.replicaId, request.offset === '-1')
    const upToDate: ShapeMessage = { headers: { control: 'up-to-date', global_last_seen_lsn: String(stored.lsn) } }
    const snapshotEnd: ShapeMessage = { headers: { control: 'snapshot-end' } }
    const answer = (messages: ShapeMessage[], offset: string, ends: boolean): ShapeAnswer => ({
      status: 200,
      handle: found.handle,
      offset,
      messages: ends ? [...messages, upToDate] : messages,
      upToDate: ends,
    })
    const conflict = (): ShapeAnswer => ({
      status: 409,
      handle: random.chance(0.8) ? found.handle : undefined,
      offset: '-1',
      messages: [],
      upToDate: false,
    })
    const at = request.offset === '-1' ? undefined : parseOffset(request.offset)
    if (at && request.handle !== found.handle) return conflict()
    const below =
      at !== undefined && (at[0] === 0n ? found.lsn < floor : at[0] < floor || (at[0] === floor && at[1] < floorOp))
    if (at && (at[0] > stored.lsn || below)) {
      shapes.delete(`${found.table} ${JSON.stringify(found.where)}`)
      return conflict()
    }
    if (!at || (at[0] === 0n && at[1] !== Number.POSITIVE_INFINITY)) {
      const from = at ? (at[1] + 1) * SNAPSHOT_ROWS : 0
      const part = found.snapshot.slice(from, from + SNAPSHOT_ROWS).map((row) => ({
        value: toText(row),
        headers: { operation: 'insert' as const },
      }))
      const last = from + SNAPSHOT_ROWS >= found.snapshot.length
      if (!last) return answer(part, `0_${at ? at[1] + 1 : 0}`, false)
      // Ours ends the snapshot with everything since then; Electric only on the next request.
      if (random.chance(0.5)) return answer([...part, snapshotEnd], '0_inf', false)
      const more = changesSince(found, [0n, 0])
      return answer([...part, snapshotEnd, ...more], offsetOf(more.at(-1), '0_inf'), true)
    }
    const all = changesSince(found, at)
    const some = random.chance(0.3) ? all.slice(0, 1 + random.below(3)) : all
    if (some.length < all.length) return answer(some, offsetOf(some.at(-1), request.offset), false)
    if (request.live && all.length === 0) return undefined
    // Up-to-date, and by its header beyond the last message of its body (local-first.md §9).
    const offset = random.chance(0.5) ? `${stored.lsn}_inf` : offsetOf(all.at(-1), request.offset)
    return answer(all, offset, true)
  }

  const push = (principal: Principal, replicaId: string, mutations: readonly Mutation[], now: number): PushAnswer => {
    const last = stored.progress.get(replicaId) ?? 0
    const items = mutations.map((mutation) => ({ seq: mutation.seq, mutationId: mutation.mutation_id, mutation }))
    const ordered = sequence(items, last)
    if (ordered.type === 'out_of_order') {
      return { status: 409, body: { code: 'out_of_order', message: 'gap', expected_seq: ordered.expected } }
    }
    const taken = new Map(
      ordered.repeats.flatMap(({ seq }) => {
        const id = stored.taken.get(`${replicaId}/${seq}`)
        return id === undefined ? [] : [[seq, id] as const]
      }),
    )
    if (otherMutation(ordered.repeats, taken)) {
      return { status: 409, body: { code: 'identity_taken', message: 'another copy' } }
    }
    const outcome = (mutationId: string): PushResult['outcome'] =>
      stored.refusals.has(mutationId) ? 'rejected' : 'applied'
    const results: PushResult[] = ordered.repeats.map(({ seq, mutationId }) => ({ seq, outcome: outcome(mutationId) }))
    if (ordered.fresh.length === 0) return { status: 200, lastSeq: last, results }
    results.push(...take(principal, replicaId, ordered.fresh, now))
    return { status: 200, lastSeq: ordered.fresh.at(-1)?.seq ?? last, results }
  }

  const take = (
    principal: Principal,
    replicaId: string,
    fresh: readonly { seq: number; mutationId: string; mutation: Mutation }[],
    now: number,
  ): PushResult[] => {
    const transaction = begin()
    const clocks = new Map(stored.clocks)
    const effects = new Map(stored.effects)
    const refusals = new Set(stored.refusals)
    const taken = new Map(stored.taken)
    const results: PushResult[] = []
    for (const { seq, mutationId, mutation } of fresh) {
      let entry: Entry | undefined
      let refusal: Rejected | undefined
      // A copied replica sends under a new name what the original has sent: it has its effect already.
      if (effects.has(mutationId)) {
        taken.set(`${replicaId}/${seq}`, mutationId)
        results.push({ seq, outcome: 'applied' })
        continue
      }
      try {
        const store = createStore(TENANT)
        for (const [key, row] of transaction.rows) {
          const table = key.slice(0, key.indexOf('/'))
          if (isTableName(table)) store.fill(table, row, true)
        }
        for (const [key, of] of clocks) {
          const [table = '', id = ''] = key.split('/')
          if (isTableName(table)) store.fillClocks(table, id, of)
        }
        entry = planMutation(mutation, { principal, replicaId, store, now })
        refusal = uniqueness(transaction.rows, entry)
      } catch (error) {
        if (!(error instanceof Rejected)) throw error
        refusal = error
      }
      if (refusal || !entry) {
        refusals.add(mutationId)
        results.push({ seq, outcome: 'rejected', code: refusal?.code ?? 'invalid', message: refusal?.message ?? '' })
        const id = derivedId('result', replicaId, String(seq))
        const row = {
          replica_id: replicaId,
          seq,
          mutation_id: mutationId,
          outcome: 'rejected',
          code: refusal?.code ?? 'invalid',
        }
        transaction.put('mutation_results', id, withDefaults('mutation_results', { id, tenant_id: TENANT, ...row }))
      } else {
        for (const { op, table, rows } of entry.ops) {
          if (!isSimTable(table)) continue
          for (const row of rows) {
            const id = String(row['id'])
            const before = transaction.rows.get(keyOf(table, id))
            if (op === 'ignore' && before) continue
            transaction.put(table, id, before ? { ...before, ...row } : withDefaults(table, row))
          }
        }
        for (const { table_name, row_id, clocks: more } of entry.clocks) {
          const key = keyOf(table_name, row_id)
          clocks.set(key, { ...clocks.get(key), ...more })
        }
        effects.set(mutationId, { times: (effects.get(mutationId)?.times ?? 0) + 1, lsn: transaction.lsn })
        results.push({ seq, outcome: 'applied' })
      }
      taken.set(`${replicaId}/${seq}`, mutationId)
    }
    const end = fresh.at(-1)
    const progress = {
      id: replicaId,
      tenant_id: TENANT,
      replica_id: replicaId,
      last_seq: end?.seq ?? 0,
      last_mutation_id: end?.mutationId ?? null,
    }
    transaction.put('client_progress', replicaId, progress)
    transaction.commit({
      clocks,
      effects,
      refusals,
      taken,
      progress: new Map(stored.progress).set(replicaId, end?.seq ?? 0),
    })
    return results
  }

  const seedRows = begin()
  for (let index = 0; index < 6; index++) {
    const id = derivedId('contact', String(index))
    const at = new Date(start).toISOString()
    seedRows.put(
      'contacts',
      id,
      withDefaults('contacts', { id, tenant_id: TENANT, name: `contact ${index}`, created_at: at }),
    )
  }
  seedRows.commit({})

  return {
    shape,
    push,
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    rotate(table) {
      for (const [name, { table: of }] of shapes) if (of === table) shapes.delete(name)
      changed()
    },
    prune() {
      floor = stored.lsn
      floorOp = log.at(-1)?.lsn === floor ? (log.at(-1)?.op ?? 0) : floorOp
      log = []
      changed()
    },
    backup() {
      backup = stored
    },
    restore() {
      if (!backup) return false
      stored = backup
      log = []
      floor = 0n
      shapes = new Map()
      epoch++
      changed()
      return true
    },
    visible(table, principal, replicaId) {
      const where = visibleRows(tables[table], principal, replicaId)
      const rows = where ? rowsOf(stored.rows, table).filter((row) => matches(row, where)) : []
      return new Map(rows.map((row) => [String(row['id']), row]))
    },
    effectOf: (mutationId) => stored.effects.get(mutationId),
    refused: (mutationId) => stored.refusals.has(mutationId),
    contentAt(handle, offset) {
      const found = [...shapes.values()].find((one) => one.handle === handle)
      if (!found || found.lsn < floor) return undefined
      const content = new Map(found.snapshot.map((row) => [String(row['id']), row]))
      const [upto, uptoOp] = parseOffset(offset)
      for (const { lsn, op, table, before, after } of log) {
        if (table !== found.table || lsn <= found.lsn || lsn > upto || (lsn === upto && op > uptoOp)) continue
        if (before) content.delete(String(before['id']))
        if (after && matches(after, found.where)) content.set(String(after['id']), after)
      }
      return content
    },
    keptAsLoser: (table, id, column, value) =>
      rowsOf(stored.rows, 'conflicts').some(
        (row) =>
          row['table_name'] === table &&
          row['row_id'] === id &&
          row['column_name'] === column &&
          row['loser'] === value,
      ),
    row: (table, id) => stored.rows.get(keyOf(table, id)),
    clocksOf: (table, id) => stored.clocks.get(keyOf(table, id)) ?? {},
    epoch: () => epoch,
    lsn: () => stored.lsn,
  }
}

const SNAPSHOT_ROWS = 5

const rowsOf = (rows: ReadonlyMap<string, Values>, table: SimTable): Values[] =>
  [...rows].flatMap(([key, row]) => (key.startsWith(`${table}/`) ? [row] : []))

const matches = (row: Values, where: Readonly<Record<string, string>>): boolean =>
  Object.entries(where).every(([column, value]) => row[column] === value)

const toText = (row: Values): TextRow =>
  Object.fromEntries(
    Object.entries(row).map(([column, value]) => [
      column,
      value === null || value === undefined ? null : typeof value === 'object' ? JSON.stringify(value) : String(value),
    ]),
  )

const parseOffset = (offset: string): readonly [bigint, number] => {
  const [lsn = '0', op = '0'] = offset.split('_')
  return [BigInt(lsn), op === 'inf' ? Number.POSITIVE_INFINITY : Number(op)]
}

const offsetOf = (message: ShapeMessage | undefined, otherwise: string): string =>
  message?.headers.lsn === undefined ? otherwise : `${message.headers.lsn}_${message.headers.op_position ?? 0}`

/** What the database would refuse: two living streams of one name. */
function uniqueness(rows: ReadonlyMap<string, Values>, { ops }: Entry): Rejected | undefined {
  const streams = new Map(rowsOf(rows, 'streams').map((row) => [String(row['id']), row]))
  for (const { table, rows: changed } of ops) {
    if (table !== 'streams') continue
    for (const row of changed) streams.set(String(row['id']), { ...streams.get(String(row['id'])), ...row })
  }
  const names = [...streams.values()].filter((row) => !row['deleted_at']).map((row) => row['name'])
  return new Set(names).size === names.length
    ? undefined
    : new Rejected('not_unique', 'There is such a stream already.')
}
