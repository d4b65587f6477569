/**
 * The one writer of what comes from shapes.
 *
 * Every batch is one transaction with the position that it leads to. Small batches of several shapes that wait at the same time share a transaction.
 *
 * R1 The stored position of a shape is that of the last message applied, and it is stored in the transaction of the rows.
 * R2 Applying a batch twice, or a part of it, gives the same rows.
 * R3 Batches are applied one after the other; a failed one rejects its promise, and nothing of it is kept.
 * R5 Nothing but the primary key restrains what a row may be.
 * R6 A refetched table is staged and swapped in one transaction, pending changes folded over the new rows.
 * R7 Values are text and are cast to the column's type by Postgres.
 */
import type { PGlite } from '@electric-sql/pglite'
import type { TableName } from '../schema/tables.ts'
import type { Changes } from './contract.ts'
import { toCopy } from './copy.ts'
import { type BatchAck, type Place, ROWS_PER_TRANSACTION, type TextRow } from './core/pull.ts'

export type { BatchAck, Place, TextRow }

export interface Batch {
  readonly table: TableName
  readonly upserts: readonly TextRow[]
  readonly deletes: readonly string[]
  /** Missing while a snapshot is being read: its position counts only when it is complete (R1). */
  readonly place?: Place | undefined
  readonly ack?: BatchAck | undefined
}

export interface Applier {
  apply(batch: Batch): Promise<void>
  /** Rows of a first snapshot, into a table that has had none: by COPY when nothing is in the way. Their position comes later (R1). */
  load(table: TableName, rows: readonly TextRow[]): Promise<void>
  /** Starts a refetch: what was staged before is dropped, and a restart begins from the beginning. */
  beginStaging(table: TableName): Promise<void>
  stage(table: TableName, rows: readonly TextRow[]): Promise<void>
  /** The staged rows become the table (R6). */
  swap(table: TableName, place: Place, ack: BatchAck | undefined): Promise<void>
  /** Resolves when everything given so far is applied or has failed. */
  idle(): Promise<void>
}

/** More ids than this are reported as `many`. */
export const NAMED_IDS = 1_000

/** Below this a snapshot's rows are named when they are announced, and COPY gains nothing. */
const FEW_ROWS = 50
const UNIQUE_VIOLATION = '23505'

interface Job {
  readonly batch: Batch | undefined
  readonly run: () => Promise<void>
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

export function createApplier(db: PGlite, onApplied: (changes: Changes, batches: readonly Batch[]) => void): Applier {
  const queue: Job[] = []
  let working: Promise<void> | undefined

  const add = (batch: Batch | undefined, run: () => Promise<void>): Promise<void> =>
    new Promise((done, failed) => {
      queue.push({ batch, run, done, failed })
      working ??= work()
    })

  const work = async (): Promise<void> => {
    // One turn of the event loop, so that shapes that answer together are applied together.
    await Promise.resolve()
    for (let head = queue.shift(); head; head = queue.shift()) {
      const jobs = [head]
      if (head.batch) {
        let rows = sizeOf(head.batch)
        for (let next = queue[0]; next?.batch && rows + sizeOf(next.batch) <= ROWS_PER_TRANSACTION; next = queue[0]) {
          rows += sizeOf(next.batch)
          jobs.push(next)
          queue.shift()
        }
      }
      await (jobs.length > 1 ? runTogether(jobs) : runAlone(head))
    }
    // At once, in the turn that found the queue empty: a batch added a turn later must find no worker, or nobody would ever take it.
    working = undefined
  }

  const runAlone = async (job: Job): Promise<void> => {
    try {
      await job.run()
      job.done()
    } catch (error) {
      job.failed(error)
    }
  }

  const runTogether = async (jobs: readonly Job[]): Promise<void> => {
    try {
      await applyAll(jobs.flatMap(({ batch }) => batch ?? []))
    } catch {
      // One of them is at fault; each alone shows which, and the others go through.
      for (const job of jobs) await runAlone(job)
      return
    }
    for (const job of jobs) job.done()
  }

  const applyAll = async (batches: readonly Batch[]): Promise<void> => {
    const payload = JSON.stringify(batches.map(toPayload))
    const { rows } = await db.query<{ changes: Record<TableName, string[]> }>(
      'select sync.apply($1::jsonb) as changes',
      [payload],
    )
    onApplied(toChanges(rows[0]?.changes), batches)
  }

  /** False: some of the rows are here already, or have pending changes; nothing was done. */
  const copy = async (table: TableName, rows: readonly TextRow[]): Promise<boolean> => {
    const batch = toCopy(table, rows)
    if (!batch) return false
    try {
      return await db.transaction(async (tx) => {
        const { rows: found } = await tx.query<{ held: boolean }>(
          `select set_config('sync.applying', 'on', true), exists (select from sync.pending_base where table_name = $1) as held`,
          [table],
        )
        if (found[0]?.held) return false
        await tx.query(batch.sql, [], { blob: batch.data })
        return true
      })
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === UNIQUE_VIOLATION) return false
      throw error
    }
  }

  return {
    apply: (batch) => add(batch, () => applyAll([batch])),
    load: (table, rows) =>
      add(undefined, async () => {
        const batch: Batch = { table, upserts: rows, deletes: [] }
        if (rows.length < FEW_ROWS || !(await copy(table, rows))) return applyAll([batch])
        onApplied(new Map([[table, 'many']]), [batch])
      }),
    beginStaging: (table) =>
      add(undefined, async () => {
        await db.transaction(async (tx) => {
          await tx.query('delete from sync.staging where table_name = $1', [table])
          await tx.query(`update sync.shapes set handle = null, "offset" = '-1', position = 0 where table_name = $1`, [
            table,
          ])
        })
      }),
    stage: (table, rows) =>
      add(undefined, async () => {
        await db.query(
          `insert into sync.staging (table_name, row_id, "row") select $1, (value ->> 'id')::uuid, value from jsonb_array_elements($2::jsonb)
           on conflict (table_name, row_id) do update set "row" = excluded."row"`,
          [table, JSON.stringify(rows)],
        )
      }),
    swap: (table, place, ack) =>
      add(undefined, async () => {
        const batch: Batch = { table, upserts: [], deletes: [], place, ack }
        await db.transaction(async (tx) => {
          await tx.query(`select sync."swap_${table}"()`)
          await tx.query('select sync.keep_position($1::jsonb)', [JSON.stringify(toPayload(batch))])
        })
        onApplied(new Map([[table, 'many']]), [batch])
      }),
    idle: async () => {
      while (working) await working
    },
  }
}

const sizeOf = (batch: Batch): number => batch.upserts.length + batch.deletes.length

const toPayload = ({ table, upserts, deletes, place, ack }: Batch): Record<string, unknown> => ({
  table,
  upserts,
  deletes,
  ...(place && {
    handle: place.handle,
    offset: place.offset,
    position: place.position.toString(),
    loaded: true,
    schema: place.schema ?? null,
  }),
  ...(ack && { ack_seq: ack.seq, ack_lsn: ack.lsn?.toString() ?? null, ack_mutation: ack.mutationId ?? null }),
})

/** `{table: [ids]}` as the SQL functions give it. */
export const toChanges = (changes: Record<string, string[]> | null | undefined): Changes => {
  const result = new Map<TableName, ReadonlySet<string> | 'many'>()
  for (const [table, ids] of Object.entries(changes ?? {})) {
    result.set(table as TableName, ids.length > NAMED_IDS ? 'many' : new Set(ids))
  }
  return result
}
