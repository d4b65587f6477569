/**
 * Ends mutations: keeps which are unsettled, what the server has acknowledged and where the shapes stand, and asks `settleable` (settle.ts).
 *
 * E4 A shape that holds up an acknowledged mutation for more than 50 ms is asked to say where it stands.
 * E5 What is known of acknowledgements survives a restart (`sync.replica.ack_seq`, `ack_lsn`); positions come back with the shapes' first answers.
 */
import type { PGlite } from '@electric-sql/pglite'
import type { TableName } from '../schema/tables.ts'
import { type BatchAck, toChanges } from './apply.ts'
import type { Changes, ReplicaEnvironment } from './contract.ts'
import { type Acknowledgement, addAck, placeAcks, settleable, type Unsettled } from './settle.ts'

export const LAGGING_MS = 50
/** A shape that still lags is asked again after this long. */
const LAGGING_AGAIN_MS = 1_000

export interface Settler {
  /** A new mutation. */
  wrote(seq: number, tables: readonly TableName[]): void
  /** The server answered that it applied these; nothing more is taken from answers. */
  applied(seqs: ReadonlySet<number>): void
  acknowledged(ack: BatchAck): void
  reached(table: TableName, position: bigint): void
  /** Reads everything anew, after the outbox was numbered anew. */
  reload(): Promise<void>
  idle(): Promise<void>
  stop(): void
}

export interface SettlerOptions {
  readonly db: PGlite
  readonly tables: readonly TableName[]
  readonly log: ReplicaEnvironment['log']
  readonly refresh: (table: TableName) => void
  readonly onSettled: (changes: Changes, settled: number, rejected: number) => void
}

export async function createSettler(options: SettlerOptions): Promise<Settler> {
  const { db } = options
  const positions = new Map<string, bigint>(options.tables.map((table) => [table, 0n]))
  let unsettled: Unsettled[] = []
  let acks: Acknowledgement[] = []
  let running: Promise<void> | undefined
  let again = false
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false

  const reload = async (): Promise<void> => {
    const pending = await db.query<{ seq: string; tables: string[] }>(
      `select o.seq::text, array_agg(distinct p.table_name) as tables from sync.outbox o join sync.patches p using (seq)
       where o.state <> 'rejected' and o.seq > 0 group by o.seq order by o.seq`,
    )
    unsettled = pending.rows.map(({ seq, tables }) => ({ seq: Number(seq), tables }))
    const known = await db.query<{ seq: string; lsn: string | null }>(
      'select ack_seq::text as seq, ack_lsn::text as lsn from sync.replica',
    )
    const ack = known.rows[0]
    acks = ack && ack.seq !== '0' ? [{ seq: Number(ack.seq), lsn: ack.lsn === null ? undefined : BigInt(ack.lsn) }] : []
  }

  const check = (): void => {
    again = true
    running ??= run().finally(() => {
      running = undefined
    })
  }

  const run = async (): Promise<void> => {
    while (again && !stopped) {
      again = false
      const { upto, lagging } = settleable(unsettled, acks, positions)
      try {
        if (upto > 0) await settle(upto)
      } catch (error) {
        options.log(
          'error',
          `Mutations up to ${upto} could not be settled: ${error instanceof Error ? error.message : String(error)}`,
        )
        return
      }
      watch(lagging.length > 0, LAGGING_MS)
    }
  }

  const settle = async (upto: number): Promise<void> => {
    const { rows } = await db.query<{ changes: Record<string, string[]>; settled: number; rejected: number }>(
      'select changes, settled::int, rejected::int from sync.settle($1)',
      [upto],
    )
    unsettled = unsettled.filter(({ seq }) => seq > upto)
    const row = rows[0]
    if (row) options.onSettled(toChanges(row.changes), row.settled, row.rejected)
  }

  /** E4 */
  const watch = (lags: boolean, afterMs: number): void => {
    if (!lags) {
      clearTimeout(timer)
      timer = undefined
      return
    }
    timer ??= setTimeout(() => {
      timer = undefined
      const { lagging } = settleable(unsettled, acks, positions)
      for (const table of lagging) options.refresh(table as TableName)
      watch(lagging.length > 0 && !stopped, LAGGING_AGAIN_MS)
    }, afterMs)
  }

  await reload()
  return {
    wrote(seq, tables) {
      // A write by plain SQL is heard of after its commit, perhaps later than the write behind it.
      unsettled = [
        ...unsettled.filter((other) => other.seq < seq),
        { seq, tables },
        ...unsettled.filter((other) => other.seq > seq),
      ]
      if (acks.length > 0) check()
    },
    applied(seqs) {
      unsettled = unsettled.map((mutation) => (seqs.has(mutation.seq) ? { ...mutation, applied: true } : mutation))
      if (acks.length > 0) check()
    },
    acknowledged(ack) {
      acks = addAck(acks, ack, unsettled[0]?.seq ?? ack.seq)
      check()
    },
    reached(table, position) {
      positions.set(table, position)
      if (table === 'client_progress') acks = placeAcks(acks, position)
      if (unsettled.length > 0 && acks.length > 0) check()
    },
    reload,
    idle: async () => {
      while (running) await running
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
