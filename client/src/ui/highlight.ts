/**
 * A quiet highlighter for reading: comments, strings, numbers, keywords and keys; everything else is plain. It never
 * fails: what it doesn't know stays text. One line at a time, except block comments, which it follows.
 */
export type Token = { text: string; kind: 'plain' | 'comment' | 'string' | 'number' | 'keyword' | 'key' | 'heading' }
export type Language = 'ts' | 'json' | 'sh' | 'py' | 'sql' | 'yaml' | 'md' | 'text'

const C = '\\/\\/.*|\\/\\*.*?(?:\\*\\/|$)'
const STRINGS = `"(?:[^"\\\\]|\\\\.)*"?|'(?:[^'\\\\]|\\\\.)*'?`
const NUMBER = '\\b\\d[\\d_]*(?:\\.\\d+)?(?:e[+-]?\\d+)?\\b'
const words = (list: string) => `\\b(?:${list.replaceAll(' ', '|')})\\b`

const TS =
  'as async await break case catch class const continue default do else export extends false finally for from function if implements import in instanceof interface let new null of readonly return satisfies static super switch this throw true try type typeof undefined var void while yield'
const PY =
  'and as assert async await break class continue def del elif else except False finally for from if import in is lambda None nonlocal not or pass raise return True try while with yield'
const SH = 'if then else elif fi for while do done case esac in function return export local set'
const SQL =
  'select from where insert into values update set delete create table alter drop index primary key references not null default and or on join left inner order by group limit offset as distinct returning begin commit with case when then else end true false'

type Rule = [kind: Token['kind'], pattern: string]
const RULES: Record<Language, { rules: Rule[]; flags?: string }> = {
  ts: {
    rules: [
      ['comment', C],
      ['string', `${STRINGS}|\`(?:[^\`\\\\]|\\\\.)*\`?`],
      ['keyword', words(TS)],
      ['number', NUMBER],
    ],
  },
  json: {
    rules: [
      ['key', '"(?:[^"\\\\]|\\\\.)*"(?=\\s*:)'],
      ['string', STRINGS],
      ['keyword', words('true false null')],
      ['number', `-?${NUMBER}`],
    ],
  },
  sh: {
    rules: [
      ['comment', '(?:^|(?<=\\s))#.*'],
      ['string', STRINGS],
      ['keyword', words(SH)],
      ['key', '\\$\\{?\\w+\\}?|(?<=\\s)--?[\\w-]+'],
    ],
  },
  py: {
    rules: [
      ['comment', '#.*'],
      ['string', STRINGS],
      ['keyword', words(PY)],
      ['number', NUMBER],
    ],
  },
  sql: {
    rules: [
      ['comment', '--.*'],
      ['string', "'(?:[^']|'')*'?"],
      ['keyword', words(SQL)],
      ['number', NUMBER],
    ],
    flags: 'i',
  },
  yaml: {
    rules: [
      ['comment', '(?:^|(?<=\\s))#.*'],
      ['key', '^\\s*-?\\s*[\\w.-]+(?=:)'],
      ['string', STRINGS],
      ['keyword', words('true false null')],
      ['number', NUMBER],
    ],
  },
  md: {
    rules: [
      ['heading', '^#{1,6} .*'],
      ['string', '`[^`]*`'],
      ['key', '^\\s*(?:[-*+]|\\d+\\.) '],
      ['keyword', '\\*\\*[^*]+\\*\\*'],
    ],
  },
  text: { rules: [] },
}

/** From a file's name: `agent.json` → json. */
export function languageOf(path: string): Language {
  const end = path.slice(path.lastIndexOf('.') + 1).toLowerCase()
  const known: Record<string, Language> = {
    ts: 'ts',
    tsx: 'ts',
    js: 'ts',
    mjs: 'ts',
    jsx: 'ts',
    json: 'json',
    sh: 'sh',
    bash: 'sh',
    py: 'py',
    sql: 'sql',
    yml: 'yaml',
    yaml: 'yaml',
    md: 'md',
    markdown: 'md',
  }
  return known[end] ?? 'text'
}

export function highlight(lines: readonly string[], language: Language): Token[][] {
  const { rules, flags } = RULES[language]
  if (rules.length === 0) return lines.map((text) => [{ text, kind: 'plain' }])
  const pattern = new RegExp(rules.map(([, source]) => `(${source})`).join('|'), `g${flags ?? ''}`)
  let inComment = false
  return lines.map((line) => {
    const tokens: Token[] = []
    let from = 0
    if (inComment) {
      const end = line.indexOf('*/')
      from = end < 0 ? line.length : end + 2
      inComment = end < 0
      if (from > 0) tokens.push({ text: line.slice(0, from), kind: 'comment' })
    }
    pattern.lastIndex = from
    for (let match = pattern.exec(line); match; match = pattern.exec(line)) {
      if (match[0] === '') {
        pattern.lastIndex++
        continue
      }
      if (match.index > from) tokens.push({ text: line.slice(from, match.index), kind: 'plain' })
      const kind = rules[match.slice(1).findIndex((group) => group !== undefined)]?.[0] ?? 'plain'
      tokens.push({ text: match[0], kind })
      if (language === 'ts' && match[0].startsWith('/*') && !match[0].endsWith('*/')) inComment = true
      from = match.index + match[0].length
    }
    if (from < line.length || tokens.length === 0) tokens.push({ text: line.slice(from), kind: 'plain' })
    return tokens
  })
}
