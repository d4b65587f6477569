/**
 * What happens from time to time, one thing after the other: tables that changed unnoticed, idle shapes, new snapshots for
 * long logs, retention, the space of dead shapes.
 *
 *  1. Of a shape's log only what lies before its newest snapshot is ever deleted: a newcomer can always be served.
 *  2. An offset before the floor is refused before the floor's rows are deleted.
 *  3. Deleting goes in small steps, between which requests and changes get their turn.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Lifecycle } from './lifecycle.ts'
import { compareOffsets, type Logger } from './protocol.ts'
import { newest, type Shape, type Shapes } from './shapes.ts'
import type { Store } from './store.ts'

export interface MaintenanceOptions {
  readonly store: Store
  readonly shapes: Shapes
  readonly lifecycle: Lifecycle
  readonly logger: Logger
  readonly compact: (shape: Shape) => Promise<boolean>
  readonly retentionMs: number
  readonly retentionBytes: number
  readonly idleShapeMs: number
  readonly everyMs: number
  /** Log that a newcomer has to read on top of the snapshot, at least, before a new snapshot is worth it. */
  readonly compactBytes: number
}

const TABLES_MS = 2000
/** How long a handle is kept for somebody who was sent back with it. */
const RESERVED_MS = 600_000
const COMPACT_BLOCKS = 20_000
const MAX_COMPACTIONS = 50
const DELETE_ROWS = 2000

export const createMaintenance = (options: MaintenanceOptions) => {
  const { store, shapes, lifecycle, logger } = options
  let stopped = false
  const repeat = (everyMs: number, work: () => Promise<void>): (() => Promise<void>) => {
    let running: Promise<void> | undefined
    const timer = setInterval(() => {
      running ??= work()
        .catch((error) => {
          if (!stopped)
            logger.warn('maintenance failed; it is tried again', {
              reason: error instanceof Error ? error.message : String(error),
            })
        })
        .finally(() => {
          running = undefined
        })
    }, everyMs)
    return async () => {
      clearInterval(timer)
      await running
    }
  }

  const tidy = async (): Promise<void> => {
    const now = Date.now()
    for (const shape of shapes.all()) {
      const patience = shape.state === 'reserved' ? Math.min(RESERVED_MS, options.idleShapeMs) : options.idleShapeMs
      if (shape.state !== 'creating' && now - shape.usedAt > patience) lifecycle.retire(shape, 'nobody asked for it')
    }
    const cutoff = store.cutoff(now - options.retentionMs, options.retentionBytes)
    let compactions = 0
    for (const shape of shapes.all()) {
      if (stopped) return
      if (shape.state !== 'ready') continue
      if (compactions < MAX_COMPACTIONS && isWorthIt(shape, cutoff)) {
        compactions++
        await options
          .compact(shape)
          .catch((error) => logger.warn('a snapshot could not be taken anew', { reason: String(error) }))
      }
      await prune(shape, cutoff)
    }
    store.saveUse(shapes.all().filter(({ state }) => state === 'ready'))
    for (const id of store.deadShapes()) await deleteLog(id, Number.MAX_SAFE_INTEGER)
  }

  const isWorthIt = (shape: Shape, cutoff: number): boolean => {
    const { growth, end } = shape
    const { chunks, from } = newest(shape)
    if (!end || compareOffsets(end, from) <= 0) return false
    const size = chunks.reduce((sum, bytes) => sum + bytes, 0)
    return growth.bytes > Math.max(options.compactBytes, 2 * size) || growth.blocks > COMPACT_BLOCKS || from.tx < cutoff
  }

  const prune = async (shape: Shape, cutoff: number): Promise<void> => {
    const { from } = newest(shape)
    // A client that has read everything that goes is not refused: the floor is the last message to go.
    const floor = store.lastUntil(shape.id, Math.min(cutoff, from.tx))
    if (!floor || compareOffsets(floor, shape.floor) <= 0 || shape.state !== 'ready') return
    lifecycle.raiseFloor(shape, floor)
    await deleteLog(shape.id, floor.tx)
  }

  const deleteLog = async (shapeId: number, untilTx: number): Promise<void> => {
    while (!stopped && store.deleteLog(shapeId, untilTx, DELETE_ROWS) === DELETE_ROWS) await nextTurn()
  }

  const endings = [repeat(TABLES_MS, lifecycle.checkTables), repeat(options.everyMs, tidy)]
  return {
    async stop() {
      stopped = true
      await Promise.all(endings.map((end) => end()))
    },
  }
}
