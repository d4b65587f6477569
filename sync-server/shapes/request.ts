/**
 * Reading the parameters of `/v1/shape`: what can be decided without a database.
 *
 *  1. Everything wrong with a request is reported as an `InvalidRequest` that names the parameter at fault.
 *  2. Parameters that only vary the URL, and unknown ones, have no effect.
 */
import { parseColumnList } from './identifiers.ts'
import { InvalidRequest, type Offset, parseOffset, type ShapeDefinition, type ShapeRequest } from './protocol.ts'

export type Start = 'beginning' | 'now' | Offset

export interface ShapeQuery {
  readonly definition: ShapeDefinition
  /** Identifies the definition as it was written, before any look at the database. */
  readonly rawKey: string
  readonly log: 'full' | 'changes_only'
  readonly start: Start
  readonly handle: string | undefined
  readonly live: boolean
  readonly sse: boolean
  readonly cursor: string | undefined
}

const invalid = (parameter: string, ...reasons: string[]): InvalidRequest =>
  new InvalidRequest({ [parameter]: reasons })

const hasContent = (body: unknown): boolean => typeof body === 'object' && body !== null && Object.keys(body).length > 0
const isSet = (value: string | undefined): value is string => value !== undefined && value !== ''
const isTrue = (value: string | undefined): boolean => value !== undefined && value !== 'false'

export const readQuery = (request: ShapeRequest): ShapeQuery => {
  const { params } = request
  // A part of a shape instead of its log: to answer with the log would be worse than to refuse.
  if (Object.keys(params).some((name) => name.startsWith('subset__')) || hasContent(request.body)) {
    throw invalid('subset', 'subsets are not supported by this server')
  }
  const definition = request.definition ?? readDefinition(params)
  const log = params['log'] ?? 'full'
  if (log !== 'full' && log !== 'changes_only') throw invalid('log', 'is invalid')

  const start = readStart(params['offset'])
  const live = isTrue(params['live'])
  const sse = isTrue(params['live_sse']) || isTrue(params['experimental_live_sse'])
  const handle = isSet(params['handle']) ? params['handle'] : undefined
  if (typeof start === 'object' && handle === undefined) throw invalid('handle', `can't be blank when offset != -1`)
  if (live && start === 'beginning') throw invalid('live', `can't be true when offset == -1`)
  if (live && start === 'now') throw invalid('live', `can't be true when offset is 'now'`)
  if (sse && !live) throw invalid('live_sse', `can't be true unless live is also true`)

  return { definition, rawKey: rawKeyOf(definition, log), log, start, handle, live, sse, cursor: params['cursor'] }
}

/** The definition alone, for DELETE. `undefined` when the request names no table. */
export const readOptionalDefinition = (
  request: ShapeRequest,
): { definition: ShapeDefinition; rawKey: string; log: 'full' | 'changes_only' } | undefined => {
  if (!request.definition && !isSet(request.params['table'])) return undefined
  const definition = request.definition ?? readDefinition(request.params)
  const log = request.params['log'] === 'changes_only' ? 'changes_only' : 'full'
  return { definition, rawKey: rawKeyOf(definition, log), log }
}

export const rawKeyOf = (definition: ShapeDefinition, log: string): string =>
  JSON.stringify([
    definition.table,
    definition.where ?? null,
    definition.params ?? [],
    definition.columns ?? null,
    definition.replica ?? 'default',
    log,
  ])

const readStart = (text: string | undefined): Start => {
  if (!isSet(text)) throw invalid('offset', `can't be blank`)
  if (text === '-1') return 'beginning'
  if (text === 'now') return 'now'
  const offset = parseOffset(text)
  if (!offset) throw invalid('offset', 'has invalid format')
  return offset
}

const readDefinition = (params: ShapeRequest['params']): ShapeDefinition => {
  const table = params['table']
  if (!isSet(table)) throw invalid('table', `can't be blank`)
  const replica = params['replica'] ?? 'default'
  if (replica !== 'default' && replica !== 'full') throw invalid('replica', 'is invalid')
  let columns: string[] | undefined
  if (isSet(params['columns'])) {
    columns = parseColumnList(params['columns'])
    if (!columns) throw invalid('columns', 'Invalid column list: expected SQL identifiers separated by commas')
  }
  const where = isSet(params['where']) ? params['where'] : undefined
  return { table, where, params: readParams(params), columns, replica }
}

const PARAMETER = /^params\[([^\]]*)\]$/

const readParams = (params: ShapeRequest['params']): string[] => {
  const values: string[] = []
  let count = 0
  for (const [name, value] of Object.entries(params)) {
    const match = PARAMETER.exec(name)
    if (!match || value === undefined) continue
    const number = Number(match[1])
    if (!Number.isInteger(number) || number < 1 || number > 1000)
      throw invalid('params', `${name} is not numbered from 1 on`)
    values[number - 1] = value
    count++
  }
  if (values.length !== count) throw invalid('params', 'Parameters must be numbered sequentially, starting from 1')
  return values
}
