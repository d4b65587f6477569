/**
 * Rows as text for `COPY … FROM '/dev/blob'`: the fastest way into an empty table (measured against `jsonb_to_recordset`: half the time).
 *
 * R7 Every value is the text that Postgres printed; backslash, tab, CR and LF are escaped, `\N` alone is NULL.
 */
import { quote } from '../schema/sql.ts'
import { type TableName, tables } from '../schema/tables.ts'
import type { TextRow } from './apply.ts'

export interface CopyBatch {
  readonly sql: string
  readonly data: Blob
}

/** Undefined when the rows don't all have the same columns of ours: then they need the defaults of the slower way. */
export function toCopy(name: TableName, rows: readonly TextRow[]): CopyBatch | undefined {
  const known = Object.keys(tables[name].columns)
  const lines: string[] = []
  for (const row of rows) {
    let line = ''
    for (const column of known) {
      const value = row[column]
      if (value === undefined) return undefined
      line += line === '' ? escaped(value) : `\t${escaped(value)}`
    }
    lines.push(line)
  }
  return {
    sql: `copy ${quote(name)} (${known.map(quote).join(', ')}) from '/dev/blob'`,
    data: new Blob([`${lines.join('\n')}\n`]),
  }
}

const SPECIAL = /[\\\t\r\n]/
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\r': '\\r', '\n': '\\n' }

const escaped = (value: string | null): string => {
  if (value === null) return '\\N'
  return SPECIAL.test(value) ? value.replace(/[\\\t\r\n]/g, (found) => ESCAPES[found] ?? found) : value
}
