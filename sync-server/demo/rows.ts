/** Tools for building rows: repeatable chance, and inserting them with their defaults. */
import { quote } from '@hq/shared/schema/sql.ts'
import type { TableName } from '@hq/shared/schema/tables.ts'
import type { Queryable } from '../database/pool.ts'

export type Values = Record<string, unknown>
export type Add = (table: TableName, row: Values) => void
export type Id = (...cause: string[]) => string
export type Chance = ReturnType<typeof createChance>

export interface TaskContext {
  readonly add: Add
  readonly id: Id
  readonly ago: (days: number) => string
  readonly chance: Chance
  readonly person: string
  readonly gatewayId: string | undefined
  readonly now: number
}

export const DAY = 86_400_000
export const iso = (ms: number): string => new Date(ms).toISOString()

/** A small generator of repeatable chance (mulberry32). */
export function createChance(seed: number) {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    next,
    pick: <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T,
    between: (low: number, high: number): number => low + next() * (high - low),
  }
}

/** Rows with different columns are inserted in groups of equal ones, so that defaults stay defaults. */
export async function insertAll(db: Queryable, table: TableName, rows: readonly Values[]): Promise<void> {
  const groups = new Map<string, Values[]>()
  for (const row of rows) {
    const key = Object.keys(row).join()
    groups.set(key, [...(groups.get(key) ?? []), row])
  }
  for (const group of groups.values()) {
    const columns = Object.keys(group[0] ?? {})
      .map(quote)
      .join(', ')
    await db.query(
      `insert into ${quote(table)} (${columns}) select ${columns} from jsonb_populate_recordset(null::${quote(table)}, $1)`,
      [JSON.stringify(group)],
    )
  }
}
