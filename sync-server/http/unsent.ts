/**
 * What was sent over WebSockets and has not been read: bounded for each of them and for all together.
 *
 *  1. An answer waits (`drained`) while its peer has more than `SEND_BUFFER` bytes unread; while all together have more than `ALL_BUFFERS`, nobody gets
 *     more than `FEW_BYTES` ahead of what it reads.
 *  2. A peer that reads nothing for a minute is cut off; while there is too much in all, after a quarter of that.
 */
import { WebSocket, type WebSocketServer } from 'ws'

const SEND_BUFFER = 1024 * 1024
const ALL_BUFFERS = 64 * 1024 * 1024
const FEW_BYTES = 64 * 1024
const STUCK_MS = 60_000
const STUCK_SHORT_MS = 15_000
const LOOK_MS = 1_000

export interface Unsent {
  isTooMuch(): boolean
  watch(ws: WebSocket): void
}

/** Looks now and then at who has something unread; who does not get on with it is cut off, sooner while memory is short. */
export function createUnsent(wss: WebSocketServer): Unsent & { stop(): void } {
  const unread = new Map<WebSocket, { bytes: number; since: number }>()
  const total = (): number => {
    let sum = 0
    for (const ws of unread.keys()) sum += ws.bufferedAmount
    return sum
  }
  const look = (): void => {
    const limit = total() > ALL_BUFFERS ? STUCK_SHORT_MS : STUCK_MS
    for (const [ws, last] of unread) {
      const bytes = ws.bufferedAmount
      if (bytes === 0 || !wss.clients.has(ws)) unread.delete(ws)
      else if (bytes !== last.bytes) Object.assign(last, { bytes, since: Date.now() })
      else if (Date.now() - last.since > limit) ws.terminate()
    }
  }
  const looking = setInterval(look, LOOK_MS)
  looking.unref()
  return {
    isTooMuch: () => total() > ALL_BUFFERS,
    watch(ws) {
      if (ws.bufferedAmount > 0 && !unread.has(ws)) unread.set(ws, { bytes: ws.bufferedAmount, since: Date.now() })
    },
    stop: () => clearInterval(looking),
  }
}

/** Waits until the peer has read most of what it was sent (1). */
export async function drained(ws: WebSocket, unsent: Unsent): Promise<void> {
  for (;;) {
    unsent.watch(ws)
    if (ws.readyState !== WebSocket.OPEN || ws.bufferedAmount <= FEW_BYTES) return
    if (ws.bufferedAmount <= SEND_BUFFER && !unsent.isTooMuch()) return
    await new Promise((later) => setTimeout(later, 20))
  }
}
