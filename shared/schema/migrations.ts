/**
 * How a migration file is read.
 *
 * A file is plain SQL with section marks on lines of their own: `-- @both` (the default), `-- @server`, `-- @replica`.
 * Files are applied in the order of their names, each once, each in one transaction, and never edited after a release.
 */

export type Side = 'server' | 'replica'

export interface Migration {
  /** File name without folder, such as `0001_schema.sql`. */
  readonly name: string
  readonly sql: string
}

const MARK = /^--\s*@(both|server|replica)\s*$/

/** The part of a migration that one side runs; empty when there is none. */
export function sqlFor(side: Side, sql: string): string {
  let section = 'both'
  const lines: string[] = []
  for (const line of sql.split('\n')) {
    const mark = MARK.exec(line)
    if (mark) section = mark[1] ?? 'both'
    else if (section === 'both' || section === side) lines.push(line)
  }
  return lines.join('\n').trim()
}

/** In the order in which they are applied. */
export const inOrder = (migrations: readonly Migration[]): Migration[] =>
  [...migrations].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
