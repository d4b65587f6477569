/**
 * Reads a condition in a whitelisted part of SQL: columns, constants, params, comparison, logic, a few operators and
 * functions. No sub-queries, no functions beyond the list, no system columns.
 *
 *  1. `pieces` is what Postgres is given: the very tokens read, in their order, each re-quoted. Nothing else can get in.
 *  2. `tree` describes only the simple part; whatever it does not describe is `opaque`, and only Postgres evaluates it.
 *  3. The words that Postgres would read as "the present moment" are never handed over as a date or time.
 */
import type { Table } from '../catalog.ts'
import { quoteIdentifier, quoteLiteral } from '../identifiers.ts'
import { type Token, tokenise, WhereError } from './tokens.ts'

export type Node =
  | { readonly type: 'column'; readonly index: number }
  | { readonly type: 'constant'; readonly kind: 'string' | 'number'; readonly text: string }
  | { readonly type: 'literal'; readonly value: boolean | null }
  | { readonly type: 'param'; readonly number: number }
  | { readonly type: 'compare'; readonly operator: string; readonly left: Node; readonly right: Node }
  | { readonly type: 'and' | 'or'; readonly left: Node; readonly right: Node }
  | { readonly type: 'not'; readonly operand: Node }
  | { readonly type: 'in'; readonly operand: Node; readonly items: readonly Node[]; readonly negated: boolean }
  | { readonly type: 'isNull'; readonly operand: Node; readonly negated: boolean }
  | { readonly type: 'is'; readonly operand: Node; readonly value: boolean | null; readonly negated: boolean }
  | { readonly type: 'opaque' }

/** SQL text, or the number of a param. */
export type Piece = string | number

export interface ParsedWhere {
  readonly pieces: readonly Piece[]
  readonly tree: Node
  /** Indexes of the columns it mentions, ascending. */
  readonly columns: readonly number[]
  /** Numbers of the params it mentions, ascending. */
  readonly params: readonly number[]
}

const FUNCTIONS = new Set(
  `lower upper length char_length octet_length btrim ltrim rtrim substr substring replace strpos starts_with left right
   reverse md5 coalesce nullif greatest least abs ceil ceiling floor round trunc sign mod array_length cardinality
   array_position jsonb_typeof jsonb_array_length date_trunc date_part`.split(/\s+/),
)
const TYPES = new Set(
  `text varchar char bpchar int int2 int4 int8 integer smallint bigint numeric decimal real float4 float8 float bool
   boolean uuid date time timetz timestamp timestamptz interval json jsonb bytea`.split(/\s+/),
)
const TEMPORAL = new Set('date time timetz timestamp timestamptz interval'.split(' '))
const COMPARISONS = new Set(['=', '<>', '!=', '<', '<=', '>', '>='])
const KEYWORDS = new Set(
  `all and any array as asc between both case cast collate column constraint create current_date current_time current_user
   default delete desc distinct do drop else end except exists false fetch for from grant group having ilike in insert
   intersect into is isnull lateral like limit localtime localtimestamp not notnull null offset on or order returning
   row select session_user similar some symmetric table then to true union unique update user using values when where
   window with current_timestamp current_role current_schema current_catalog`.split(/\s+/),
)
/** What date and time input takes for the present moment or day. */
export const MOVING_TIME = /(^|[^a-z])(now|today|tomorrow|yesterday)([^a-z]|$)/i

const OPAQUE: Node = { type: 'opaque' }
const MAX_DEPTH = 200

export const parseWhere = (text: string, table: Table): ParsedWhere => {
  const tokens = tokenise(text)
  const columnIndex = new Map(table.columns.map((column, index) => [column.name, index]))
  const pieces: Piece[] = []
  const columns = new Set<number>()
  const params = new Set<number>()
  let position = 0
  let depth = 0

  const peek = (ahead = 0): Token => tokens[Math.min(position + ahead, tokens.length - 1)] as Token
  const fail = (token = peek()): never => {
    throw new WhereError(
      token.kind === 'end'
        ? 'the condition ends too early'
        : `At location ${token.at}: unexpected ${JSON.stringify(token.text)}`,
    )
  }
  const isWord = (text: string, ahead = 0): boolean => {
    const token = peek(ahead)
    return token.kind === 'word' && !token.quoted && token.text === text
  }
  const isOperator = (text: string, ahead = 0): boolean => {
    const token = peek(ahead)
    return token.kind === 'operator' && token.text === text
  }
  const take = (): Token => tokens[position++] as Token
  const emit = (sql: Piece) => void pieces.push(sql)
  const takeWord = (text: string): boolean => {
    if (!isWord(text)) return false
    take()
    emit(text.toUpperCase())
    return true
  }
  const takeOperator = (text: string): boolean => {
    if (!isOperator(text)) return false
    take()
    emit(text)
    return true
  }
  const need = (taken: boolean): void => void (taken || fail())

  const nested = (read: () => Node): Node => {
    if (++depth > MAX_DEPTH) throw new WhereError('the condition is nested too deeply')
    const node = read()
    depth--
    return node
  }

  const or = (): Node => {
    let left = and()
    while (takeWord('or')) left = { type: 'or', left, right: and() }
    return left
  }
  const and = (): Node => {
    let left = not()
    while (takeWord('and')) left = { type: 'and', left, right: not() }
    return left
  }
  const not = (): Node => nested(() => (takeWord('not') ? { type: 'not', operand: not() } : is()))

  const is = (): Node => {
    let operand = comparison()
    while (isWord('is') || isWord('isnull') || isWord('notnull')) {
      if (takeWord('isnull')) operand = { type: 'isNull', operand, negated: false }
      else if (takeWord('notnull')) operand = { type: 'isNull', operand, negated: true }
      else operand = isTest(operand)
    }
    return operand
  }
  const isTest = (operand: Node): Node => {
    takeWord('is')
    const negated = takeWord('not')
    if (takeWord('null')) return { type: 'isNull', operand, negated }
    if (takeWord('true')) return { type: 'is', operand, value: true, negated }
    if (takeWord('false')) return { type: 'is', operand, value: false, negated }
    if (takeWord('unknown')) return { type: 'is', operand, value: null, negated }
    need(takeWord('distinct'))
    need(takeWord('from'))
    comparison()
    return OPAQUE
  }

  const comparison = (): Node => {
    const left = matching()
    const token = peek()
    if (token.kind !== 'operator' || !COMPARISONS.has(token.text)) return left
    takeOperator(token.text)
    if (isWord('any') || isWord('all') || isWord('some')) {
      emit(take().text.toUpperCase())
      need(takeOperator('('))
      or()
      need(takeOperator(')'))
      return OPAQUE
    }
    return { type: 'compare', operator: token.text === '!=' ? '<>' : token.text, left, right: matching() }
  }

  const matching = (): Node => {
    const operand = operators()
    const ahead = isWord('not') ? 1 : 0
    if (!['in', 'between', 'like', 'ilike'].some((word) => isWord(word, ahead))) return operand
    const negated = takeWord('not')
    if (takeWord('in')) {
      need(takeOperator('('))
      const items = list(')')
      if (items.length === 0) fail()
      return { type: 'in', operand, items, negated }
    }
    if (takeWord('between')) {
      takeWord('symmetric')
      operators()
      need(takeWord('and'))
      operators()
      return OPAQUE
    }
    if (!takeWord('like')) need(takeWord('ilike'))
    operators()
    return OPAQUE
  }

  /** Every operator that binds tighter than a comparison; which of them binds tightest only matters to Postgres. */
  const operators = (): Node => {
    let node = unary()
    for (;;) {
      const token = peek()
      if (token.kind !== 'operator' || COMPARISONS.has(token.text) || '(),[].::'.includes(token.text)) return node
      takeOperator(token.text)
      unary()
      node = OPAQUE
    }
  }

  const unary = (): Node => {
    const sign = peek()
    if (sign.kind === 'operator' && (sign.text === '-' || sign.text === '+' || sign.text === '~')) {
      takeOperator(sign.text)
      const operand = nested(unary)
      const isNumber = operand.type === 'constant' && operand.kind === 'number' && sign.text === '-'
      return isNumber && /^\d/.test(operand.text) ? { ...operand, text: `-${operand.text}` } : OPAQUE
    }
    return postfix(nested(primary))
  }

  const postfix = (start: Node): Node => {
    let node = start
    for (;;) {
      if (takeOperator('[')) {
        operators()
        need(takeOperator(']'))
        node = OPAQUE
      } else if (takeOperator('::')) {
        castTo(typeName(), node)
        node = OPAQUE
      } else return node
    }
  }

  const primary = (): Node => {
    const token = peek()
    if (token.kind === 'number') {
      emit(take().text)
      return { type: 'constant', kind: 'number', text: token.text }
    }
    if (token.kind === 'string') return string(take().text)
    if (token.kind === 'param') {
      take()
      if (token.number < 1) fail(token)
      params.add(token.number)
      emit(token.number)
      return { type: 'param', number: token.number }
    }
    if (takeOperator('(')) {
      const node = or()
      need(takeOperator(')'))
      return node
    }
    if (token.kind !== 'word') return fail(token)
    if (token.quoted) return column()
    if (takeWord('true')) return { type: 'literal', value: true }
    if (takeWord('false')) return { type: 'literal', value: false }
    if (takeWord('null')) return { type: 'literal', value: null }
    if (takeWord('array')) {
      need(takeOperator('['))
      list(']')
      return OPAQUE
    }
    if (takeWord('cast')) {
      need(takeOperator('('))
      const operand = or()
      need(takeWord('as'))
      castTo(typeName(), operand)
      need(takeOperator(')'))
      return OPAQUE
    }
    if (takeWord('case')) return caseOf()
    if (peek(1).kind === 'string' && TYPES.has(token.text)) {
      const type = typeName()
      const value = peek()
      if (value.kind !== 'string') return fail(value)
      castTo(type, string(take().text))
      return OPAQUE
    }
    if (isOperator('(', 1)) return call()
    if (KEYWORDS.has(token.text)) return fail(token)
    return column()
  }

  const string = (text: string): Node => {
    // As text it can be compared with text; where a date would be needed Postgres then refuses the condition.
    emit(MOVING_TIME.test(text) ? `CAST(${quoteLiteral(text)} AS text)` : quoteLiteral(text))
    return { type: 'constant', kind: 'string', text }
  }

  /** A column, also as `table.column` or `schema.table.column`. */
  const column = (): Node => {
    const first = peek()
    const path = [take().text]
    while (isOperator('.') && peek(1).kind === 'word') {
      take()
      path.push(take().text)
    }
    const name = path.at(-1) as string
    const qualifier = path.slice(0, -1)
    const index = columnIndex.get(name)
    const expected = [table.schema, table.name].slice(2 - qualifier.length)
    if (index === undefined || qualifier.length > 2 || qualifier.join('\0') !== expected.join('\0')) {
      throw new WhereError(`At location ${first.at}: unknown reference ${path.join('.')}`)
    }
    columns.add(index)
    emit(quoteIdentifier(name))
    return { type: 'column', index }
  }

  const call = (): Node => {
    const name = take()
    if (!FUNCTIONS.has(name.text))
      throw new WhereError(`At location ${name.at}: unknown or unsupported function ${name.text}`)
    emit(name.text)
    need(takeOperator('('))
    list(')')
    return OPAQUE
  }

  const list = (close: string): Node[] => {
    const items: Node[] = []
    if (takeOperator(close)) return items
    do items.push(or())
    while (takeOperator(','))
    need(takeOperator(close))
    return items
  }

  const caseOf = (): Node => {
    if (!isWord('when')) or()
    while (takeWord('when')) {
      or()
      need(takeWord('then'))
      or()
    }
    if (takeWord('else')) or()
    need(takeWord('end'))
    return OPAQUE
  }

  const typeName = (): string => {
    const token = take()
    if (token.kind !== 'word') return fail(token)
    const isBuiltIn = !token.quoted && TYPES.has(token.text)
    if (!token.quoted && token.text === 'double') {
      if (!isWord('precision')) return fail()
      take()
      emit('double precision')
    } else if (isBuiltIn) emit(token.text)
    else {
      if (token.text.startsWith('reg') || KEYWORDS.has(token.text)) fail(token)
      const path = [token.text]
      while (isOperator('.') && peek(1).kind === 'word') {
        take()
        path.push(take().text)
      }
      emit(path.map(quoteIdentifier).join('.'))
    }
    if (isBuiltIn && takeOperator('(')) list(')')
    if (takeWord('with') || takeWord('without')) {
      need(takeWord('time'))
      need(takeWord('zone'))
    }
    while (takeOperator('[')) need(takeOperator(']'))
    return token.text
  }

  const castTo = (type: string, operand: Node): void => {
    if (!TEMPORAL.has(type)) return
    const isMoving = operand.type === 'constant' && MOVING_TIME.test(operand.text)
    const isTemporal = operand.type === 'column' && TEMPORAL.has(table.columns[operand.index]?.typeName ?? '')
    const isFixed = operand.type === 'constant' || operand.type === 'param' || isTemporal
    if (isMoving || !isFixed)
      throw new WhereError(`a cast to ${type} needs a constant or a column of a date or time type`)
  }

  const tree = or()
  if (peek().kind !== 'end') fail()
  const ascending = (numbers: Set<number>): number[] => [...numbers].sort((a, b) => a - b)
  return { pieces, tree, columns: ascending(columns), params: ascending(params) }
}

/** The condition as SQL, each param as `param` writes it. */
export const whereSql = ({ pieces }: ParsedWhere, param: (number: number) => string): string =>
  pieces.map((piece) => (typeof piece === 'string' ? piece : param(piece))).join(' ')
