/**
 * `/v1/shape` of the product: a table's name in, that table's rows as this reader may see them out.
 *
 *  1. The server alone makes the definition: condition and params come from `shared/schema` and the principal. `where`, `params`, `columns`,
 *     `replica` and subset parameters of the client have no effect.
 *  2. Only the parameters that move a reader through a log are passed on.
 *  3. Embedded engine and real Electric get the very same definition.
 *  4. No answer is stored by a cache in between.
 */
import { visibleRows } from '@hq/shared/domain/access.ts'
import { quote } from '@hq/shared/schema/sql.ts'
import { isTableName, tables } from '@hq/shared/schema/tables.ts'
import { type Principal, REPLICA_HEADER } from '@hq/shared/sync/protocol.ts'
import { HttpError } from '../errors.ts'
import type { ShapeDefinition, ShapeRequest, ShapeResponse } from '../shapes/protocol.ts'
import type { Replicas } from './replicas.ts'

/** What answers shape requests: the engine in this process, or `electric-proxy.ts`. */
export interface ShapeSource {
  handle(request: ShapeRequest): Promise<ShapeResponse>
}

export interface ShapeQuery {
  readonly principal: Principal
  readonly method: string
  readonly search: URLSearchParams
  readonly header: (name: string) => string | null | undefined
  readonly signal: AbortSignal
}

export type ServeShape = (query: ShapeQuery) => Promise<ShapeResponse>

const PASSED = [
  'offset',
  'handle',
  'live',
  'cursor',
  'live_sse',
  'experimental_live_sse',
  'log',
  'cache-buster',
  'expired_handle',
]

export const createServeShape =
  (source: ShapeSource, replicas: Replicas): ServeShape =>
  async ({ principal, method, search, header, signal }) => {
    if (method !== 'GET' && method !== 'POST') {
      throw new HttpError(
        405,
        'forbidden',
        'Shapes are shared between readers; they are not deleted by one of them.',
        {},
        { allow: 'GET, POST' },
      )
    }
    const replicaId = await replicas.check(
      principal,
      search.get('replica_id') ?? header(REPLICA_HEADER) ?? undefined,
      header('x-hq-label') ?? undefined,
    )
    const params: Record<string, string> = {}
    for (const name of PASSED) {
      const value = search.get(name)
      if (value !== null) params[name] = value
    }
    const response = await source.handle({
      method: 'GET',
      params,
      definition: shapeDefinition(search.get('table') ?? '', principal, replicaId),
      headers: { 'if-none-match': header('if-none-match') ?? undefined },
      signal,
    })
    return { ...response, headers: { ...response.headers, 'cache-control': 'no-store' } }
  }

/** The shape that `table` names for this reader. */
export function shapeDefinition(table: string, principal: Principal, replicaId: string): ShapeDefinition {
  if (!isTableName(table))
    throw new HttpError(400, 'unknown_table', `There is no table '${table.slice(0, 80)}' to read.`)
  const conditions = visibleRows(tables[table], principal, replicaId)
  if (!conditions) throw new HttpError(403, 'forbidden', `You may not read ${table}.`)
  const entries = Object.entries(conditions)
  return {
    table,
    where: entries.map(([column], index) => `${quote(column)} = $${index + 1}`).join(' AND '),
    params: entries.map(([, value]) => value),
    replica: 'full',
  }
}
