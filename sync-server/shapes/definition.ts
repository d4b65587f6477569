/**
 * From a requested definition to a checked one: the table as it is, columns by index, the condition as Postgres and as
 * JavaScript read it.
 *
 *  1. `build` needs no database, so a stored definition is the same after a restart.
 *  2. Params are inlined as constants of the type that Postgres found for them: what they hold is compared, never run.
 *  3. Definitions that mean the same table, condition text, columns, replica and log mode have one `key`.
 */
import { createHash } from 'node:crypto'
import { describeTable, schemaHeader, type Table } from './catalog.ts'
import { type Database, isMissingTable, isRequestError, type Session } from './database.ts'
import { parseTableName, quoteLiteral, quoteTable, type TableName } from './identifiers.ts'
import { InvalidRequest, type ShapeDefinition } from './protocol.ts'
import { type CompiledWhere, compileWhere } from './where/compile.ts'
import { MOVING_TIME, type ParsedWhere, parseWhere, whereSql } from './where/parse.ts'
import { WhereError } from './where/tokens.ts'

export type LogMode = 'full' | 'changes_only'

/** What is stored of a shape, as JSON. */
export interface DefinitionSource {
  readonly table: Table
  readonly raw: ShapeDefinition
  readonly log: LogMode
  /** SQL types of the params that the condition mentions, in ascending order of their numbers. */
  readonly paramTypes: readonly string[]
}

export interface Where extends CompiledWhere {
  /** A complete condition; columns unqualified and quoted. */
  readonly sql: string
  readonly columns: readonly number[]
}

export interface Definition {
  readonly key: string
  readonly source: DefinitionSource
  readonly table: Table
  readonly where: Where | undefined
  readonly columns: readonly number[]
  readonly replica: 'default' | 'full'
  readonly log: LogMode
  readonly schemaHeader: string
}

const invalid = (parameter: string, reason: string): InvalidRequest => new InvalidRequest({ [parameter]: [reason] })

export interface Known {
  /** A table that shapes are made of already. That it still is as it was, the snapshot will check. */
  readonly table: (name: TableName) => Table | undefined
  /** The same table as shapes have it, so that thousands of them share one object. */
  readonly intern: (table: Table) => Table
  /** Types of params, by table and text of a condition that Postgres has checked with them before. */
  readonly paramTypes: WeakMap<Table, Map<string, readonly string[]>>
}

/** Reads the table from the catalog and has Postgres check the condition, where that is not known. Throws `InvalidRequest`. */
export const resolveDefinition = async (
  database: Database,
  raw: ShapeDefinition,
  log: LogMode,
  known: Known,
): Promise<Definition> => {
  const name = parseTableName(raw.table)
  if (!name) throw invalid('table', 'Invalid table name: expected an SQL identifier, with or without a schema')
  const remembered = known.table(name)
  if (!remembered) return resolveFor(database, await findTable(database, name, known), raw, log, known)
  try {
    return await resolveFor(database, remembered, raw, log, known)
  } catch (error) {
    // Perhaps what is wrong is what we remember.
    if (!(error instanceof InvalidRequest)) throw error
    return resolveFor(database, await findTable(database, name, known), raw, log, known)
  }
}

const resolveFor = async (
  database: Database,
  table: Table,
  raw: ShapeDefinition,
  log: LogMode,
  known: Known,
): Promise<Definition> => {
  const columns = columnsOf(raw, table)
  const parsed = parse(raw, table)
  const params = raw.params ?? []
  if (!parsed) return assemble({ table, raw, log, paramTypes: [] }, columns, parsed)
  let paramTypes = known.paramTypes.get(table)?.get(raw.where ?? '')
  if (paramTypes && paramTypes.length > 0) checkMovingTime(parsed, params, paramTypes)
  else {
    paramTypes = await database.session((session) => checkWhere(session, parsed, table, params))
    remember(known.paramTypes, table, raw.where ?? '', paramTypes)
  }
  return assemble({ table, raw, log, paramTypes }, columns, parsed)
}

const findTable = async (database: Database, name: TableName, known: Known): Promise<Table> => {
  const found = await describeTable(database, await database.serverVersion(), name)
  if (!found || found.columns.length === 0) {
    throw invalid(
      'table',
      `Table ${quoteTable(name)} does not exist. If the table name contains capitals or special characters you must quote it.`,
    )
  }
  return known.intern(found)
}

const MAX_CONDITIONS = 500

const remember = (types: Known['paramTypes'], table: Table, where: string, found: readonly string[]): void => {
  const conditions = types.get(table)
  if (conditions && conditions.size < MAX_CONDITIONS) conditions.set(where, found)
  else types.set(table, new Map([[where, found]]))
}

/** The definition of a source that was resolved before. */
export const build = (source: DefinitionSource): Definition =>
  assemble(source, columnsOf(source.raw, source.table), parse(source.raw, source.table))

const assemble = (
  source: DefinitionSource,
  columns: readonly number[],
  parsed: ParsedWhere | undefined,
): Definition => {
  const { table, raw, log } = source
  const where = parsed && {
    sql: inlined(parsed, raw.params ?? [], source.paramTypes),
    columns: parsed.columns,
    ...compileWhere(parsed.tree, table, raw.params ?? []),
  }
  const replica = raw.replica ?? 'default'
  const identity = [
    table.schema,
    table.name,
    where?.sql ?? null,
    columns.map((index) => table.columns[index]?.name),
    replica,
    log,
  ]
  const key = createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 20)
  return { key, source, table, where, columns, replica, log, schemaHeader: schemaHeader(table, columns) }
}

const columnsOf = ({ columns }: ShapeDefinition, table: Table): number[] => {
  if (!columns) return table.columns.map((_, index) => index)
  const indexes = new Map(table.columns.map(({ name }, index) => [name, index]))
  const unknown = columns.filter((name) => !indexes.has(name))
  if (unknown.length > 0)
    throw invalid('columns', `The following columns are not found on the table: ${unknown.join(', ')}`)
  const chosen = [...new Set(columns.map((name) => indexes.get(name) as number))].sort((a, b) => a - b)
  const missing = table.primaryKey.filter((index) => !chosen.includes(index))
  if (missing.length > 0) {
    const names = missing.map((index) => table.columns[index]?.name)
    throw invalid('columns', `The list of columns must include all primary key columns, missing: ${names.join(', ')}`)
  }
  return chosen
}

const parse = ({ where, params = [] }: ShapeDefinition, table: Table): ParsedWhere | undefined => {
  if (where === undefined) return undefined
  try {
    const parsed = parseWhere(where, table)
    const missing = parsed.params.filter((number) => params[number - 1] === undefined)
    if (missing.length > 0)
      throw new WhereError(`parameter ${missing.map((number) => `$${number}`).join(', ')} was not provided`)
    return parsed
  } catch (error) {
    if (error instanceof WhereError) throw invalid('where', error.message)
    throw error
  }
}

/** Has Postgres check names and types. Returns the types of the params. */
const checkWhere = async (
  session: Session,
  parsed: ParsedWhere,
  table: Table,
  params: readonly string[],
): Promise<string[]> => {
  const prepare = (condition: string) =>
    session.query(`prepare hq_where as select from ${quoteTable(table)} where (${condition})`)
  try {
    await session.query('deallocate all')
    await prepare(whereSql(parsed, (number) => `$${parsed.params.indexOf(number) + 1}`))
    if (parsed.params.length === 0) return []
    const { rows } = await session.query(
      `select format_type(t, null) from pg_prepared_statements, unnest(parameter_types::oid[]) with ordinality u (t, n)
       where name = 'hq_where' order by n`,
    )
    const types = rows.map(([type]) => type as string)
    checkMovingTime(parsed, params, types)
    await session.query('deallocate all')
    await prepare(inlined(parsed, params, types))
    return types
  } catch (error) {
    if (isMissingTable(error)) throw invalid('table', `Table ${quoteTable(table)} does not exist.`)
    if (isRequestError(error) && error instanceof Error) throw invalid('where', error.message)
    throw error
  }
}

const checkMovingTime = (parsed: ParsedWhere, params: readonly string[], types: readonly string[]): void => {
  for (const [index, number] of parsed.params.entries()) {
    if (/^(date|time|interval)/.test(types[index] as string) && MOVING_TIME.test(params[number - 1] as string)) {
      throw invalid('where', `parameter $${number} must be a fixed date or time`)
    }
  }
}

const inlined = (parsed: ParsedWhere, params: readonly string[], types: readonly string[]): string =>
  whereSql(
    parsed,
    (number) => `CAST(${quoteLiteral(params[number - 1] as string)} AS ${types[parsed.params.indexOf(number)]})`,
  )
