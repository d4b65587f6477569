/**
 * Takes the snapshot of a living shape anew, so that newcomers need not read its whole log and the old part of it can go.
 *
 *  1. The shape goes on as it is; what is new is a generation: a handle, a snapshot, and the place in the log that it joins.
 *  2. That place is a clean cut: every transaction of the log up to it is in the snapshot, and none after it. Transactions that
 *     were committing at that very moment may prevent one; then nothing happens, and another time will do.
 */
import type { Database } from './database.ts'
import type { Offset } from './protocol.ts'
import { type Generation, type Shape, type Shapes, sees, type Visibility } from './shapes.ts'
import { chunkFile, removeChunks, takeSnapshot } from './snapshot.ts'
import type { Store } from './store.ts'

export interface CompactOptions {
  readonly database: Database
  readonly store: Store
  readonly shapes: Shapes
  readonly chunkBytes: number
  readonly waitFor: (lsn: number) => Promise<boolean>
  readonly save: (shape: Shape) => void
}

/** How many transactions back one may still be invisible to a snapshot that was taken after it. */
const REACH = 10_000

/** Whether the shape has a new generation. */
export const compact = async (options: CompactOptions, shape: Shape): Promise<boolean> => {
  const { database, store, shapes, chunkBytes } = options
  const files = Math.max(...shape.generations.map((generation) => generation.files)) + 1
  let visibility: Visibility | undefined
  const chunks = await takeSnapshot({
    database,
    definition: shape.definition,
    encoder: shape.encoder,
    chunkBytes,
    fileOf: (chunk) => chunkFile(store.dataDir, shape.id, files, chunk),
    onVisibility: (seen) => {
      visibility = seen
      return true
    },
  })
  const reached = visibility && (await options.waitFor(visibility.untilLsn + 1))
  const from = visibility && reached && shape.state === 'ready' ? cleanCut(store, shape, visibility) : undefined
  if (!from) {
    await removeChunks(store.dataDir, shape.id, files, chunks.length)
    return false
  }
  const handle = `${shape.definition.key}-${store.mintStamp()}`
  const generation: Generation = { handle, files, chunks, from, createdAt: Date.now() }
  shapes.addGeneration(shape, generation)
  shape.growth = { blocks: 0, bytes: 0 }
  options.save(shape)
  return true
}

const cleanCut = (store: Store, shape: Shape, visibility: Visibility): Offset | undefined => {
  const transactions = store.transactions(shape.id, visibility.untilLsn, REACH)
  const firstUnseen = transactions.findIndex(({ xid }) => !sees(visibility, xid))
  if (firstUnseen < 0) return { tx: visibility.untilLsn, op: Infinity }
  if (transactions.slice(firstUnseen).some(({ xid }) => sees(visibility, xid))) return undefined
  return { tx: (transactions[firstUnseen] as { tx: number }).tx - 1, op: Infinity }
}
