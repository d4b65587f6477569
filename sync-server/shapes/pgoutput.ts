/**
 * Decodes pgoutput (protocol version 1, text values) into transactions.
 *
 *  1. Values stay the text that Postgres prints, or null; rows are in the order of the relation's columns.
 *  2. Every row change and truncate of a transaction takes the next position `op` (0, 2, 4, …), whether somebody wants the
 *     table or not: positions are the same however often the stream is read.
 *  3. A value that Postgres left out because it is large and unchanged is filled in from the old row, where there is one.
 *  4. The payload is only read during `push`: its buffer may be reused afterwards.
 *  5. A large transaction comes in parts; only the last has `isFinal`.
 */
import type { Row } from './where/compile.ts'

export interface RelationColumn {
  readonly name: string
  readonly typeOid: number
  readonly typmod: number
}

export interface Relation {
  readonly oid: number
  readonly schema: string
  readonly name: string
  readonly columns: readonly RelationColumn[]
}

export interface Change {
  readonly kind: 'insert' | 'update' | 'delete' | 'truncate'
  readonly relation: Relation
  readonly op: number
  readonly old: Row | undefined
  readonly new: Row | undefined
  /** False when the old row or a value of the new one is unknown, because the log did not hold whole rows. */
  readonly isComplete: boolean
}

/** Tells a transaction from any other that a restored database may have in its place. */
export interface TransactionId {
  readonly xid: number
  readonly commitLsn: number
  /** Microseconds, by the clock of Postgres. */
  readonly committedAt: number
}

export interface TransactionPart extends TransactionId {
  /** Where the stream goes on after this transaction; 0 while it is not final. */
  readonly endLsn: number
  readonly isFinal: boolean
  readonly changes: readonly Change[]
  /** Size on the wire, for limits. */
  readonly bytes: number
}

export interface DecoderOptions {
  /** Whether anybody wants the rows of this table; asked for each change. */
  readonly isWanted: (relationOid: number) => boolean
  /** Called when a transaction begins, before any of its changes. */
  readonly onBegin: (transaction: TransactionId) => void
  readonly onPart: (part: TransactionPart) => void
  readonly partBytes: number
}

export interface Decoder {
  push(payload: Buffer): void
  /** Whether a transaction has begun and not ended. */
  isInside(): boolean
}

const UNCHANGED: unique symbol = Symbol('unchanged')
type Tuple = (string | null | typeof UNCHANGED)[]

export const createDecoder = ({ isWanted, onBegin, onPart, partBytes }: DecoderOptions): Decoder => {
  const relations = new Map<number, Relation>()
  let inside = false
  let xid = 0
  let commitLsn = 0
  let committedAt = 0
  let op = 0
  let bytes = 0
  let changes: Change[] = []

  const emit = (isFinal: boolean, endLsn: number): void => {
    onPart({ xid, commitLsn, committedAt, endLsn, isFinal, changes, bytes })
    changes = []
    bytes = 0
  }

  const relationOf = (oid: number): Relation => {
    const relation = relations.get(oid)
    if (!relation) throw new Error(`the stream changed a table it had not described (oid ${oid})`)
    return relation
  }

  const readRelation = (reader: Reader): void => {
    const oid = reader.int32()
    const schema = reader.text() || 'pg_catalog'
    const name = reader.text()
    reader.skip(1)
    const columns = Array.from({ length: reader.int16() }, (): RelationColumn => {
      reader.skip(1)
      return { name: reader.text(), typeOid: reader.int32(), typmod: reader.int32() | 0 }
    })
    relations.set(oid, { oid, schema, name, columns })
  }

  const change = (kind: 'insert' | 'update' | 'delete', reader: Reader): void => {
    const oid = reader.int32()
    const at = op
    op += 2
    if (!isWanted(oid)) return
    const relation = relationOf(oid)
    let marker = reader.byte()
    let old: Tuple | undefined
    let isComplete = kind === 'insert'
    if (marker === KEY || marker === OLD) {
      old = reader.tuple()
      isComplete = marker === OLD
      if (kind === 'update') marker = reader.byte()
    }
    let after: Tuple | undefined
    if (kind !== 'delete') {
      after = reader.tuple()
      for (const [index, value] of after.entries()) {
        if (value !== UNCHANGED) continue
        const before = old?.[index]
        if (before === undefined || before === UNCHANGED) isComplete = false
        else after[index] = before
      }
    }
    changes.push({ kind, relation, op: at, old: asRow(old), new: asRow(after), isComplete })
  }

  const truncate = (reader: Reader): void => {
    const count = reader.int32()
    reader.skip(1)
    const at = op
    op += 2
    for (let n = 0; n < count; n++) {
      const oid = reader.int32()
      if (!isWanted(oid)) continue
      changes.push({
        kind: 'truncate',
        relation: relationOf(oid),
        op: at,
        old: undefined,
        new: undefined,
        isComplete: true,
      })
    }
  }

  return {
    isInside: () => inside,
    push(payload) {
      const reader = createReader(payload)
      switch (reader.byte()) {
        case 0x42: // Begin
          commitLsn = reader.int64()
          committedAt = reader.int64()
          xid = reader.int32()
          inside = true
          op = 0
          changes = []
          bytes = 0
          onBegin({ xid, commitLsn, committedAt })
          return
        case 0x43: // Commit
          reader.skip(1 + 8)
          inside = false
          emit(true, reader.int64())
          return
        case 0x52:
          return readRelation(reader)
        case 0x49:
          change('insert', reader)
          break
        case 0x55:
          change('update', reader)
          break
        case 0x44:
          change('delete', reader)
          break
        case 0x54:
          truncate(reader)
          break
        default: // Types, origins and messages have nothing for us.
          return
      }
      if (changes.length === 0) return
      bytes += payload.length
      if (bytes >= partBytes) emit(false, 0)
    },
  }
}

// A value that stayed unknown is only in rows marked as incomplete, which nobody reads.
const asRow = (tuple: Tuple | undefined): Row | undefined => tuple as Row | undefined

const KEY = 0x4b
const OLD = 0x4f

interface Reader {
  byte(): number
  int16(): number
  int32(): number
  int64(): number
  text(): string
  tuple(): Tuple
  skip(count: number): void
}

const createReader = (buffer: Buffer): Reader => {
  let at = 0
  const reader: Reader = {
    byte: () => buffer[at++] as number,
    int16: () => {
      at += 2
      return buffer.readUInt16BE(at - 2)
    },
    int32: () => {
      at += 4
      return buffer.readUInt32BE(at - 4)
    },
    int64: () => {
      at += 8
      return buffer.readUInt32BE(at - 8) * 2 ** 32 + buffer.readUInt32BE(at - 4)
    },
    text: () => {
      const end = buffer.indexOf(0, at)
      const text = buffer.toString('utf8', at, end)
      at = end + 1
      return text
    },
    tuple: () => {
      const count = reader.int16()
      const values: Tuple = new Array(count)
      for (let index = 0; index < count; index++) {
        const kind = buffer[at++]
        if (kind === 0x6e) values[index] = null
        else if (kind === 0x75) values[index] = UNCHANGED
        else {
          const length = buffer.readUInt32BE(at)
          values[index] = buffer.toString('utf8', at + 4, at + 4 + length)
          at += 4 + length
        }
      }
      return values
    },
    skip: (count) => {
      at += count
    },
  }
  return reader
}
