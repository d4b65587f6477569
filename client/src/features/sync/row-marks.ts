/**
 * How the rows of a table stand with the server, for the marks beside them.
 *
 *  M1 Quiet is normal: what has waited for less than `QUIET_MS` has no mark, so that online nothing flickers.
 *  M2 One mark a row, the most urgent: refused, then changed in two places, then waiting.
 *  M3 A mark of an unchanged row is the same object, so that memoised rows of a long list stay put.
 *  M4 Only rows that are asked for are looked up, by an index: tens of thousands of changes that wait cost a list no more than a few.
 */
import type { TableName } from '@hq/shared/schema/tables.ts'
import { useEffect, useMemo, useState } from 'react'
import { useRows } from '../../replica/hooks.ts'
import type { RowSync } from '../../ui/sync-dot.tsx'

export interface RowMark {
  readonly state: Exclude<RowSync, 'synced'>
  /** Why it was refused, what was changed twice. */
  readonly reason: string | undefined
  /** Its entry on the sync page: `/sync#<anchor>`. */
  readonly anchor: string
}

export type RowMarks = ReadonlyMap<string, RowMark>

export const QUIET_MS = 1_500

export interface WaitingRow {
  readonly table_name: string
  readonly row_id: string
  readonly rejected: boolean
  /** ISO time of the oldest change of it that waits. */
  readonly since: string
  readonly seq: number
  readonly message: string | null
}

export interface ConflictRow {
  readonly id: string
  readonly table_name: string
  readonly row_id: string
  readonly column_name: string
}

/** Anchors of the sync page. */
export const changeAnchor = (seq: number): string => `change-${seq}`
export const conflictAnchor = (id: string): string => `conflict-${id}`

/** $1: the table, $2: ids of its rows (M4). */
export const WAITING = `select p.table_name, p.row_id, bool_or(o.state = 'rejected') as rejected, min(o.created_at) as since,
    (array_agg(o.seq order by (o.state = 'rejected') desc, o.seq desc))[1]::int as seq,
    (array_agg(o.message order by (o.state = 'rejected') desc, o.seq desc))[1] as message
  from sync.patches p join sync.outbox o using (seq)
  where p.table_name = $1 and p.row_id = any($2::uuid[]) group by p.table_name, p.row_id`
const CONFLICTS = `select id, table_name, row_id, column_name from conflicts
  where table_name = $1 and row_id = any($2::uuid[]) and resolved_at is null and deleted_at is null order by created_at desc`

/** The marks of these rows of a table, by id; rows without one are in sync. Ask for what is on the screen. */
export function useRowMarks(table: TableName, rows: readonly { readonly id: string }[]): RowMarks {
  const key = rows.map(({ id }) => id).join(' ')
  const params = useMemo(() => [table, key === '' ? [] : key.split(' ')], [table, key])
  const enabled = key !== ''
  const waiting = useRows<WaitingRow>(WAITING, params, { tables: ['sync'], enabled }).rows
  const conflicts = useRows<ConflictRow>(CONFLICTS, params, { tables: ['conflicts'], enabled }).rows
  const [now, setNow] = useState(Date.now)
  const due = nextDue(waiting, now)
  useEffect(() => {
    const wait = due === undefined ? undefined : Math.max(0, due - Date.now())
    const timer = setTimeout(() => setNow(Date.now()), wait ?? QUIET_MS)
    // Nothing is young: the clock need not move until something is.
    if (wait === undefined) clearTimeout(timer)
    return () => clearTimeout(timer)
  }, [due])
  return useMemo(
    () => marksOf(table, waiting, conflicts, Math.max(now, due === undefined ? Date.now() : 0)),
    [table, waiting, conflicts, now, due],
  )
}

/** The mark of one row; undefined when it is in sync. */
export const useRowMark = (table: TableName, id: string): RowMark | undefined => useRowMarks(table, [{ id }]).get(id)

/** When the first row that is too young for a mark gets one. Pure. */
export function nextDue(waiting: readonly WaitingRow[], now: number): number | undefined {
  let due: number | undefined
  for (const row of waiting) {
    const at = Date.parse(row.since) + QUIET_MS
    if (!row.rejected && at > now && (due === undefined || at < due)) due = at
  }
  return due
}

const NONE: RowMarks = new Map()
const made = new WeakMap<object, RowMark>()

/** Pure but for the memory of marks (M3). */
export function marksOf(
  table: TableName,
  waiting: readonly WaitingRow[],
  conflicts: readonly ConflictRow[],
  now: number,
): RowMarks {
  const marks = new Map<string, RowMark>()
  for (const row of waiting) {
    if (row.table_name !== table || (!row.rejected && Date.parse(row.since) + QUIET_MS > now)) continue
    marks.set(
      row.row_id,
      once(row, () => waitingMark(row)),
    )
  }
  for (const row of conflicts) {
    if (row.table_name !== table || marks.get(row.row_id)?.state === 'rejected') continue
    marks.set(
      row.row_id,
      once(row, () => conflictMark(row)),
    )
  }
  return marks.size === 0 ? NONE : marks
}

const waitingMark = ({ rejected, message, seq }: WaitingRow): RowMark => ({
  state: rejected ? 'rejected' : 'pending',
  reason: rejected ? (message ?? undefined) : undefined,
  anchor: changeAnchor(seq),
})

const conflictMark = ({ id, column_name }: ConflictRow): RowMark => ({
  state: 'conflict',
  reason: column_name.replace(/_(id|at)$/, '').replaceAll('_', ' '),
  anchor: conflictAnchor(id),
})

function once(row: object, make: () => RowMark): RowMark {
  const mark = made.get(row) ?? make()
  made.set(row, mark)
  return mark
}
