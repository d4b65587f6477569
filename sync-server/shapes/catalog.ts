/**
 * What a table looks like, from Postgres' catalog: for the keys of its rows, for `electric-schema`, for conditions.
 *
 *  1. Columns come in table order and are exactly those that the replication stream sends: virtual generated columns
 *     never, stored ones where Postgres publishes them (18 and later).
 *  2. System catalogs, temporary and unlogged tables do not exist here.
 *  3. `sameColumns` is the test for "this table still has the form that the shape was made for".
 */
import type { TableName } from './identifiers.ts'

/** How values of a column can be compared outside Postgres without any doubt; `other` means: only by Postgres. */
export type ExactKind = 'text' | 'int' | 'bool' | 'uuid' | 'enum' | 'other'

export interface Column {
  readonly name: string
  readonly typeOid: number
  readonly typmod: number
  /** Name of the type, of the element type for arrays. */
  readonly typeName: string
  /** The type as SQL, with modifiers. */
  readonly typeSql: string
  /** Array dimensions as declared; 0 when it is no array. */
  readonly dims: number
  readonly notNull: boolean
  /** ` COLLATE …` when the column has another collation than its type. */
  readonly collateSql: string
  readonly exact: ExactKind
}

export interface Table extends TableName {
  readonly oid: number
  readonly isPartitioned: boolean
  readonly columns: readonly Column[]
  /** Indexes into `columns`, in the order of the primary key; empty without one. */
  readonly primaryKey: readonly number[]
  /** Whether the log holds whole old rows. Of a partitioned table that takes every partition and the table itself. */
  readonly hasFullIdentity: boolean
}

export interface Queryable {
  query(text: string, values?: readonly unknown[]): Promise<{ rows: unknown[][] }>
}

const DESCRIBE = `
select c.oid::int8::text, n.nspname::text, c.relname::text, c.relkind::text,
  c.relreplident = 'f' and not exists (
    select from pg_partition_tree(c.oid) p join pg_class part on part.oid = p.relid where part.relreplident <> 'f'),
  (select json_agg(json_build_array(
      a.attname, a.atttypid::int8, a.atttypmod, coalesce(e.typname, t.typname), format_type(a.atttypid, a.atttypmod),
      case when e.oid is null then 0 else greatest(a.attndims, 1) end, a.attnotnull,
      case when a.attcollation <> t.typcollation
        then (select format(' COLLATE %I.%I', cn.nspname, co.collname) from pg_collation co
              join pg_namespace cn on cn.oid = co.collnamespace where co.oid = a.attcollation) end,
      t.typtype, t.typnamespace = 'pg_catalog'::regnamespace,
      coalesce((select co.collisdeterministic from pg_collation co where co.oid = a.attcollation), true),
      a.attnum) order by a.attnum)
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    left join pg_type e on e.oid = t.typelem and t.typcategory = 'A'
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = any ($3::"char"[])),
  (select array_to_json(i.indkey::int2[]) from pg_index i where i.indrelid = c.oid and i.indisprimary)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and c.relpersistence = 'p' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
`

type ColumnRow = [
  string,
  number,
  number,
  string,
  string,
  number,
  boolean,
  string | null,
  string,
  boolean,
  boolean,
  number,
]

const describe = async (
  client: Queryable,
  where: string,
  values: readonly unknown[],
  generated: string,
): Promise<Table[]> => {
  const { rows } = await client.query(`${DESCRIBE} and ${where}`, [...values, generated])
  return rows.map((row) => {
    const [oid, schema, name, kind, full, columnsJson, keyJson] = row as string[]
    const columns = (columnsJson ? JSON.parse(columnsJson) : []) as ColumnRow[]
    const positions = new Map(columns.map((column, index) => [column[11], index]))
    const key = (keyJson ? JSON.parse(keyJson) : []) as number[]
    return {
      oid: Number(oid),
      schema: schema as string,
      name: name as string,
      isPartitioned: kind === 'p',
      hasFullIdentity: full === 't',
      columns: columns.map(toColumn),
      primaryKey: key.flatMap((number) => positions.get(number) ?? []),
    }
  })
}

const toColumn = (row: ColumnRow): Column => {
  const [name, typeOid, typmod, typeName, typeSql, dims, notNull, collate, kind, isBuiltIn, isDeterministic] = row
  const exact = (): ExactKind => {
    if (kind === 'e') return 'enum'
    if (!isBuiltIn || dims > 0 || kind !== 'b') return 'other'
    if (typeName === 'text' || typeName === 'varchar') return isDeterministic ? 'text' : 'other'
    if (typeName === 'int2' || typeName === 'int4' || typeName === 'int8') return 'int'
    return typeName === 'bool' || typeName === 'uuid' ? typeName : 'other'
  }
  return { name, typeOid, typmod, typeName, typeSql, dims, notNull, collateSql: collate ?? '', exact: exact() }
}

const generatedKinds = (serverVersion: number): string => (serverVersion >= 180000 ? '{"",s}' : '{""}')

export const describeTable = async (
  client: Queryable,
  serverVersion: number,
  { schema, name }: TableName,
): Promise<Table | undefined> =>
  (await describe(client, 'n.nspname = $1 and c.relname = $2', [schema, name], generatedKinds(serverVersion)))[0]

/** The tables with these oids that still exist, by oid. */
export const describeTables = async (
  client: Queryable,
  serverVersion: number,
  oids: readonly number[],
): Promise<Map<number, Table>> => {
  const tables = await describe(
    client,
    'c.oid = any ($1::oid[]) and $2::text is null',
    [oids, null],
    generatedKinds(serverVersion),
  )
  return new Map(tables.map((table) => [table.oid, table]))
}

interface ColumnForm {
  readonly name: string
  readonly typeOid: number
  readonly typmod: number
}

export const sameColumns = (a: readonly ColumnForm[], b: readonly ColumnForm[]): boolean =>
  a.length === b.length &&
  a.every((column, index) => {
    const other = b[index] as ColumnForm
    return column.name === other.name && column.typeOid === other.typeOid && column.typmod === other.typmod
  })

/** Whether shapes of `a` can go on with `b`: same name, columns, primary key and null rules. */
export const sameTable = (a: Table, b: Table): boolean =>
  a.oid === b.oid &&
  a.schema === b.schema &&
  a.name === b.name &&
  sameColumns(a.columns, b.columns) &&
  a.columns.every((column, index) => column.notNull === b.columns[index]?.notNull) &&
  a.primaryKey.join() === b.primaryKey.join()

/** The JSON of the header `electric-schema`, for the columns at these indexes. */
export const schemaHeader = (table: Table, columns: readonly number[]): string =>
  JSON.stringify(
    Object.fromEntries(
      columns.map((index) => {
        const column = table.columns[index] as Column
        const keyIndex = table.primaryKey.indexOf(index)
        return [
          column.name,
          {
            type: column.typeName,
            ...modifiers(column),
            ...(column.dims > 0 ? { dims: column.dims } : {}),
            ...(keyIndex >= 0 ? { pk_index: keyIndex } : {}),
            ...(column.notNull ? { not_null: true } : {}),
          },
        ]
      }),
    ),
  ).replace(/[^\x20-\x7e]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)

const modifiers = ({ typeName, typmod }: Column): Record<string, number> => {
  if (typmod < 0) return {}
  switch (typeName) {
    case 'varchar':
      return { max_length: typmod - 4 }
    case 'bpchar':
      return { length: typmod - 4 }
    case 'bit':
      return { length: typmod }
    case 'varbit':
      return { max_length: typmod }
    case 'numeric':
      // Scale is an 11-bit signed number since Postgres 15.
      return { precision: ((typmod - 4) >> 16) & 0xffff, scale: (((typmod - 4) & 0x7ff) ^ 1024) - 1024 }
    case 'time':
    case 'timetz':
    case 'timestamp':
    case 'timestamptz':
      return { precision: typmod }
    default:
      return { type_mod: typmod }
  }
}
