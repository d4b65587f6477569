/** What a change in the outbox and its refusal mean to a person. Pure. */
import type { NameOf } from '@hq/shared/domain/change-words.ts'
import type { TableSpec } from '@hq/shared/schema/columns.ts'
import { ENUMS } from '@hq/shared/schema/enums.ts'
import { type TableName, tables } from '@hq/shared/schema/tables.ts'
import type { OutboxEntry } from '@hq/shared/sync/contract.ts'
import { referenceOf } from './names.ts'

export interface FieldChange {
  readonly table: TableName
  readonly id: string
  readonly column: string
  readonly before: unknown
  readonly after: unknown
  readonly input: FieldInput
}

/** How a person can correct it; `none`: it is only shown. */
export type FieldInput =
  | { readonly kind: 'none' }
  | { readonly kind: 'line' | 'text'; readonly nullable: boolean }
  | { readonly kind: 'choice'; readonly options: readonly string[] }

/** Of no interest to a person: who and where the row is. */
const TECHNICAL = new Set(['id', 'tenant_id', 'created_at', 'updated_at', 'created_by', 'updated_by'])
const LONG = new Set(['body', 'description', 'content', 'review_note', 'notes', 'instructions'])
const LINES = new Set(['text', 'integer', 'bigint', 'numeric', 'double precision', 'date', 'timestamptz'])

/** Column by column, for the details of an entry. */
export function fieldsOf(entry: Pick<OutboxEntry, 'patches'>): FieldChange[] {
  return entry.patches.flatMap((patch) =>
    Object.entries(patch.set)
      .filter(([column]) => !TECHNICAL.has(column))
      .map(([column, after]) => ({
        table: patch.table,
        id: patch.id,
        column,
        before: patch.base[column],
        after,
        input: inputOf(patch.table, column),
      })),
  )
}

export function inputOf(table: TableName, column: string): FieldInput {
  const { columns }: TableSpec = tables[table]
  const spec = columns[column]?.spec
  if (!spec) return { kind: 'none' }
  if (spec.enum !== undefined) return { kind: 'choice', options: ENUMS[spec.enum] }
  if (spec.type === 'boolean') return { kind: 'choice', options: ['true', 'false'] }
  if (!LINES.has(spec.type)) return { kind: 'none' }
  return { kind: LONG.has(column) ? 'text' : 'line', nullable: spec.nullable }
}

/** "due date", "assignee", "created". */
export const columnWords = (column: string): string =>
  column
    .replace(/_(agent|person)_id$/, '')
    .replace(/_(id|at)$/, '')
    .replaceAll('_', ' ')

/** A value as text: ids by the name of what they mean, enums in words. */
export function valueText(value: unknown, of?: { table: TableName; column: string }, nameOf?: NameOf): string {
  if (value === undefined || value === null || value === '') return 'empty'
  if (typeof value !== 'string') return typeof value === 'object' ? JSON.stringify(value) : String(value)
  if (!of) return value
  const target = referenceOf(of.table, of.column)
  if (target) return nameOf?.(target, value) ?? 'something that is not here'
  return inputOf(of.table, of.column).kind === 'choice' ? value.replaceAll('_', ' ') : value
}

/** What the reasons of the server ask of a person. */
export function adviceOf(code: string): string {
  switch (code) {
    case 'forbidden':
      return 'Send it again when you may, or discard it.'
    case 'missing_row':
    case 'missing_reference':
      return 'Something it belongs to was removed. Copy what you need, then discard it.'
    case 'stale':
      return 'Somebody else changed this meanwhile. Compare it with what the server has now, then try again or discard it.'
    case 'not_unique':
      return 'That name is taken. Choose another one and try again.'
    case 'immutable':
    case 'unknown_table':
    case 'unknown_column':
    case 'malformed':
      return 'This version of HQ may be too old. Reload, then try again.'
    case 'too_large':
      return 'It is too large to be sent at once. Copy it and make it in smaller pieces.'
    default:
      return 'Correct it and try again, or discard it.'
  }
}
