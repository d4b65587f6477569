/**
 * Applies the stream of transactions to the shapes' logs, in commit order.
 *
 *  1. A shape's log gets a transaction's changes whole and once, unless the shape's snapshot saw the transaction.
 *  2. Readers see a transaction when it is in the store, all shapes at the same moment; the position moves with it.
 *  3. A shape that can't go on (truncated, table altered, rows unknown, condition fails) is retired, never left wrong.
 *  4. Changes that came before a new shape's snapshot was known are held, and filtered when it is.
 *  5. An error leaves the store as it was; the stream is then read again from the store's position.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sameColumns, type Table } from './catalog.ts'
import type { Session } from './database.ts'
import { evaluateConditions } from './evaluate.ts'
import { LAST, type Message, NOT_LAST } from './messages.ts'
import type { Relation, TransactionId, TransactionPart } from './pgoutput.ts'
import type { Offset } from './protocol.ts'
import { type HeldPart, type Shape, type Shapes, sees, type Visibility } from './shapes.ts'
import type { LogBlock, Store } from './store.ts'
import type { Row, Truth } from './where/compile.ts'

export interface Progress {
  /** Every transaction that committed before this LSN has been sent. */
  readonly sentLsn: number
}
export type StreamItem = TransactionPart | Progress

export interface ApplierOptions {
  readonly shapes: Shapes
  readonly store: Store
  readonly evaluation: Session
  readonly retire: (shape: Shape, reason: string) => void
  /** After each commit: the log has grown or the position moved. */
  readonly onCommit: () => void
  readonly onError: (error: unknown) => void
  /** Bytes that wait to be applied, whenever that changes. */
  readonly onQueued: (bytes: number) => void
}

export type Applier = ReturnType<typeof createApplier>

const BATCH_BYTES = 2 * 1024 * 1024
const BLOCK_BYTES = 256 * 1024

const isPart = (item: StreamItem): item is TransactionPart => 'changes' in item

export const createApplier = (options: ApplierOptions) => {
  const { shapes, store, evaluation, retire, onCommit, onError, onQueued } = options
  let queue: StreamItem[] = []
  let queuedBytes = 0
  let running: Promise<void> | undefined
  /** After an error nothing more is applied until the stream begins again: there would be a gap. */
  let broken = false
  let run = 0
  /** The last message so far of a transaction that goes on: only its end tells whether it is the last. */
  const carried = new Map<Shape, Message>()
  const forms = new WeakMap<Relation, WeakMap<Table, boolean>>()

  const hasForm = (table: Table, relation: Relation): boolean => {
    let known = forms.get(relation)
    if (!known) {
      known = new WeakMap()
      forms.set(relation, known)
    }
    let same = known.get(table)
    if (same === undefined) {
      same =
        table.schema === relation.schema && table.name === relation.name && sameColumns(table.columns, relation.columns)
      known.set(table, same)
    }
    return same
  }

  const drain = async (): Promise<void> => {
    const mine = run
    while (queue.length > 0 && mine === run) {
      const batch: StreamItem[] = []
      let bytes = 0
      while (queue.length > batch.length && bytes < BATCH_BYTES && batch.length < 1000) {
        const item = queue[batch.length] as StreamItem
        bytes += isPart(item) ? item.bytes : 0
        batch.push(item)
      }
      queue.splice(0, batch.length)
      const parts = batch.filter(isPart)
      const verdicts = await verdictsOf(parts)
      if (mine !== run) return
      applyBatch(batch, verdicts)
      queuedBytes -= bytes
      onQueued(queuedBytes)
      // Requests get their turn between batches.
      if (queue.length > 0) await nextTurn()
    }
  }

  /** Asks Postgres about the rows that may concern a shape whose condition is not compiled. */
  const verdictsOf = async (parts: readonly TransactionPart[]): Promise<Verdicts | undefined> => {
    let asked: Map<number, { shapes: Set<Shape>; rows: Set<Row> }> | undefined
    for (const { changes } of parts) {
      for (const { kind, relation, old, new: row, isComplete } of changes) {
        if (kind === 'truncate' || !isComplete) continue
        for (const shape of shapes.candidates(relation.oid, [old, row])) {
          const { where, table } = shape.definition
          if (!where || where.predicate || shape.state === 'reserved' || !hasForm(table, relation)) continue
          asked ??= new Map()
          let question = asked.get(relation.oid)
          if (!question) {
            question = { shapes: new Set(), rows: new Set() }
            asked.set(relation.oid, question)
          }
          question.shapes.add(shape)
          if (old) question.rows.add(old)
          if (row) question.rows.add(row)
        }
      }
    }
    if (!asked) return undefined
    const verdicts: Verdicts = new Map()
    for (const { shapes: some, rows: asking } of asked.values()) {
      const rows = [...asking]
      const results = await evaluateConditions(evaluation, [...some], rows)
      for (const [shape, result] of results) {
        verdicts.set(
          shape,
          result instanceof Error ? result : new Map(rows.map((row, index) => [row, result[index] ?? null])),
        )
      }
    }
    return verdicts
  }

  const holds = (shape: Shape, row: Row | undefined, verdicts: Verdicts | undefined): Truth | Error => {
    const { where } = shape.definition
    if (!row) return false
    if (!where) return true
    if (where.predicate) return where.predicate(row)
    // A shape that began while Postgres was asked: its snapshot sees this transaction, so nothing depends on the answer.
    const verdict = verdicts?.get(shape)
    return verdict instanceof Error ? verdict : (verdict?.get(row) ?? null)
  }

  /** What a part of a transaction is for each shape; truncates and forms that changed included. */
  const messagesOf = (
    part: TransactionPart,
    verdicts: Verdicts | undefined,
  ): Map<Shape, { messages: Message[]; ends?: string }> => {
    const found = new Map<Shape, { messages: Message[]; ends?: string }>()
    const entryOf = (shape: Shape) => {
      let entry = found.get(shape)
      if (!entry) {
        entry = { messages: [] }
        found.set(shape, entry)
      }
      return entry
    }
    for (const change of part.changes) {
      if (change.kind === 'truncate') {
        for (const shape of shapes.ofTable(change.relation.oid)) entryOf(shape).ends ??= 'its table was truncated'
        continue
      }
      const { old, new: row, relation } = change
      // Without whole rows nothing can be told, so that every shape of the table is concerned.
      const concerned = change.isComplete ? shapes.candidates(relation.oid, [old, row]) : shapes.ofTable(relation.oid)
      for (const shape of concerned) {
        if (!change.isComplete || !hasForm(shape.definition.table, relation)) {
          entryOf(shape).ends ??= change.isComplete
            ? 'its table has changed'
            : 'the log does not hold whole rows of its table'
          continue
        }
        const before = holds(shape, old, verdicts)
        const after = holds(shape, row, verdicts)
        if (before instanceof Error || after instanceof Error) {
          entryOf(shape).ends ??= 'its condition fails on a row'
          continue
        }
        const messages = shape.encoder.encode(change, part, before, after)
        if (messages.length > 0) entryOf(shape).messages.push(...messages)
      }
    }
    return found
  }

  const applyBatch = (batch: readonly StreamItem[], verdicts: Verdicts | undefined): void => {
    let position = store.position()
    let restart = store.restartLsn()
    let last: TransactionId | undefined
    const collected = createCollector(carried)
    for (const item of batch) {
      if (!isPart(item)) {
        position = Math.max(position, item.sentLsn - 1)
        restart = Math.max(restart, item.sentLsn)
        continue
      }
      if (item.commitLsn <= position) continue
      for (const [shape, { messages, ends }] of messagesOf(item, verdicts)) {
        if (shape.state === 'dead' || shape.state === 'reserved') continue
        if (shape.state === 'creating' && !shape.visibility && !isRevealed(shape)) {
          shape.held.push({ part: item, messages, truncates: ends !== undefined })
        } else if (!isSeen(shape, item)) {
          if (ends === undefined) collected.add(shape, item, messages)
          else {
            collected.drop(shape)
            retire(shape, ends)
          }
        }
      }
      if (item.isFinal) {
        collected.endTransaction(item)
        // The next commit can't be logged before this one's record ends.
        position = Math.max(item.commitLsn, item.endLsn - 1)
        restart = Math.max(restart, item.endLsn)
        last = { xid: item.xid, commitLsn: item.commitLsn, committedAt: item.committedAt }
      }
    }
    store.commit({ position, restart, last, blocks: collected.blocks })
    for (const [shape, end] of collected.ends) {
      if (shape.state === 'dead') continue
      shape.end = end
      shape.changes.tell()
    }
    onCommit()
  }

  const revealed = new WeakSet<Shape>()
  const isRevealed = (shape: Shape): boolean => revealed.has(shape)

  const start = (): void => {
    if (running) return
    running = drain()
      .catch((error) => {
        queue = []
        broken = true
        onError(error)
      })
      .finally(() => {
        running = undefined
        if (queue.length > 0) start()
      })
  }

  return {
    push(item: StreamItem): void {
      if (broken) return
      // A keep-alive says again what the one before it said.
      const last = queue.at(-1)
      if (last && !isPart(last) && !isPart(item)) queue[queue.length - 1] = item
      else queue.push(item)
      if (isPart(item)) {
        queuedBytes += item.bytes
        onQueued(queuedBytes)
      }
      start()
    },

    /** The snapshot of a new shape is known: what was held and is not in it goes to the log. */
    reveal(shape: Shape, visibility: Visibility): void {
      revealed.add(shape)
      shape.visibility = visibility
      const held = shape.held.filter(({ part }) => !sees(visibility, part.xid))
      shape.held = []
      if (held.some(({ truncates }) => truncates)) {
        retire(shape, 'its table was truncated or changed')
        return
      }
      const collected = createCollector(carried)
      for (const { part, messages } of held) {
        collected.add(shape, part, messages)
        if (part.isFinal) collected.endTransaction(part, shape)
      }
      store.append(collected.blocks)
      shape.end = collected.ends.get(shape) ?? shape.end
    },

    /** The stream begins again at the store's position. */
    reset(): void {
      run++
      broken = false
      queue = []
      queuedBytes = 0
      carried.clear()
      store.discardUnfinished()
      for (const shape of shapes.all()) {
        shape.held = shape.held.filter(({ part }: HeldPart) => part.commitLsn <= store.position())
      }
      onQueued(0)
    },

    /** Resolves when everything pushed so far is applied or given up. */
    idle: async (): Promise<void> => {
      while (running) await running
    },
  }
}

type Transaction = Pick<TransactionPart, 'commitLsn' | 'xid'>
type Verdicts = Map<Shape, Map<Row, Truth> | Error>

const isSeen = (shape: Shape, { commitLsn, xid }: TransactionPart): boolean => {
  if (!shape.visibility) return false
  if (commitLsn > shape.visibility.untilLsn) {
    shape.visibility = undefined
    return false
  }
  return sees(shape.visibility, xid)
}

/** Turns messages into log blocks; `last` goes on a transaction's final message in each shape. */
const createCollector = (carried: Map<Shape, Message>) => {
  const blocks = new Map<number, LogBlock[]>()
  const ends = new Map<Shape, Offset>()

  const addBlock = (
    shape: Shape,
    { commitLsn: tx, xid }: Transaction,
    messages: readonly Message[],
    isEnd: boolean,
  ): void => {
    let list = blocks.get(shape.id)
    if (!list) {
      list = []
      blocks.set(shape.id, list)
    }
    for (let from = 0; from < messages.length; ) {
      const buffers: Buffer[] = []
      const marks: number[] = []
      let size = 0
      let index = from
      for (; index < messages.length && (size === 0 || size < BLOCK_BYTES); index++) {
        const { op, head } = messages[index] as Message
        const isLast = isEnd && index === messages.length - 1
        const bytes = Buffer.from(`${size === 0 ? '' : ','}${head}${isLast ? LAST : NOT_LAST}`)
        marks.push(op, size === 0 ? 0 : size + 1)
        buffers.push(bytes)
        size += bytes.length
      }
      const opLast = (messages[index - 1] as Message).op
      const body = buffers.length === 1 ? (buffers[0] as Buffer) : Buffer.concat(buffers)
      shape.growth.blocks++
      shape.growth.bytes += body.length
      list.push({ tx, xid, op: (messages[from] as Message).op, opLast, body, marks: Uint32Array.from(marks) })
      from = index
    }
  }

  return {
    blocks,
    ends,
    add(shape: Shape, transaction: Transaction, messages: readonly Message[]): void {
      if (messages.length === 0) return
      const before = carried.get(shape)
      carried.set(shape, messages.at(-1) as Message)
      const known = before ? [before, ...messages.slice(0, -1)] : messages.slice(0, -1)
      if (known.length > 0) addBlock(shape, transaction, known, false)
    },
    drop(shape: Shape): void {
      carried.delete(shape)
      blocks.delete(shape.id)
      ends.delete(shape)
    },
    endTransaction(transaction: Transaction, only?: Shape): void {
      for (const [shape, message] of carried) {
        if (only && shape !== only) continue
        addBlock(shape, transaction, [message], true)
        ends.set(shape, { tx: transaction.commitLsn, op: message.op })
        carried.delete(shape)
      }
    },
  }
}
