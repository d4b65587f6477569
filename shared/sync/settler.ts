/**
 * Ends mutations, as IO: carries out what `core/settle.ts` decides (E1–E6), and tells it what the database knows.
 *
 * What is known of acknowledgements survives a restart (`sync.replica.ack_seq`, `ack_lsn`); positions come back with the shapes' first answers.
 */
import type { PGlite } from '@electric-sql/pglite'
import type { TableName } from '../schema/tables.ts'
import { toChanges } from './apply.ts'
import type { Changes, ReplicaEnvironment } from './contract.ts'
import type { BatchAck } from './core/pull.ts'
import { newSettle, type SettleEffect, type SettleEvent, settle } from './core/settle.ts'

export interface Settler {
  /** A new mutation. */
  wrote(seq: number, tables: readonly TableName[]): void
  /** The server answered that it applied these; nothing more is taken from answers. */
  applied(seqs: ReadonlySet<number>): void
  acknowledged(ack: BatchAck): void
  /** The acknowledgements were fetched anew. */
  forgot(): void
  reached(table: TableName, position: bigint): void
  startedOver(table: TableName): void
  /** Reads everything anew, after the outbox was numbered anew. */
  reload(): Promise<void>
  idle(): Promise<void>
  stop(): void
}

export interface SettlerOptions {
  readonly db: PGlite
  readonly replicaId: () => string
  readonly tables: readonly TableName[]
  readonly log: ReplicaEnvironment['log']
  readonly refresh: (table: TableName) => void
  readonly onSettled: (changes: Changes, settled: number, rejected: number) => void
}

export async function createSettler(options: SettlerOptions): Promise<Settler> {
  const { db } = options
  let state = newSettle(options.replicaId(), options.tables)
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false
  const settling = new Set<Promise<void>>()

  const happen = (event: SettleEvent): void => {
    if (stopped) return
    const { state: next, effects } = settle(state, event)
    state = next
    for (const effect of effects) carryOut(effect)
  }

  const carryOut = (effect: SettleEffect): void => {
    switch (effect.type) {
      case 'refresh':
        options.refresh(effect.table as TableName)
        return
      case 'watch':
        clearTimeout(timer)
        timer = setTimeout(() => happen({ type: 'looked' }), effect.afterMs)
        return
      case 'settle': {
        const done = end(effect).finally(() => settling.delete(done))
        settling.add(done)
      }
    }
  }

  /** Never rejects. */
  const end = async ({ replicaId, upto }: Extract<SettleEffect, { type: 'settle' }>): Promise<void> => {
    try {
      const { rows } = await db.query<{ changes: Record<string, string[]>; settled: number; rejected: number }>(
        'select changes, settled::int, rejected::int from sync.settle($1, $2)',
        [upto, replicaId],
      )
      const row = rows[0]
      if (row && row.settled + row.rejected > 0) options.onSettled(toChanges(row.changes), row.settled, row.rejected)
      happen({ type: 'settled', replicaId, upto })
    } catch (error) {
      if (stopped) return
      const why = error instanceof Error ? error.message : String(error)
      options.log('error', `Mutations up to ${upto} could not be settled: ${why}`)
      happen({ type: 'settle_failed' })
    }
  }

  const reload = async (): Promise<void> => {
    const pending = await db.query<{ seq: string; tables: string[] }>(
      `select o.seq::text, array_agg(distinct p.table_name) as tables from sync.outbox o join sync.patches p using (seq)
       where o.state <> 'rejected' and o.seq > 0 group by o.seq order by o.seq`,
    )
    const known = await db.query<{ seq: string; lsn: string | null }>(
      'select ack_seq::text as seq, ack_lsn::text as lsn from sync.replica',
    )
    const ack = known.rows[0]
    happen({
      type: 'loaded',
      replicaId: options.replicaId(),
      unsettled: pending.rows.map(({ seq, tables }) => ({ seq: Number(seq), tables })),
      acks:
        ack && ack.seq !== '0' ? [{ seq: Number(ack.seq), lsn: ack.lsn === null ? undefined : BigInt(ack.lsn) }] : [],
    })
  }

  await reload()
  return {
    wrote: (seq, tables) => happen({ type: 'wrote', seq, tables }),
    applied: (seqs) => happen({ type: 'applied', seqs }),
    acknowledged: (ack) => happen({ type: 'acknowledged', ack: { seq: ack.seq, lsn: ack.lsn } }),
    forgot: () => happen({ type: 'forgot' }),
    reached: (table, position) => happen({ type: 'reached', table, position }),
    startedOver: (table) => happen({ type: 'started_over', table }),
    reload,
    idle: async () => {
      while (settling.size > 0) await Promise.all(settling)
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
