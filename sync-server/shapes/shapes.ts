/**
 * The shapes that are alive, and which of them a changed row can concern.
 *
 *  1. A shape is one definition's log; its handles differ in the snapshot before it. `reserved`: a
 *     handle that nobody has come for yet. `creating`: its snapshot is being taken, changes are kept for it already.
 *     `ready`: served. `dead`: its handles mean 409 for ever.
 *  2. At most one living shape has a definition's key; a new one gets new handles.
 *  3. A shape whose condition demands equalities is found by those values: other rows cost it nothing.
 */
import type { Table } from './catalog.ts'
import type { Definition } from './definition.ts'
import { quoteTable } from './identifiers.ts'
import { createEncoder, type Encoder, type Message } from './messages.ts'
import type { TransactionPart } from './pgoutput.ts'
import { compareOffsets, type Offset } from './protocol.ts'
import type { Row } from './where/compile.ts'

/** A Postgres snapshot: which transactions it sees. Ids are 64-bit. */
export interface Visibility {
  readonly xmin: bigint
  readonly xmax: bigint
  readonly running: ReadonlySet<bigint>
  /** Every transaction that it sees has a commit LSN up to here. */
  readonly untilLsn: number
}

/** Messages of one shape in a part of a transaction. */
export interface HeldPart {
  readonly part: Pick<TransactionPart, 'xid' | 'commitLsn' | 'isFinal'>
  readonly messages: readonly Message[]
  readonly truncates: boolean
}

/**
 * A handle and the snapshot that clients with it began from. A shape gets a further one when its snapshot is taken anew, or
 * when a handle must be refused to one client and not to the others.
 */
export interface Generation {
  readonly handle: string
  /** Number of the snapshot's files; several generations may share them. */
  readonly files: number
  /** Bytes of each chunk file. */
  chunks: readonly number[]
  /** Where the log goes on after the snapshot. */
  readonly from: Offset
  readonly createdAt: number
}

export interface Shape {
  readonly id: number
  readonly definition: Definition
  readonly encoder: Encoder
  state: 'reserved' | 'creating' | 'ready' | 'dead'
  /** Settles when the shape can be served or has failed. */
  ready: Promise<void>
  /** Known from soon after creation until the log has passed `untilLsn`. */
  visibility: Visibility | undefined
  /** What came before the snapshot was known. */
  held: HeldPart[]
  /** Oldest first; never empty. */
  generations: readonly Generation[]
  /** Offsets before this one can't be served any more. */
  floor: Offset
  /** Of the last message in the log. */
  end: Offset | undefined
  usedAt: number
  /** What the log holds since the newest generation began, about. */
  growth: { blocks: number; bytes: number }
  /** Told when the log has grown or the shape is dead. */
  readonly changes: Listeners
}

/** Coming and going cost the same for one listener and for thousands: an EventEmitter, or an AbortSignal, looks through all of them. */
export interface Listeners {
  add(listener: () => void): void
  delete(listener: () => void): void
  tell(): void
}

export const createListeners = (): Listeners => {
  const all = new Set<() => void>()
  return {
    add: (listener) => void all.add(listener),
    delete: (listener) => void all.delete(listener),
    tell() {
      for (const listener of [...all]) listener()
    },
  }
}

/** Whether a snapshot sees a transaction, given its 32-bit id. */
export const sees = ({ xmin, xmax, running }: Visibility, xid: number): boolean => {
  // The 64-bit id nearest to xmax that ends in these 32 bits.
  let full = (xmax & ~0xffffffffn) | BigInt(xid)
  if (full - xmax > 0x7fffffffn) full -= 0x100000000n
  else if (xmax - full > 0x7fffffffn) full += 0x100000000n
  return full < xmin || (full < xmax && !running.has(full))
}

export const newest = (shape: Shape): Generation => shape.generations.at(-1) as Generation

/** The end of the log for clients of a generation. */
export const logEnd = ({ end }: Shape, { from }: Generation): Offset =>
  end && compareOffsets(end, from) > 0 ? end : from

/** Of one shape; older ones then mean 409. */
const MAX_HANDLES = 50

interface TableShapes {
  readonly all: Set<Shape>
  /** Shapes without equalities. */
  readonly plain: Set<Shape>
  /** By the columns of their equalities, then by the values. */
  readonly indexes: Map<string, { readonly columns: readonly number[]; readonly shapes: Map<string, Set<Shape>> }>
}

export interface Served {
  readonly shape: Shape
  readonly generation: Generation
}

export type Shapes = ReturnType<typeof createShapes>

export const createShapes = (now: () => number = Date.now) => {
  const byHandle = new Map<string, Served>()
  const byKey = new Map<string, Shape>()
  const byTable = new Map<number, TableShapes>()
  const oids = new Map<string, number>()
  const encoders = new Map<string, { encoder: Encoder; users: number }>()

  const encoderKey = ({ table, columns, replica }: Definition) => JSON.stringify([table, columns, replica])

  const shareEncoder = (definition: Definition): Encoder => {
    const key = encoderKey(definition)
    let shared = encoders.get(key)
    if (!shared) {
      shared = { encoder: createEncoder(definition.table, definition.columns, definition.replica), users: 0 }
      encoders.set(key, shared)
    }
    shared.users++
    return shared.encoder
  }

  const placeOf = (
    shape: Shape,
    table: TableShapes,
  ): { shapes: Map<string, Set<Shape>>; value: string; columnsKey: string } | undefined => {
    const equalities = [...(shape.definition.where?.equalities ?? [])].sort((a, b) => a.column - b.column)
    if (equalities.length === 0) return undefined
    const columns = equalities.map(({ column }) => column)
    const columnsKey = columns.join()
    let index = table.indexes.get(columnsKey)
    if (!index) {
      index = { columns, shapes: new Map() }
      table.indexes.set(columnsKey, index)
    }
    return { shapes: index.shapes, value: JSON.stringify(equalities.map(({ value }) => value)), columnsKey }
  }

  const addGeneration = (shape: Shape, generation: Generation): void => {
    shape.generations = [...shape.generations, generation]
    byHandle.set(generation.handle, { shape, generation })
    const [oldest, second] = shape.generations
    if (!oldest || !second || shape.generations.length <= MAX_HANDLES) return
    shape.generations = shape.generations.slice(1)
    byHandle.delete(oldest.handle)
  }

  return {
    create(id: number, definition: Definition, generations: readonly Generation[]): Shape {
      const shape: Shape = {
        id,
        definition,
        encoder: shareEncoder(definition),
        state: 'reserved',
        ready: Promise.resolve(),
        visibility: undefined,
        held: [],
        generations: [],
        floor: { tx: 0, op: -1 },
        end: undefined,
        usedAt: now(),
        growth: { blocks: 0, bytes: 0 },
        changes: createListeners(),
      }
      for (const generation of generations) addGeneration(shape, generation)
      byKey.set(definition.key, shape)
      let table = byTable.get(definition.table.oid)
      if (!table) {
        table = { all: new Set(), plain: new Set(), indexes: new Map() }
        byTable.set(definition.table.oid, table)
        oids.set(quoteTable(definition.table), definition.table.oid)
      }
      table.all.add(shape)
      const place = placeOf(shape, table)
      if (!place) table.plain.add(shape)
      else {
        const same = place.shapes.get(place.value)
        if (same) same.add(shape)
        else place.shapes.set(place.value, new Set([shape]))
      }
      return shape
    },

    /** Takes shapes out of everything and wakes who waits on them. */
    remove(shape: Shape): void {
      if (shape.state === 'dead') return
      shape.state = 'dead'
      shape.held = []
      const { definition } = shape
      for (const { handle } of shape.generations) byHandle.delete(handle)
      if (byKey.get(definition.key) === shape) byKey.delete(definition.key)
      const table = byTable.get(definition.table.oid)
      if (table) {
        table.all.delete(shape)
        table.plain.delete(shape)
        const place = placeOf(shape, table)
        const same = place?.shapes.get(place.value)
        same?.delete(shape)
        if (place && same?.size === 0) place.shapes.delete(place.value)
        if (place?.shapes.size === 0) table.indexes.delete(place.columnsKey)
        if (table.all.size === 0) {
          byTable.delete(definition.table.oid)
          const name = quoteTable(definition.table)
          if (oids.get(name) === definition.table.oid) oids.delete(name)
        }
      }
      const key = encoderKey(definition)
      const shared = encoders.get(key)
      if (shared && --shared.users === 0) encoders.delete(key)
      shape.changes.tell()
    },

    byHandle: (handle: string): Served | undefined => byHandle.get(handle),
    byKey: (key: string): Shape | undefined => byKey.get(key),
    isTracked: (tableOid: number): boolean => byTable.has(tableOid),
    /** A table that has a shape, by its quoted name. */
    named: (name: string): Table | undefined => {
      const oid = oids.get(name)
      const [shape] = oid === undefined ? [] : (byTable.get(oid)?.all ?? [])
      return shape?.definition.table
    },
    tables: (): number[] => [...byTable.keys()],
    ofTable: (tableOid: number): Shape[] => [...(byTable.get(tableOid)?.all ?? [])],
    all: (): Shape[] => [...byTable.values()].flatMap(({ all }) => [...all]),
    addGeneration,

    /** Every shape that can hold one of the rows. Its condition is still to be checked. */
    candidates(tableOid: number, rows: readonly (Row | undefined)[]): Set<Shape> {
      const table = byTable.get(tableOid)
      if (!table) return new Set()
      if (table.indexes.size === 0) return table.plain
      const found = new Set(table.plain)
      for (const { columns, shapes } of table.indexes.values()) {
        for (const row of rows) {
          if (!row) continue
          const values = columns.map((column) => row[column] ?? null)
          if (values.includes(null)) continue
          for (const shape of shapes.get(JSON.stringify(values)) ?? []) found.add(shape)
        }
      }
      return found
    },
  }
}
