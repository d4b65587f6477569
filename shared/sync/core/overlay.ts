/**
 * What a replica's database holds and how it changes, pure: the rows that everybody reads, the server's version of those with pending changes, the
 * outbox, and where each stream stands.
 *
 * In production this is SQL (migrations/0002_replica.sql, attach.ts), because only there is it one transaction with the change itself. This is the same
 * thing to reason with: the simulation runs on it, and overlay.model.test.ts drives both with the same events and compares everything.
 *
 * What SQL does beyond this: it fills in `updated_at` and defaults, and refuses what cannot be sent (C4).
 *
 * O1 A row without pending changes is the server's version; with pending ones it is `fold(base, patches)`.
 * O2 An insert makes the row; over a version that has already come (its own echo) it counts as an update.
 * O3 An update of a row that the server no longer has shows nothing.
 * O4 Ending a mutation and folding again is the exact undo of its patches.
 * O5 What the server sends for a row with pending changes goes below them, never over them.
 * O6 Numbers have no gaps, and an entry leaves the outbox only settled, or because a person gave it up.
 * O7 Acknowledgements that are fetched anew replace what was known: what they don't cover is pending again (the server may have been restored).
 *    So does a server that expects a number which it had acknowledged.
 * O8 A transaction leaves one patch per row, and none for a row that is in the end what it was: that row shows the server's version again.
 * O9 What a patch does to a column merged by differences it does to the server's version: `present + (set − base)`. A sum whose echo has come and whose
 *    mutation is not settled yet counts twice for that moment; a set does not (D4).
 */
import {
  addDifference,
  type DifferenceRule,
  insertOver,
  isDifferenceRule,
  sameDifference,
} from '../../schema/differences.ts'
import { tables } from '../../schema/tables.ts'
import { type Hlc, hlcToText, tick } from '../hlc.ts'
import type { BatchAck, Place, TextRow } from './pull.ts'

export type Values = Readonly<Record<string, unknown>>

export interface Patch {
  readonly table: string
  readonly id: string
  readonly op: 'insert' | 'update' | 'delete'
  readonly set: Values
  readonly base: Values
}

export interface Entry {
  /** Below zero: refused under a former identity; never sent as it is. */
  readonly seq: number
  readonly mutationId: string
  readonly state: 'pending' | 'accepted' | 'rejected'
  readonly hlc: string
  readonly patches: readonly Patch[]
  readonly code?: string | undefined
}

/** Which columns of a table are merged by their differences. */
export type DifferencesOf = (table: string) => Readonly<Record<string, DifferenceRule>>

/** Keys of `rows`, `base` and `staging` are `table/id`. */
export interface Overlay {
  readonly replicaId: string
  readonly next: number
  readonly rows: ReadonlyMap<string, Values>
  /** The server's version (null: it has none) of rows with patches that are not refused. */
  readonly base: ReadonlyMap<string, Values | null>
  readonly outbox: readonly Entry[]
  readonly shapes: ReadonlyMap<string, Place>
  readonly staging: ReadonlyMap<string, Values>
  readonly ack: BatchAck | undefined
  /** Of the last mutation; never goes back, whatever the machine's clock does (H1). */
  readonly clock: Hlc
  readonly differences: DifferencesOf
}

export interface OverlayBatch {
  readonly table: string
  readonly upserts: readonly TextRow[]
  readonly deletes: readonly string[]
  readonly place?: Place | undefined
  readonly ack?: BatchAck | undefined
}

export type OverlayEvent =
  /** A local transaction, as its captured patches; `set` of an update holds what was written, `base` is found here. */
  | {
      readonly type: 'wrote'
      readonly mutationId: string
      /** Milliseconds since 1970, by the machine's clock. */
      readonly now: number
      /** In the order of the statements. `delete` marks the row by its `set`, but takes away what this transaction itself has made. */
      readonly changes: readonly Pick<Patch, 'table' | 'id' | 'op' | 'set'>[]
    }
  | ({ readonly type: 'apply' } & OverlayBatch)
  | { readonly type: 'load'; readonly table: string; readonly rows: readonly TextRow[] }
  | { readonly type: 'begin_staging'; readonly table: string }
  | { readonly type: 'stage'; readonly table: string; readonly rows: readonly TextRow[] }
  | { readonly type: 'swap'; readonly table: string; readonly place: Place; readonly ack: BatchAck | undefined }
  | { readonly type: 'accept'; readonly replicaId: string; readonly upto: number }
  | { readonly type: 'realign'; readonly replicaId: string; readonly expected: number }
  | { readonly type: 'settle'; readonly replicaId: string; readonly upto: number }
  | { readonly type: 'remint'; readonly replicaId: string }
  /** A person gave a refused mutation up. */
  | { readonly type: 'discard'; readonly seq: number }

export const newOverlay = (replicaId: string, differences: DifferencesOf = declaredDifferences): Overlay => ({
  replicaId,
  differences,
  next: 1,
  rows: new Map(),
  base: new Map(),
  outbox: [],
  shapes: new Map(),
  staging: new Map(),
  ack: undefined,
  clock: { ms: 0, counter: 0 },
})

export function overlay(state: Overlay, event: OverlayEvent): Overlay {
  switch (event.type) {
    case 'wrote':
      return wrote(state, event)
    case 'apply':
      return keepPlace(arrived(state, event.table, event.upserts, event.deletes), event)
    case 'load':
      return arrived(state, event.table, event.rows, [])
    case 'begin_staging': {
      const shapes = new Map(state.shapes)
      shapes.delete(event.table)
      return { ...state, staging: without(state.staging, event.table), shapes }
    }
    case 'stage': {
      const staging = new Map(state.staging)
      for (const row of event.rows) staging.set(keyOf(event.table, row['id'] ?? ''), row)
      return { ...state, staging }
    }
    case 'swap':
      return keepPlace(swapped(state, event.table), event)
    case 'accept':
      if (event.replicaId !== state.replicaId) return state
      return withStates(state, (entry) =>
        entry.state === 'pending' && entry.seq <= event.upto ? 'accepted' : entry.state,
      )
    case 'realign':
      if (event.replicaId !== state.replicaId) return state
      return withStates(
        { ...state, ack: state.ack && state.ack.seq >= event.expected ? undefined : state.ack },
        (entry) => (entry.state === 'rejected' ? 'rejected' : entry.seq < event.expected ? 'accepted' : 'pending'),
      )
    case 'settle':
      return event.replicaId === state.replicaId ? settled(state, event.upto) : state
    case 'remint':
      return reminted(state, event.replicaId)
    case 'discard': {
      const outbox = state.outbox.filter(({ seq, state: is }) => seq !== event.seq || is !== 'rejected')
      return { ...state, outbox }
    }
  }
}

/** `local`: columns that only the server writes, as the writer saw them. */
export type FoldablePatch = Pick<Patch, 'op' | 'set'> &
  Partial<Pick<Patch, 'table' | 'base'>> & { readonly local?: Values }

/** What a reader sees: the server's version, then the patches in order (O1–O4, O9). */
export function fold(
  base: Values | undefined,
  patches: readonly FoldablePatch[],
  differences: DifferencesOf = declaredDifferences,
): Values | undefined {
  let seen = base
  for (const { table, op, set, base: before, local } of patches) {
    if (seen === undefined) {
      if (op === 'insert') seen = { ...set, ...local }
      continue
    }
    const over: Record<string, unknown> = {}
    for (const [column, rule] of Object.entries(table === undefined ? {} : differences(table))) {
      if (!Object.hasOwn(set, column)) continue
      over[column] =
        op === 'insert'
          ? insertOver(rule, seen[column], set[column])
          : addDifference(rule, seen[column], before?.[column], set[column])
    }
    seen = { ...seen, ...set, ...local, ...over }
  }
  return seen
}

const declared = new Map<string, Readonly<Record<string, DifferenceRule>>>(
  Object.entries(tables).map(([name, { columns }]) => [
    name,
    Object.fromEntries(
      Object.entries(columns).flatMap(([column, { spec }]) =>
        isDifferenceRule(spec.merge) ? [[column, spec.merge] as const] : [],
      ),
    ),
  ]),
)
const declaredDifferences: DifferencesOf = (table) => declared.get(table) ?? {}

export const keyOf = (table: string, id: string): string => `${table}/${id}`

export const livePatches = ({ outbox }: Overlay, key: string): Patch[] =>
  outbox.flatMap(({ state, patches }) =>
    state === 'rejected' ? [] : patches.filter(({ table, id }) => keyOf(table, id) === key),
  )

/** C1, C2, O8 */
function wrote(state: Overlay, { mutationId, now, changes }: OverlayEvent & { type: 'wrote' }): Overlay {
  const rows = new Map(state.rows)
  const base = new Map(state.base)
  const patches = new Map<string, Patch>()
  for (const { table, id, op, set } of changes) {
    const key = keyOf(table, id)
    const before = rows.get(key)
    const was = patches.get(key)
    if (op === 'insert' ? before !== undefined : before === undefined) continue
    if (op === 'delete' && was?.op === 'insert') {
      patches.delete(key)
      rows.delete(key)
      if (livePatches(state, key).length === 0) base.delete(key)
      continue
    }
    if (op === 'delete' && (before?.['deleted_at'] ?? null) !== null) continue
    const same = (column: string, a: unknown, b: unknown): boolean => sameIn(state.differences(table)[column], a, b)
    const changed = Object.entries(set).filter(([column, value]) => !same(column, value, before?.[column] ?? null))
    if (op !== 'insert' && changed.length === 0) continue
    if (!base.has(key)) base.set(key, before ?? null)
    rows.set(key, { ...before, ...Object.fromEntries(changed) })
    // Nothing is what an insert begins with.
    const insert = op === 'insert' || was?.op === 'insert'
    const from: Values = insert
      ? {}
      : { ...Object.fromEntries(changed.map(([column]) => [column, before?.[column] ?? null])), ...was?.base }
    const to = Object.entries({ ...was?.set, ...Object.fromEntries(changed) }).filter(
      ([column, value]) => !same(column, value, from[column] ?? null),
    )
    patches.set(key, {
      table,
      id,
      op: insert ? 'insert' : 'update',
      set: Object.fromEntries(to),
      base: insert ? {} : Object.fromEntries(to.map(([column]) => [column, from[column]])),
    })
  }
  for (const [key, { op, set }] of patches) {
    if (op === 'insert' || Object.keys(set).length > 0) continue
    patches.delete(key)
    const live = livePatches(state, key)
    show(rows, key, fold(base.get(key) ?? undefined, live, state.differences))
    if (live.length === 0) base.delete(key)
  }
  if (patches.size === 0) return { ...state, rows, base }
  const clock = tick(state.clock, now)
  const hlc = hlcToText(clock, state.replicaId)
  const entry: Entry = { seq: state.next, mutationId, state: 'pending', hlc, patches: [...patches.values()] }
  return { ...state, rows, base, clock, next: state.next + 1, outbox: [...state.outbox, entry] }
}

const sameIn = (rule: DifferenceRule | undefined, a: unknown, b: unknown): boolean =>
  rule === undefined ? a === b : sameDifference(rule, a, b)

/** O5 */
function arrived(state: Overlay, table: string, upserts: readonly TextRow[], deletes: readonly string[]): Overlay {
  const base = new Map(state.base)
  const rows = new Map(state.rows)
  const put = (id: string, row: Values | null): void => {
    const key = keyOf(table, id)
    if (base.has(key)) {
      base.set(key, row)
      show(rows, key, fold(row ?? undefined, livePatches(state, key), state.differences))
    } else show(rows, key, row ?? undefined)
  }
  for (const id of deletes) put(id, null)
  for (const row of upserts) put(row['id'] ?? '', row)
  return { ...state, rows, base }
}

/** R6 */
function swapped(state: Overlay, table: string): Overlay {
  const prefix = `${table}/`
  const rows = new Map(state.rows)
  const base = new Map(state.base)
  for (const key of state.base.keys()) if (key.startsWith(prefix)) base.set(key, state.staging.get(key) ?? null)
  for (const key of state.rows.keys()) if (key.startsWith(prefix) && !state.staging.has(key)) rows.delete(key)
  for (const [key, row] of state.staging) if (key.startsWith(prefix)) rows.set(key, row)
  for (const [key, row] of base) {
    if (key.startsWith(prefix)) show(rows, key, fold(row ?? undefined, livePatches(state, key), state.differences))
  }
  return { ...state, rows, base, staging: without(state.staging, table) }
}

/** A snapshot of the acknowledgements is complete (O7). */
export const acksBeginAnew = ({ table, place }: Pick<OverlayBatch, 'table' | 'place'>): boolean =>
  table === 'client_progress' && place?.offset === '0_inf'

/** R1: in the transaction of the rows. */
function keepPlace(before: Overlay, { table, place, ack }: Pick<OverlayBatch, 'table' | 'place' | 'ack'>): Overlay {
  const state = acksBeginAnew({ table, place })
    ? withStates({ ...before, ack: undefined }, ({ state: is }) => (is === 'accepted' ? 'pending' : is))
    : before
  const shapes = place ? new Map(state.shapes).set(table, place) : state.shapes
  if (!ack) return { ...state, shapes }
  const known = state.ack !== undefined && state.ack.seq > ack.seq
  return withStates({ ...state, shapes, ack: known ? state.ack : ack }, (entry) =>
    entry.state === 'pending' && entry.seq > 0 && entry.seq <= ack.seq ? 'accepted' : entry.state,
  )
}

function settled(state: Overlay, upto: number): Overlay {
  const ending = state.outbox.filter((entry) => entry.seq > 0 && entry.seq <= upto && entry.state !== 'rejected')
  const outbox: Entry[] = []
  for (const entry of state.outbox) {
    if (!ending.includes(entry)) outbox.push(entry)
    else {
      const refusal = refusalOf(state, entry.seq)
      if (refusal) outbox.push({ ...entry, state: 'rejected', code: refusal })
    }
  }
  const next: Overlay = { ...state, outbox }
  const rows = new Map(state.rows)
  const base = new Map(state.base)
  for (const key of new Set(ending.flatMap(({ patches }) => patches.map(({ table, id }) => keyOf(table, id))))) {
    const live = livePatches(next, key)
    show(rows, key, fold(base.get(key) ?? undefined, live, state.differences))
    if (live.length === 0) base.delete(key)
  }
  return { ...next, rows, base }
}

const refusalOf = ({ rows, replicaId }: Overlay, seq: number): string | undefined => {
  for (const [key, row] of rows) {
    if (!key.startsWith('mutation_results/')) continue
    if (row['replica_id'] === replicaId && Number(row['seq']) === seq && row['outcome'] === 'rejected') {
      return String(row['code'] ?? 'invalid')
    }
  }
  return undefined
}

/** Pending ones from 1, refused ones below zero; what belonged to the old identity's streams is forgotten. */
function reminted(state: Overlay, replicaId: string): Overlay {
  const own = (key: string): boolean => key.startsWith('client_progress/') || key.startsWith('mutation_results/')
  let fresh = 0
  let aside = Math.min(0, ...state.outbox.map(({ seq }) => seq))
  const outbox = state.outbox.map((entry): Entry => {
    if (entry.seq < 0) return entry
    if (entry.state === 'rejected') return { ...entry, seq: --aside }
    return { ...entry, seq: ++fresh, state: 'pending' }
  })
  const shapes = new Map(state.shapes)
  shapes.delete('client_progress')
  shapes.delete('mutation_results')
  return {
    ...state,
    replicaId,
    next: fresh + 1,
    ack: undefined,
    outbox: [...outbox].sort((a, b) => a.seq - b.seq),
    shapes,
    rows: new Map([...state.rows].filter(([key]) => !own(key))),
  }
}

const withStates = (state: Overlay, of: (entry: Entry) => Entry['state']): Overlay => ({
  ...state,
  outbox: state.outbox.map((entry) => {
    if (entry.seq <= 0) return entry
    const is = of(entry)
    return is === entry.state ? entry : { ...entry, state: is }
  }),
})

const show = (rows: Map<string, Values>, key: string, row: Values | undefined): void => {
  if (row === undefined) rows.delete(key)
  else rows.set(key, row)
}

const without = (rows: ReadonlyMap<string, Values>, table: string): Map<string, Values> =>
  new Map([...rows].filter(([key]) => !key.startsWith(`${table}/`)))
