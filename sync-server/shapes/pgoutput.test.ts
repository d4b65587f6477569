import { describe, expect, test } from 'vitest'
import { createDecoder, type TransactionPart } from './pgoutput.ts'

type Value = string | null | 'UNCHANGED'
const int16 = (n: number): Buffer => Buffer.from([n >> 8, n & 255])
const int32 = (n: number): Buffer => {
  const buffer = Buffer.alloc(4)
  buffer.writeInt32BE(n | 0)
  return buffer
}
const int64 = (n: number): Buffer => {
  const buffer = Buffer.alloc(8)
  buffer.writeBigInt64BE(BigInt(n))
  return buffer
}
const text = (value: string): Buffer => Buffer.from(`${value}\0`)
const letter = (value: string): Buffer => Buffer.from(value)
const tuple = (...values: Value[]): Buffer =>
  Buffer.concat([
    int16(values.length),
    ...values.map((value) => {
      if (value === null) return letter('n')
      if (value === 'UNCHANGED') return letter('u')
      return Buffer.concat([letter('t'), int32(Buffer.byteLength(value)), Buffer.from(value)])
    }),
  ])

const begin = (lsn: number, xid: number) => Buffer.concat([letter('B'), int64(lsn), int64(0), int32(xid)])
const commit = (lsn: number, end: number) =>
  Buffer.concat([letter('C'), Buffer.from([0]), int64(lsn), int64(end), int64(0)])
const relation = (oid: number, ...columns: string[]) =>
  Buffer.concat([
    letter('R'),
    int32(oid),
    text('public'),
    text('item'),
    letter('f'),
    int16(columns.length),
    ...columns.flatMap((name) => [Buffer.from([1]), text(name), int32(25), int32(-1)]),
  ])
const insert = (oid: number, ...values: Value[]) =>
  Buffer.concat([letter('I'), int32(oid), letter('N'), tuple(...values)])
const update = (oid: number, old: Value[] | undefined, values: Value[], mark = 'O') =>
  Buffer.concat([letter('U'), int32(oid), ...(old ? [letter(mark), tuple(...old)] : []), letter('N'), tuple(...values)])
const remove = (oid: number, mark: string, ...values: Value[]) =>
  Buffer.concat([letter('D'), int32(oid), letter(mark), tuple(...values)])
const truncate = (...oids: number[]) =>
  Buffer.concat([letter('T'), int32(oids.length), Buffer.from([0]), ...oids.map(int32)])

const decode = (messages: Buffer[], isWanted = (_oid: number) => true, partBytes = 1e9): TransactionPart[] => {
  const parts: TransactionPart[] = []
  const decoder = createDecoder({
    isWanted,
    onBegin: () => undefined,
    onPart: (part) => void parts.push(part),
    partBytes,
  })
  for (const message of messages) decoder.push(message)
  return parts
}

describe('pgoutput', () => {
  test('a transaction with each kind of change', () => {
    const [part, ...others] = decode([
      begin(2 ** 40 + 16, 4_000_000_000),
      relation(7, 'id', 'title'),
      insert(7, '1', 'é漢'),
      update(7, ['1', 'é漢'], ['1', null]),
      remove(7, 'O', '1', null),
      truncate(7),
      commit(2 ** 40 + 16, 2 ** 40 + 64),
    ])
    expect(others).toEqual([])
    expect(part).toMatchObject({ xid: 4_000_000_000, commitLsn: 2 ** 40 + 16, endLsn: 2 ** 40 + 64, isFinal: true })
    expect(part?.changes.map(({ kind, op, old, new: row }) => [kind, op, old, row])).toEqual([
      ['insert', 0, undefined, ['1', 'é漢']],
      ['update', 2, ['1', 'é漢'], ['1', null]],
      ['delete', 4, ['1', null], undefined],
      ['truncate', 6, undefined, undefined],
    ])
    expect(part?.changes[0]?.relation.columns).toEqual([
      { name: 'id', typeOid: 25, typmod: -1 },
      { name: 'title', typeOid: 25, typmod: -1 },
    ])
  })

  test('positions count changes that nobody wants (invariant 2)', () => {
    const messages = [
      begin(10, 1),
      relation(7, 'id'),
      relation(8, 'id'),
      insert(7, '1'),
      insert(8, 'x'),
      truncate(7, 8),
      insert(8, 'y'),
      commit(10, 20),
    ]
    expect(decode(messages, (oid) => oid === 8)[0]?.changes.map(({ op }) => op)).toEqual([2, 4, 6])
    expect(decode(messages, () => false)[0]?.changes).toEqual([])
  })

  test('a value left out is taken from the old row; without one the change is incomplete (invariant 3)', () => {
    const messages = [
      begin(10, 1),
      relation(7, 'id', 'body'),
      update(7, ['1', 'large'], ['2', 'UNCHANGED']),
      update(7, undefined, ['2', 'UNCHANGED']),
      update(7, ['2', null], ['3', 'x'], 'K'),
      remove(7, 'K', '3', null),
      commit(10, 20),
    ]
    const changes = decode(messages)[0]?.changes
    expect(changes?.map(({ isComplete }) => isComplete)).toEqual([true, false, false, false])
    expect(changes?.[0]?.new).toEqual(['2', 'large'])
  })

  test('a large transaction comes in parts that share xid and go on counting (invariant 5)', () => {
    const rows = Array.from({ length: 10 }, (_, n) => insert(7, String(n)))
    const parts = decode([begin(10, 1), relation(7, 'id'), ...rows, commit(10, 20)], () => true, 40)
    expect(parts.length).toBeGreaterThan(2)
    expect(parts.map(({ isFinal }) => isFinal)).toEqual([...parts.slice(1).map(() => false), true])
    expect(parts.flatMap(({ changes }) => changes.map(({ op }) => op))).toEqual(rows.map((_, n) => n * 2))
  })

  test('a change of a table that was not described is an error, not a guess', () => {
    expect(() => decode([begin(10, 1), insert(7, '1')])).toThrow(/had not described/)
  })
})
