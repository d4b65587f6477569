/**
 * SQL identifiers as requests spell them: `table=`, `columns=`.
 *
 *  1. Unquoted names fold to lower case (ASCII only, as Postgres does in UTF-8); quoted names are taken as they are.
 *  2. What leaves this module quoted can only be read by Postgres as that one identifier.
 */

export interface TableName {
  readonly schema: string
  readonly name: string
}

export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`
export const quoteLiteral = (text: string): string =>
  text.includes('\\') ? `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'` : `'${text.replaceAll("'", "''")}'`
export const quoteTable = ({ schema, name }: TableName): string => `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`

const foldAscii = (name: string): string => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())

// One identifier at the position of the regex: quoted with doubled quotes, or a bare word.
const IDENTIFIER = /"((?:[^"]|"")+)"|([A-Za-z_\u0080-\uffff][A-Za-z0-9_$\u0080-\uffff]*)/y

const readIdentifier = (text: string, at: number): { name: string; end: number } | undefined => {
  IDENTIFIER.lastIndex = at
  const match = IDENTIFIER.exec(text)
  if (!match || match[0].includes('\0')) return undefined
  const name = match[1] !== undefined ? match[1].replaceAll('""', '"') : foldAscii(match[2] as string)
  return { name, end: IDENTIFIER.lastIndex }
}

/** `undefined` when the text does not name a table. Without a schema it means `public`. */
export const parseTableName = (text: string): TableName | undefined => {
  const first = readIdentifier(text, 0)
  if (!first) return undefined
  if (first.end === text.length) return { schema: 'public', name: first.name }
  if (text[first.end] !== '.') return undefined
  const second = readIdentifier(text, first.end + 1)
  return second && second.end === text.length ? { schema: first.name, name: second.name } : undefined
}

/** A comma list of identifiers; spaces round the commas are allowed. `undefined` when malformed. */
export const parseColumnList = (text: string): string[] | undefined => {
  const names: string[] = []
  let at = 0
  const skipSpaces = () => {
    while (text[at] === ' ') at++
  }
  for (;;) {
    skipSpaces()
    const next = readIdentifier(text, at)
    if (!next) return undefined
    names.push(next.name)
    at = next.end
    skipSpaces()
    if (at === text.length) return names
    if (text[at++] !== ',') return undefined
  }
}
