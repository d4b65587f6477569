/**
 * Reads a shape's log as message text, from any offset, in chunks.
 *
 *  1. What is read starts with the first message after `after` and ends with a whole message, at the latest at the log's end.
 *  2. Encoded bodies are kept for a while, so that a thousand clients at one place cost one encoding.
 */
import { compareOffsets, type Offset } from './protocol.ts'
import { type Generation, logEnd, type Shape } from './shapes.ts'
import type { LogBlock, Store } from './store.ts'

export interface LogChunk {
  /** Messages as JSON, joined by commas. Empty when there is nothing after the offset. */
  readonly text: Buffer
  /** Where each message begins in `text`. */
  readonly starts: readonly number[]
  /** Offset of the last message, or the log's end when there is none. */
  readonly end: Offset
  readonly reachesEnd: boolean
}

const COMMA = Buffer.from(',')
const EMPTY = Buffer.alloc(0)

export const readLog = (
  store: Store,
  shape: Shape,
  generation: Generation,
  after: Offset,
  maxBytes: number,
): LogChunk => {
  const logEndsAt = logEnd(shape, generation)
  if (shape.end === undefined || compareOffsets(after, logEndsAt) >= 0) {
    return { text: EMPTY, starts: [], end: logEndsAt, reachesEnd: true }
  }
  const pieces: Buffer[] = []
  const starts: number[] = []
  let size = 0
  let end = after
  let reachesEnd = false
  while (!reachesEnd && size < maxBytes) {
    const blocks = store.read(shape.id, end, shape.end.tx, maxBytes - size)
    for (const block of blocks) {
      if (size >= maxBytes) break
      const from = firstAfter(block, after)
      if (from < 0) continue
      const begin = block.marks[from * 2 + 1] as number
      if (size > 0) {
        pieces.push(COMMA)
        size++
      }
      for (let index = from; index < block.marks.length / 2; index++)
        starts.push(size + (block.marks[index * 2 + 1] as number) - begin)
      const { buffer, byteOffset, length } = block.body
      pieces.push(Buffer.from(buffer, byteOffset + begin, length - begin))
      size += length - begin
      end = { tx: block.tx, op: block.opLast }
    }
    if (blocks.length === 0) break
    reachesEnd = compareOffsets(end, shape.end) >= 0
  }
  if (size === 0) return { text: EMPTY, starts, end: logEndsAt, reachesEnd: true }
  return { text: pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, size), starts, end, reachesEnd }
}

/** Index of the first message of the block after an offset; -1 when there is none. */
const firstAfter = (block: LogBlock, after: Offset): number => {
  if (block.tx > after.tx) return 0
  for (let index = 0; index < block.marks.length; index += 2)
    if ((block.marks[index] as number) > after.op) return index / 2
  return -1
}

/** The most recently used values up to a size. */
export const createCache = <T>(maxBytes: number) => {
  const entries = new Map<string, { value: T; bytes: number }>()
  let total = 0
  return {
    get(key: string): T | undefined {
      const entry = entries.get(key)
      if (!entry) return undefined
      entries.delete(key)
      entries.set(key, entry)
      return entry.value
    },
    set(key: string, value: T, bytes: number): void {
      if (bytes > maxBytes / 2) return
      const old = entries.get(key)
      if (old) total -= old.bytes
      entries.delete(key)
      entries.set(key, { value, bytes })
      total += bytes
      for (const [oldest, entry] of entries) {
        if (total <= maxBytes) break
        entries.delete(oldest)
        total -= entry.bytes
      }
    },
  }
}
