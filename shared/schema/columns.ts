/**
 * How a table is declared: the small language that `tables.ts` is written in.
 *
 * A column has an SQL type, a merge rule and, on the server only, constraints. A table says who sees its rows and who may write them.
 * From these declarations come the SQL of server and replica (`sql.ts`), the row types (`Row`), the shapes (`visibility`),
 * and the server's merge (`merge`).
 */
import type { Enum, EnumName } from './enums.ts'

/**
 * What happens when two sides change one column without having seen each other:
 *  - `lww`        the higher hybrid logical clock wins, the loser is kept in `conflicts`
 *  - `last`       the same, but the loser is forgotten: for what nobody would want back, such as where in a list something stood
 *  - `delete`     `deleted_at` only: a delete wins over whatever happens to the row meanwhile, and only who saw it can undo it
 *  - `strict`     the change must start from the present value, else the mutation is rejected
 *  - `increment`  differences are added up
 *  - `add_remove` a set: what each added is added, what each removed is removed (`differences.ts`)
 *  - `immutable`  set by the insert, never changed afterwards
 *  - `owner`      only the gateway named by the row's `gateway_id` writes it
 *  - `server`     only the server writes it; what a replica puts there is for its own display until the server's value comes
 */
export type MergeRule =
  | 'lww'
  | 'last'
  | 'delete'
  | 'strict'
  | 'increment'
  | 'add_remove'
  | 'immutable'
  | 'owner'
  | 'server'

export type SqlType =
  | 'uuid'
  | 'text'
  | 'boolean'
  | 'integer'
  | 'bigint'
  | 'numeric'
  | 'double precision'
  | 'date'
  | 'timestamptz'
  | 'jsonb'
  | 'text[]'
  | 'bytea'

export interface ColumnSpec {
  readonly type: SqlType
  readonly nullable: boolean
  readonly primaryKey: boolean
  /** An SQL expression, the same on server and replica. */
  readonly default: string | undefined
  readonly enum: EnumName | undefined
  /** `table` or `table.column` that the server checks with a foreign key; deferred to the end of the transaction. */
  readonly references: string | undefined
  readonly merge: MergeRule
}

/**
 * A column of TypeScript type `T`; `Optional` columns may be left out of an insert. The methods return a changed copy, so that a
 * declaration reads as a sentence: `c.uuid().null().references('tasks')`.
 */
export interface Column<T, Optional extends boolean = false> {
  readonly spec: ColumnSpec
  readonly __type?: T
  readonly __optional?: Optional
  null(): Column<T | null, true>
  default(sql: string): Column<T, true>
  references(target: string): Column<T, Optional>
  merge(rule: MergeRule): Column<T, Optional>
}

export interface AnyColumn {
  readonly spec: ColumnSpec
}

const column = <T, O extends boolean>(spec: ColumnSpec): Column<T, O> => ({
  spec,
  null: () => column<T | null, true>({ ...spec, nullable: true }),
  default: (sql) => column<T, true>({ ...spec, default: sql }),
  references: (references) => column<T, O>({ ...spec, references }),
  merge: (merge) => column<T, O>({ ...spec, merge }),
})

const base: Omit<ColumnSpec, 'type'> = {
  nullable: false,
  primaryKey: false,
  default: undefined,
  enum: undefined,
  references: undefined,
  merge: 'lww',
}

const plain = <T>(type: SqlType): Column<T, false> => column<T, false>({ ...base, type })

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/**
 * Constructors of columns. In rows read from a replica: `timestamptz` is an ISO string, `date` is `YYYY-MM-DD`, `numeric` and
 * `bigint` are numbers, `jsonb` is parsed.
 */
export const c = {
  id: () => column<string, false>({ ...base, type: 'uuid', primaryKey: true, merge: 'immutable' }),
  uuid: () => plain<string>('uuid'),
  text: () => plain<string>('text'),
  bool: () => plain<boolean>('boolean'),
  int: () => plain<number>('integer'),
  bigint: () => plain<number>('bigint'),
  numeric: () => plain<number>('numeric'),
  float: () => plain<number>('double precision'),
  date: () => plain<string>('date'),
  time: () => plain<string>('timestamptz'),
  json: <T = Json>() => plain<T>('jsonb'),
  texts: () => plain<string[]>('text[]'),
  bytes: () => plain<Uint8Array>('bytea'),
  enum: <Name extends EnumName>(name: Name) => column<Enum<Name>, false>({ ...base, type: 'text', enum: name }),
}

/** Who sees the rows of a table, by kind of replica. */
export interface Visibility {
  /** `tenant` all rows of the workspace · `person` rows whose `person_id` is the reader · `replica` rows whose `replica_id` is the reader's · `none`. */
  readonly browser: 'tenant' | 'person' | 'replica' | 'none'
  /** `own`: rows whose `gateway_id` is the reader. */
  readonly gateway: 'tenant' | 'own' | 'replica' | 'none'
}

/** Who may insert, change and delete rows. The server checks it for every patch of every mutation. */
export interface WriteAccess {
  /** The lowest role that may write, or `none`. */
  readonly browser: Enum<'role'> | 'none'
  /** `own`: rows whose `gateway_id` is the writer; `tenant`: any row of the workspace. */
  readonly gateway: 'tenant' | 'own' | 'none'
}

/** `core` always · `content` pages, files · `history` audit, runs, usage (windowed later). */
export type SyncGroup = 'core' | 'content' | 'history'

export interface TableSpec {
  readonly name: string
  readonly group: SyncGroup
  readonly visibility: Visibility
  readonly write: WriteAccess
  readonly columns: { readonly [name: string]: AnyColumn }
  /** Server only: sets of columns that are unique within the tenant's live rows; `where` narrows them. */
  readonly unique: readonly { readonly columns: readonly string[]; readonly where?: string }[]
  /** Both sides. */
  readonly indexes: readonly (readonly string[])[]
}

export interface Table<Columns extends { readonly [name: string]: AnyColumn }> extends TableSpec {
  readonly columns: Columns
}

type Options = Omit<TableSpec, 'name' | 'columns' | 'unique' | 'indexes'> &
  Partial<Pick<TableSpec, 'unique' | 'indexes'>>

/** Columns that every table has. */
const common = {
  id: c.id(),
  tenant_id: c.uuid().references('tenants').merge('immutable'),
  created_at: c.time().default('now()').merge('immutable'),
  updated_at: c.time().default('now()').merge('server'),
  deleted_at: c.time().null().merge('delete'),
}

export const table = <const Columns extends { readonly [name: string]: AnyColumn }>(
  name: string,
  options: Options,
  columns: Columns,
): Table<typeof common & Columns> => ({
  unique: [],
  indexes: [],
  ...options,
  name,
  columns: { ...common, ...columns },
})

type TypeOf<C> = C extends { readonly __type?: infer T } ? Exclude<T, undefined> : never

/** A row as a replica reads it. */
export type RowOf<T extends Table<{ readonly [name: string]: AnyColumn }>> = {
  -readonly [K in keyof T['columns']]: TypeOf<T['columns'][K]>
}

type OptionalKeys<Columns> = {
  [K in keyof Columns]: Columns[K] extends { readonly __optional?: true } ? K : never
}[keyof Columns]

/** What an insert takes: columns with a default, and nullable ones, may be left out. */
export type InsertOf<T extends Table<{ readonly [name: string]: AnyColumn }>> = {
  -readonly [K in Exclude<keyof T['columns'], OptionalKeys<T['columns']>>]: TypeOf<T['columns'][K]>
} & { -readonly [K in OptionalKeys<T['columns']>]?: TypeOf<T['columns'][K]> | undefined }
