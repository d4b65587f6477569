/** Asking a database what rows of many tables are called, in one statement. Pure. */
import type { TableSpec } from '../schema/columns.ts'
import { quote } from '../schema/sql.ts'
import { isTableName, type TableName, tables } from '../schema/tables.ts'
import { type ChangePatch, NAME_COLUMNS, type NameOf, shortened } from './change-words.ts'

/** Which rows, by table. */
export type Wanted = ReadonlyMap<TableName, ReadonlySet<string>>

export interface NameRow {
  readonly table_name: string
  readonly id: string
  readonly name: string | null
}

export interface NamesStatement {
  readonly sql: string
  readonly params: string[][]
  readonly tables: TableName[]
}

/** The column by which rows of a table are called. */
const nameColumn = (table: TableName): string | undefined => {
  const { columns }: TableSpec = tables[table]
  return NAME_COLUMNS.find((column) => Object.hasOwn(columns, column))
}

/** Gives `NameRow`s. Undefined: no row that was asked for has a name. */
export function namesStatement(wanted: Wanted): NamesStatement | undefined {
  const parts: string[] = []
  const params: string[][] = []
  const read: TableName[] = []
  for (const [table, ids] of wanted) {
    const column = nameColumn(table)
    if (!column || ids.size === 0) continue
    params.push([...ids].sort())
    read.push(table)
    parts.push(
      `select '${table}' as table_name, id, left(${quote(column)}, 200) as name from ${quote(table)} where id = any($${params.length}::uuid[])`,
    )
  }
  return parts.length === 0 ? undefined : { sql: parts.join(' union all '), params, tables: read }
}

export function nameOfRows(rows: readonly NameRow[]): NameOf {
  const names = new Map(rows.map((row) => [`${row.table_name} ${row.id}`, row.name]))
  return (table, id) => {
    const name = names.get(`${table} ${id}`)
    return name ? shortened(name) : undefined
  }
}

/** Adds a row to `wanted`. */
export function want(wanted: Map<TableName, Set<string>>, table: TableName, id: unknown): void {
  if (typeof id !== 'string' || !/^[0-9a-f-]{36}$/i.test(id)) return
  const ids = wanted.get(table) ?? new Set()
  wanted.set(table, ids.add(id))
}

/** The rows that descriptions of changes name. */
export function namedInChanges(changes: readonly { readonly patches: readonly ChangePatch[] }[]): Wanted {
  const wanted = new Map<TableName, Set<string>>()
  for (const { patches } of changes) {
    const [first] = patches
    if (first) want(wanted, first.table, first.id)
  }
  return wanted
}

/** The table that a column of ids names. */
export function referenceOf(table: TableName, column: string): TableName | undefined {
  const { columns }: TableSpec = tables[table]
  const target = columns[column]?.spec.references?.split('.')[0]
  return target && isTableName(target) ? target : undefined
}
