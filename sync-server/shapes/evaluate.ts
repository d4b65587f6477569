/**
 * Has Postgres decide conditions that only it can: the changed rows go back to it as text, cast to the columns' types.
 *
 *  1. The verdict is Postgres' own, with the session settings that the snapshot had.
 *  2. One query takes many rows and many conditions of one table; a condition that fails does not touch the others.
 */
import type { Column } from './catalog.ts'
import { isRequestError, type Session } from './database.ts'
import { quoteIdentifier } from './identifiers.ts'
import type { Shape } from './shapes.ts'
import type { Row, Truth } from './where/compile.ts'

const MAX_ROWS = 2000
const MAX_CONDITIONS = 100

/** Verdicts by shape, in the order of `rows`; an Error where the condition can't be evaluated. */
export const evaluateConditions = async (
  session: Session,
  shapes: readonly Shape[],
  rows: readonly Row[],
): Promise<Map<Shape, Truth[] | Error>> => {
  const verdicts = new Map<Shape, Truth[] | Error>()
  for (let at = 0; at < shapes.length; at += MAX_CONDITIONS) {
    const some = shapes.slice(at, at + MAX_CONDITIONS)
    for (let from = 0; from < rows.length; from += MAX_ROWS) {
      await evaluateSome(session, some, rows.slice(from, from + MAX_ROWS), verdicts)
    }
  }
  return verdicts
}

const evaluateSome = async (
  session: Session,
  shapes: readonly Shape[],
  rows: readonly Row[],
  verdicts: Map<Shape, Truth[] | Error>,
): Promise<void> => {
  let results: string[][]
  try {
    results = await query(session, shapes, rows)
  } catch (error) {
    if (!isRequestError(error) || !(error instanceof Error)) throw error
    if (shapes.length === 1) verdicts.set(shapes[0] as Shape, error)
    else for (const shape of shapes) await evaluateSome(session, [shape], rows, verdicts)
    return
  }
  for (const [index, shape] of shapes.entries()) {
    const known = verdicts.get(shape)
    if (known instanceof Error) continue
    const truths = results.map((result) => (result[index] === 't' ? true : result[index] === 'f' ? false : null))
    if (known) for (const truth of truths) known.push(truth)
    else verdicts.set(shape, truths)
  }
}

const query = async (session: Session, shapes: readonly Shape[], rows: readonly Row[]): Promise<string[][]> => {
  const { columns } = (shapes[0] as Shape).definition.table
  const mentioned = [...new Set(shapes.flatMap(({ definition }) => definition.where?.columns ?? []))]
  const conditions = shapes.map(({ definition }) => `(${definition.where?.sql ?? 'true'})`)
  const casts = mentioned.map((index, n) => {
    const { name, typeSql, collateSql } = columns[index] as Column
    return `, u.c${n}::${typeSql}${collateSql} as ${quoteIdentifier(name)}`
  })
  const names = mentioned.map((_, n) => `c${n}, `).join('')
  const arrays = mentioned.map((_, n) => `$${n + 2}::text[]`)
  const { rows: results } = await session.query(
    `select ${conditions.join(', ')} from (select u."hq row"${casts.join('')}
     from unnest(${[...arrays, '$1::int4[]'].join(', ')}) u (${names}"hq row")) r order by r."hq row"`,
    [rows.map((_, n) => n), ...mentioned.map((index) => rows.map((row) => row[index] ?? null))],
  )
  return results
}
