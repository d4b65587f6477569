/**
 * The outbox for people: what is pending, what was refused, what to do about it; and its copy for the case that the database is lost.
 *
 * P5 A refused mutation is kept until a person retries or discards it.
 *    What is retried is the change, not its result: of a set only what was added and removed, a sum by what was added to it.
 * X1 `exportOutbox` of one database and `importOutbox` into another bring every mutation once, in order, as new mutations of the new identity.
 */
import type { PGlite } from '@electric-sql/pglite'
import { quote } from '../schema/sql.ts'
import { isTableName, type TableName, tables } from '../schema/tables.ts'
import { columnsWith } from './attach.ts'
import type { OutboxEntry, OutboxState, Replica, Tx } from './contract.ts'
import type { Actor, RejectionCode } from './protocol.ts'

interface EntryRow {
  seq: string
  mutation_id: string
  state: OutboxState
  created_at: string
  actor_type: Actor['type']
  actor_id: string | null
  run_id: string | null
  code: RejectionCode | null
  message: string | null
  patches: (OutboxEntry['patches'][number] & { local: Record<string, unknown> })[]
}

const ENTRIES = `select seq::text, mutation_id, state, to_jsonb(created_at) #>> '{}' as created_at, actor_type, actor_id, run_id, code, message, patches
  from sync.entries e`

type Querying = Pick<PGlite, 'query'>

export async function readOutbox(db: Querying): Promise<OutboxEntry[]> {
  const { rows } = await db.query<EntryRow>(`${ENTRIES} order by e.seq`)
  return rows.map(toEntry)
}

const toEntry = (row: EntryRow): OutboxEntry => ({
  seq: Number(row.seq),
  mutationId: row.mutation_id,
  state: row.state,
  createdAt: new Date(row.created_at).toISOString(),
  actor: { type: row.actor_type, id: row.actor_id },
  runId: row.run_id,
  patches: row.patches.map(({ table, id, op, set, base }) => ({ table, id, op, set, base })),
  rejection: row.state === 'rejected' ? { code: row.code ?? 'invalid', message: row.message ?? '' } : null,
})

/** Everything that is not settled, as JSON lines of one mutation each. Works on any database that opens, without an open replica. */
export async function exportOutbox(db: Querying): Promise<string> {
  const { rows } = await db.query<{ copy: string }>(
    'select to_jsonb(e)::text as copy from sync.entries e order by e.seq',
  )
  return rows.map(({ copy }) => copy).join('\n')
}

export interface Imported {
  readonly imported: number
  /** Mutations that could not be written again, with the reason. */
  readonly failed: readonly { readonly mutationId: string; readonly reason: string }[]
}

/** Writes exported mutations again. A later line of the same mutation wins; one that cannot be written does not stop the others. */
export async function importOutbox(replica: Replica, lines: string): Promise<Imported> {
  const entries = new Map<string, EntryRow>()
  for (const line of lines.split('\n')) {
    if (line.trim() === '') continue
    const entry = JSON.parse(line) as EntryRow
    entries.set(entry.mutation_id, entry)
  }
  const failed: { mutationId: string; reason: string }[] = []
  let imported = 0
  for (const entry of entries.values()) {
    try {
      const actor = { type: entry.actor_type, id: entry.actor_id }
      await replica.write(async (tx) => rewrite(tx, entry.patches, {}), {
        actor,
        ...(entry.run_id && { runId: entry.run_id }),
      })
      imported++
    } catch (error) {
      failed.push({ mutationId: entry.mutation_id, reason: error instanceof Error ? error.message : String(error) })
    }
  }
  return { imported, failed }
}

/** Values to put in the place of the refused ones: table → id → column → value. */
export type Edits = Record<string, Record<string, Record<string, unknown>>>

export async function rejectedEntry(db: Querying, seq: number): Promise<EntryRow> {
  const { rows } = await db.query<EntryRow>(`${ENTRIES} where e.seq = $1`, [seq])
  const entry = rows[0]
  if (!entry) throw new Error(`Mutation ${seq} is not in the outbox.`)
  if (entry.state !== 'rejected')
    throw new Error(`Mutation ${seq} is ${entry.state}; only a rejected one can be retried or discarded.`)
  return entry
}

export const FORGET = `with gone as (delete from sync.outbox where seq = $1 and state = 'rejected' returning seq)
  delete from sync.patches p using gone where p.seq = gone.seq returning p.table_name, p.row_id`

/** Makes the changes of patches once more, by ordinary SQL, so that they are captured like any other write. */
export async function rewrite(tx: Tx, patches: EntryRow['patches'], edits: Edits): Promise<void> {
  for (const patch of patches) {
    const values: Record<string, unknown> = { ...patch.set, ...edits[patch.table]?.[patch.id] }
    const columns = columnsOf(patch.table, Object.keys(values))
    const sums = columnsWith(tables[patch.table], 'increment')
    const sets = columnsWith(tables[patch.table], 'add_remove')
    if (patch.op === 'insert') {
      const row = { ...patch.local, ...values }
      const all = columnsOf(patch.table, Object.keys(row))
      await tx.query(
        `insert into ${quote(patch.table)} (${all}) select ${all
          .split(', ')
          .map((column) => `r.${column}`)
          .join(', ')}
         from (select $2::uuid as id) i left join ${quote(patch.table)} was on was.id = i.id, jsonb_populate_record(null::${quote(patch.table)},
           $1::jsonb || sync.by_difference(to_jsonb(was), 'insert', $1::jsonb, '{}', $3, $4)) r
         on conflict (id) do update set ${all
           .split(', ')
           .map((column) => `${column} = excluded.${column}`)
           .join(', ')}`,
        [JSON.stringify(row), patch.id, sums, sets],
      )
    } else if (patch.op === 'delete') {
      await tx.query(`delete from ${quote(patch.table)} where id = $1`, [patch.id])
    } else {
      const assignments = columns.split(', ').map((column) => `${column} = r.${column}`)
      const found = await tx.query(
        `update ${quote(patch.table)} t set ${assignments.join(', ')}
         from ${quote(patch.table)} was, jsonb_populate_record(null::${quote(patch.table)},
           $1::jsonb || sync.by_difference(to_jsonb(was), 'update', $1::jsonb, $3::jsonb, $4, $5)) r
         where t.id = $2 and was.id = t.id returning t.id`,
        [JSON.stringify(values), patch.id, JSON.stringify(patch.base), sums, sets],
      )
      if (found.length === 0)
        throw new Error(`The row ${patch.id} of ${patch.table} no longer exists, so the change cannot be made again.`)
    }
  }
}

/** Quoted column list; a name that the schema does not know is an error, not SQL. */
function columnsOf(table: TableName, names: readonly string[]): string {
  if (!isTableName(table)) throw new Error(`There is no table ${table}.`)
  for (const name of names) {
    if (!Object.hasOwn(tables[table].columns, name)) throw new Error(`The table ${table} has no column ${name}.`)
  }
  return names.map(quote).join(', ')
}
