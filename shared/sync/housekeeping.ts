/**
 * What a Postgres with background workers would do by itself, and PGlite has none: removing dead rows and learning statistics.
 *
 * V1 A table is vacuumed and analysed after so many changes that it matters (a first load counts), never while it is still changing fast.
 */
import type { PGlite } from '@electric-sql/pglite'
import { quote } from '../schema/sql.ts'
import type { ReplicaEnvironment } from './contract.ts'

export interface Housekeeping {
  /** So many rows of a synced table changed. */
  changed(table: string, rows: number): void
  /** So many mutations ended. */
  settled(mutations: number): void
  stop(): void
}

/** Changes after which a table is due, besides a fifth of what was changed in it before. */
const DUE_AFTER = 5_000
/** Nothing more may have changed for so long. */
const QUIET_MS = 3_000

export function createHousekeeping(db: PGlite, log: ReplicaEnvironment['log']): Housekeeping {
  const pending = new Map<string, number>()
  const total = new Map<string, number>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false

  const note = (table: string, rows: number): void => {
    const changes = (pending.get(table) ?? 0) + rows
    pending.set(table, changes)
    total.set(table, (total.get(table) ?? 0) + rows)
    if (stopped || !isDue(table)) return
    clearTimeout(timer)
    timer = setTimeout(() => void clean(), QUIET_MS)
  }
  const isDue = (table: string): boolean =>
    (pending.get(table) ?? 0) >= DUE_AFTER + ((total.get(table) ?? 0) - (pending.get(table) ?? 0)) / 5

  const clean = async (): Promise<void> => {
    for (const table of [...pending.keys()].filter(isDue)) {
      if (stopped) return
      pending.delete(table)
      const names =
        table === OUTBOX
          ? ['sync.outbox', 'sync.patches', 'sync.pending_base', 'sync.replica', 'sync.shapes']
          : [quote(table)]
      try {
        for (const name of names) if (!stopped) await db.query(`vacuum (analyze) ${name}`)
      } catch (error) {
        if (!stopped)
          log('warn', `${table} could not be vacuumed: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }

  return {
    changed: note,
    settled: (mutations) => note(OUTBOX, mutations),
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

const OUTBOX = ' outbox'
