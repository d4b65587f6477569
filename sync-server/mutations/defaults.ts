/** Defaults of columns that are plain values, as values; SQL expressions such as `now()` are null here. */
import type { ColumnSpec } from '@hq/shared/schema/columns.ts'

export function literalDefault({ type, default: sql }: ColumnSpec): unknown {
  if (sql === undefined) return null
  if (sql === 'true' || sql === 'false') return sql === 'true'
  const quoted = /^'(.*)'$/.exec(sql)?.[1]
  if (quoted === undefined) return /^-?\d+$/.test(sql) ? (type === 'integer' ? Number(sql) : sql) : null
  if (type === 'text[]') return quoted === '{}' ? [] : null
  if (type === 'jsonb') return quoted === '{}' ? {} : null
  return quoted.replaceAll("''", "'")
}
