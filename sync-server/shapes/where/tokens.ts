/**
 * Splits an SQL condition into tokens. Comments, dollar quotes, backslash strings and statement separators are not part of
 * the language: what Postgres will read is exactly what was tokenised.
 */

export type Token =
  | { readonly kind: 'word'; readonly text: string; readonly quoted: boolean; readonly at: number }
  | { readonly kind: 'string' | 'number' | 'operator'; readonly text: string; readonly at: number }
  | { readonly kind: 'param'; readonly number: number; readonly text: string; readonly at: number }
  | { readonly kind: 'end'; readonly text: ''; readonly at: number }

export class WhereError extends Error {}

const PATTERN = new RegExp(
  [
    `(?<space>[ \\t\\r\\n\\f]+)`,
    `(?<string>'(?:[^']|'')*')`,
    `(?<quoted>"(?:[^"]|"")+")`,
    `(?<number>\\d+(?:\\.\\d*)?(?:[eE][+-]?\\d+)?|\\.\\d+(?:[eE][+-]?\\d+)?)`,
    `(?<param>\\$\\d+)`,
    `(?<word>[A-Za-z_\\u0080-\\uffff][A-Za-z0-9_$\\u0080-\\uffff]*)`,
    `(?<mark>::|[()\\[\\],.])`,
    `(?<operator>[-+*/<>=~!@#%^&|?]+)`,
  ].join('|'),
  'y',
)

const OPERATORS = new Set(
  `= <> != < <= > >= + - * / % ^ || & | # << >> ~ ~* !~ !~* @> <@ && -> ->> #> #>> ? ?| ?&`.split(' '),
)

export const tokenise = (text: string): Token[] => {
  const tokens: Token[] = []
  if (text.includes('\0')) throw new WhereError('At location 0: a null character')
  let at = 0
  while (at < text.length) {
    PATTERN.lastIndex = at
    const match = PATTERN.exec(text)
    const groups = match?.groups
    if (!match || !groups)
      throw new WhereError(`At location ${at}: unexpected ${JSON.stringify(text.slice(at, at + 10))}`)
    const [found] = match
    if (groups['string'] !== undefined) {
      tokens.push({ kind: 'string', text: found.slice(1, -1).replaceAll("''", "'"), at })
    } else if (groups['quoted'] !== undefined) {
      tokens.push({ kind: 'word', text: found.slice(1, -1).replaceAll('""', '"'), quoted: true, at })
    } else if (groups['number'] !== undefined) {
      if (/^[A-Za-z_0-9.]/.test(text.slice(at + found.length)))
        throw new WhereError(`At location ${at}: malformed number`)
      tokens.push({ kind: 'number', text: found, at })
    } else if (groups['param'] !== undefined) {
      tokens.push({ kind: 'param', text: found, number: Number(found.slice(1)), at })
    } else if (groups['word'] !== undefined) {
      tokens.push({ kind: 'word', text: found.replace(/[A-Z]/g, (c) => c.toLowerCase()), quoted: false, at })
    } else if (groups['mark'] !== undefined) {
      tokens.push({ kind: 'operator', text: found, at })
    } else if (groups['operator'] !== undefined) {
      at = pushOperators(tokens, found, at)
      continue
    }
    at += found.length
  }
  tokens.push({ kind: 'end', text: '', at })
  return tokens
}

/** `=-1` is `=` and `-`, as Postgres reads it; anything that begins a comment is refused. Returns where to go on. */
const pushOperators = (tokens: Token[], found: string, at: number): number => {
  if (found.includes('--') || found.includes('/*')) throw new WhereError(`At location ${at}: comments are not allowed`)
  let operator = found
  while (operator.length > 1 && !OPERATORS.has(operator) && /[-+]$/.test(operator)) operator = operator.slice(0, -1)
  if (!OPERATORS.has(operator)) throw new WhereError(`At location ${at}: operator ${found} is not supported`)
  tokens.push({ kind: 'operator', text: operator, at })
  return at + operator.length
}
