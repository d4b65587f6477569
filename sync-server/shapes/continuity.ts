/**
 * Whether a database is the one that the log was read from, also when its files were put back to an older state and it has gone on from there, so
 * that it is as far as the log: LSNs then say nothing.
 *
 *  1. A slot is as old as the files that it is in. So the stream is always read from where the slot stands, and what it says up to the log's
 *     position must be what the log has: the last transaction in its place (LSN, id and time), and none that was not there.
 *  2. In an undisturbed database nothing is repeated but what was not acknowledged yet; after a crash of Postgres, what came since its last checkpoint.
 */
import type { TransactionId } from './pgoutput.ts'
import type { Store } from './store.ts'

export class Divergence extends Error {}

export interface Continuity {
  began(transaction: TransactionId): void
  /** Everything that committed before this LSN has been sent. */
  reached(lsn: number): void
  /** Resolves when the stream has been seen to go on from the store. */
  readonly certain: Promise<void>
}

/** Compares what the stream repeats with what the store has (1). Its methods throw when that is not the same. */
export const checkContinuity = (store: Store, from: number): Continuity => {
  const known = store.position()
  const last = store.lastTransaction()
  let awaited = last && last.commitLsn >= from ? last : undefined
  const certain = Promise.withResolvers<void>()
  if (!awaited) certain.resolve()
  return {
    certain: certain.promise,
    began(transaction) {
      if (transaction.commitLsn > known && !awaited) return
      if (last && transaction.commitLsn < last.commitLsn) return
      const isLast =
        awaited?.commitLsn === transaction.commitLsn &&
        awaited.xid === transaction.xid &&
        awaited.committedAt === transaction.committedAt
      if (!isLast) throw new Divergence(RESTORED)
      awaited = undefined
      certain.resolve()
    },
    reached(lsn) {
      if (awaited && lsn > awaited.commitLsn) throw new Divergence(RESTORED)
    },
  }
}

const RESTORED = 'the database has another past than the log: it was restored'
