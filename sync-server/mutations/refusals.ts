/** What Postgres refused, as a rejection: a code, and words for the person whose change it was. */

import type { ColumnSpec } from '@hq/shared/schema/columns.ts'
import { ENUMS } from '@hq/shared/schema/enums.ts'
import { isTableName, tables } from '@hq/shared/schema/tables.ts'
import { Rejected } from './plan.ts'

/** What `hq_apply` says about the mutation at which it stopped. */
export interface Failure {
  readonly failed: number
  readonly state: string
  readonly message: string
  readonly constraint: string
  readonly table: string
  readonly column: string
}

const words = (name: string): string => name.replaceAll('_', ' ')
const singular = (table: string): string => words(table).replace(/ies$/, 'y').replace(/s$/, '')
const article = (noun: string): string => (/^[aeiou]/.test(noun) ? `an ${noun}` : `a ${noun}`)

export function rejectionOf({ state, message, constraint, table, column }: Failure): Rejected {
  const detail = { table, ...(column ? { column } : {}) }
  const spec = isTableName(table) ? tables[table] : undefined
  if (state === '23505') {
    const columns = spec?.unique.find((unique) => constraint === [table, ...unique.columns, 'key'].join('_'))
      ?.columns ?? ['id']
    const what = columns.map(words).join(' and ')
    return new Rejected(
      'not_unique',
      `There is already ${article(singular(table))} with this ${what}. Change the ${what} and try again.`,
      { table, columns: [...columns] },
    )
  }
  if (state === '23503') {
    const named = constraint.replace(`${table}_`, '').replace(/_fkey$/, '')
    const target = (spec?.columns as Record<string, { spec: ColumnSpec }> | undefined)?.[named]?.spec.references
    const kind = target ? singular(target.split('.')[0] ?? '') : 'row'
    return new Rejected(
      'missing_reference',
      `The ${kind} that this ${singular(table)} names (${words(named)}) does not exist on the server.`,
      { table, column: named },
    )
  }
  if (state === '23514') {
    const named = constraint.replace(`${table}_`, '').replace(/_check$/, '')
    const allowed = (spec?.columns as Record<string, { spec: ColumnSpec }> | undefined)?.[named]?.spec.enum
    const list = allowed ? ` It must be one of: ${ENUMS[allowed].join(', ')}.` : ''
    return new Rejected(
      'invalid',
      `The ${words(named)} of this ${singular(table)} is not a value it can have.${list}`,
      { table, column: named },
    )
  }
  if (state === '23502')
    return new Rejected(
      'invalid',
      `${words(column || 'a column')} of this ${singular(table || 'row')} must not be empty.`,
      detail,
    )
  if (state.startsWith('54'))
    return new Rejected('invalid', `A value is too long for the place it is kept in (${message}).`, detail)
  return new Rejected('invalid', `The server can't store a value: ${message}.`, detail)
}
