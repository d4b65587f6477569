/** The queue of the apply layer (apply.ts), without a database below it. */
import type { PGlite } from '@electric-sql/pglite'
import { expect, test } from 'vitest'
import { type Batch, createApplier } from './apply.ts'

const batch: Batch = { table: 'tasks', upserts: [], deletes: [] }

test('a batch that comes just as the queue has run empty is taken, however many turns after the one before it', async () => {
  let queries = 0
  const db = {
    query: async () => {
      queries++
      return { rows: [{ changes: {} }] }
    },
  } as unknown as PGlite
  const applier = createApplier(db, () => undefined)
  for (let turns = 0; turns < 12; turns++) {
    await applier.apply(batch)
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    const late = new Promise<string>((resolve) => setTimeout(() => resolve('never taken'), 2_000))
    expect(await Promise.race([applier.apply(batch).then(() => 'applied'), late]), `${turns} turns later`).toBe(
      'applied',
    )
  }
  expect(queries).toBe(24)
})
