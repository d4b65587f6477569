/**
 * A shape's log as server-sent events.
 *
 *  1. Each message is one event; whenever the log's end is reached, `up-to-date` follows.
 *  2. Nothing is read ahead of the reader: a slow one holds one piece of the log.
 *  3. The stream ends after a minute, when the shape dies, or when the reader leaves; then nothing of it remains.
 */
import { compareOffsets, type Offset, upToDate } from './protocol.ts'
import { type LogChunk, readLog } from './reader.ts'
import { logEnd, type Served } from './shapes.ts'
import type { Store } from './store.ts'

const PIECE_BYTES = 256 * 1024
const KEEP_ALIVE_MS = 21_000
const LIFETIME_MS = 60_000

export const eventStream = (
  store: Store,
  { shape, generation }: Served,
  from: Offset,
  stopping: AbortSignal,
): ReadableStream<Uint8Array<ArrayBuffer>> => {
  let after = from
  let toldEnd = false
  let isOver = false
  let wake: () => void = () => undefined
  const onChange = (): void => wake()
  const end = (): void => {
    isOver = true
    wake()
  }
  const lifetime = setTimeout(end, LIFETIME_MS)
  stopping.addEventListener('abort', end)
  const cleanUp = (): void => {
    isOver = true
    clearTimeout(lifetime)
    shape.changes.delete(onChange)
    stopping.removeEventListener('abort', end)
    wake()
  }
  shape.changes.add(onChange)
  const isDone = (): boolean => isOver || shape.state === 'dead'

  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        for (;;) {
          if (isDone()) {
            cleanUp()
            controller.close()
            return
          }
          if (!toldEnd || compareOffsets(after, logEnd(shape, generation)) < 0) {
            const chunk = readLog(store, shape, generation, after, PIECE_BYTES)
            if (chunk.text.length > 0) after = chunk.end
            toldEnd = chunk.reachesEnd
            controller.enqueue(new Uint8Array(Buffer.from(toEvents(chunk, store.position()))))
            return
          }
          const isQuiet = await new Promise<boolean>((resolve) => {
            const timer = setTimeout(() => resolve(true), KEEP_ALIVE_MS)
            wake = () => {
              clearTimeout(timer)
              resolve(false)
            }
          })
          wake = () => undefined
          if (isQuiet && !isDone()) {
            controller.enqueue(new Uint8Array(Buffer.from(': keep-alive\n\n')))
            return
          }
        }
      },
      cancel: cleanUp,
    },
    { highWaterMark: 1 },
  )
}

/** JSON has no raw line breaks, so that a message is one line. */
const toEvents = ({ text, starts, reachesEnd }: LogChunk, position: number): string => {
  let events = ''
  for (const [index, start] of starts.entries()) {
    const next = starts[index + 1]
    events += `data: ${text.toString('utf8', start, next === undefined ? text.length : next - 1)}\n\n`
  }
  return reachesEnd ? `${events}data: ${upToDate(position)}\n\n` : events
}
