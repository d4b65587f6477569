import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SNAPSHOT_END } from './protocol.ts'
import { readLog } from './reader.ts'
import type { Shape } from './shapes.ts'
import { type LogBlock, openStore, type Store } from './store.ts'

let folder: string
let store: Store
const EPOCH = { systemId: '1', timeline: '1', database: 'hq', slot: 'hq_shapes' }

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hq-store-'))
  store = openStore(folder)
  store.beginEpoch(EPOCH, 100)
})
afterEach(async () => {
  store.close()
  await rm(folder, { recursive: true, force: true })
})

/** A block of messages `{"n":op}`. */
const block = (tx: number, ...ops: number[]): LogBlock => {
  const texts = ops.map((op) => `{"n":${op}}`)
  const marks = ops.flatMap((op, index) => [op, texts.slice(0, index).join(',').length + (index > 0 ? 1 : 0)])
  return {
    tx,
    xid: tx + 1,
    op: ops[0] as number,
    opLast: ops.at(-1) as number,
    body: Buffer.from(texts.join(',')),
    marks: Uint32Array.from(marks),
  }
}
const commit = (position: number, ...blocks: LogBlock[]) =>
  store.commit({ position, restart: position + 8, blocks: new Map([[1, blocks]]) })
const reopen = (): void => {
  store.close()
  store = openStore(folder)
}

const GENERATION = { handle: 'h', files: 0, chunks: [], from: SNAPSHOT_END, createdAt: 0 }
const read = (tx: number, op: number, maxBytes = 1e6) => {
  const [last] = store.transactions(1, Number.MAX_SAFE_INTEGER, 1)
  const blocks = last ? store.read(1, { tx: last.tx, op: -1 }, last.tx, 1e9) : []
  const shape = { id: 1, end: last && { tx: last.tx, op: blocks.at(-1)?.opLast ?? 0 } } as Shape
  const { text, starts, end, reachesEnd } = readLog(store, shape, GENERATION, { tx, op }, maxBytes)
  return { text: text.toString(), starts, end, reachesEnd }
}

describe('the log', () => {
  test('is read from any offset: before, at and between messages', () => {
    commit(200, block(200, 0, 2, 4))
    commit(300, block(300, 2))
    const all = '{"n":0},{"n":2},{"n":4},{"n":2}'
    expect(read(0, Infinity).text).toBe(all)
    expect(read(199, Infinity).text).toBe(all)
    expect(read(200, 0)).toEqual({
      text: '{"n":2},{"n":4},{"n":2}',
      starts: [0, 8, 16],
      end: { tx: 300, op: 2 },
      reachesEnd: true,
    })
    expect(read(200, 1).text).toBe('{"n":2},{"n":4},{"n":2}')
    expect(read(200, 3).text).toBe('{"n":4},{"n":2}')
    expect(read(200, Infinity).text).toBe('{"n":2}')
    expect(read(300, 2)).toEqual({ text: '', starts: [], end: { tx: 300, op: 2 }, reachesEnd: true })
  })

  test('comes in chunks that end with whole messages', () => {
    for (let tx = 1; tx <= 500; tx++) commit(200 + tx, block(200 + tx, 0, 2))
    let offset = { tx: 0, op: Infinity }
    const texts: string[] = []
    for (let reached = false; !reached; ) {
      const chunk = read(offset.tx, offset.op, 1000)
      texts.push(chunk.text)
      offset = chunk.end
      reached = chunk.reachesEnd
    }
    expect(texts.length).toBeGreaterThan(5)
    expect(JSON.parse(`[${texts.join(',')}]`)).toHaveLength(1000)
  })

  test('survives closing; what was beyond the position does not (invariants 1 and 3)', () => {
    commit(200, block(200, 0))
    store.append(new Map([[1, [block(300, 0, 2)]]]))
    reopen()
    expect(store.position()).toBe(200)
    expect(store.restartLsn()).toBe(208)
    expect(read(0, Infinity).text).toBe('{"n":0}')
  })

  test('nothing may be acknowledged before it is synced (invariant 2)', async () => {
    commit(200, block(200, 0))
    expect(store.durable()).toBe(0)
    await store.sync()
    expect(store.durable()).toBe(208)
  })

  test('a commit that fails changes nothing (invariant 1)', () => {
    const broken = { ...block(200, 0), body: undefined } as unknown as LogBlock
    expect(() => commit(200, block(200, 0), broken)).toThrow()
    expect(store.position()).toBe(100)
    expect(read(0, Infinity).text).toBe('')
  })

  test('is deleted in steps, and knows what the dead left behind', () => {
    for (let tx = 1; tx <= 10; tx++) commit(200 + tx, block(200 + tx, 0))
    store.saveShape({ id: 1, content: '{}', usedAt: 0 })
    expect(store.deadShapes()).toEqual([])
    expect(store.deleteLog(1, 205, 3)).toBe(3)
    expect(store.deleteLog(1, 205, 3)).toBe(2)
    expect(read(0, Infinity).text).toBe(Array(5).fill('{"n":0}').join(','))
    store.dropShapes([1])
    store.mintShape()
    reopen()
    expect(store.deadShapes()).toEqual([1])
  })

  test('the cutoff follows age, and size where there is too much', () => {
    let now = 1000
    store.close()
    store = openStore(folder, () => now)
    for (let tx = 1; tx <= 100; tx++) {
      now += 10
      commit(200 + tx, { ...block(200 + tx, 0), body: Buffer.alloc(20_000, 0x20) })
    }
    expect(store.cutoff(500, 1e9)).toBe(0)
    expect(store.cutoff(1000 + 10 * 50 + 1, 1e9)).toBe(250)
    expect(store.cutoff(0, 1_000_000)).toBeGreaterThan(240)
  })
})

describe('the folder', () => {
  test('belongs to one process (invariant 4)', () => {
    expect(() => openStore(folder)).toThrow(/in use by another/)
  })

  test('never gives a handle twice, even when the clock goes back (invariant 5)', () => {
    const first = [store.mintStamp(), store.mintStamp()]
    store.close()
    store = openStore(folder, () => 5)
    const second = [store.mintStamp(), store.mintStamp()]
    expect(new Set([...first, ...second]).size).toBe(4)
    expect(Math.min(...second)).toBeGreaterThan(Math.max(...first))
  })

  test('a new epoch forgets all shapes and keeps the clock', () => {
    const stamp = store.mintStamp()
    store.saveShape({ id: 1, content: '{}', usedAt: 0 })
    store.beginEpoch({ ...EPOCH, systemId: '2' }, 50)
    expect(store.loadShapes()).toEqual([])
    expect(store.position()).toBe(50)
    expect(store.mintStamp()).toBeGreaterThan(stamp)
  })
})
