/**
 * Turns the simple part of conditions into JavaScript, where that is certain to decide as Postgres does; leaves the rest.
 *
 *  1. Only `=` and `<>` on text, uuid, boolean and enum, all comparisons on integers, `IN`, `IS NULL`, `IS TRUE/FALSE` and
 *     logic are compiled, and only between a column and a constant in canonical form or two columns of one type.
 *  2. Logic is three-valued: a predicate gives `true`, `false` or `null`.
 *  3. `equalities` hold for every row that fulfils the condition, compiled or not: they may choose candidates.
 */
import type { Column, Table } from '../catalog.ts'
import type { Node } from './parse.ts'

/** Values as Postgres prints them, in table order. */
export type Row = readonly (string | null)[]
export type Truth = boolean | null
export type Predicate = (row: Row) => Truth

export interface Equality {
  readonly column: number
  /** As Postgres prints it. */
  readonly value: string
}

export interface CompiledWhere {
  /** `undefined`: only Postgres can tell. */
  readonly predicate: Predicate | undefined
  readonly equalities: readonly Equality[]
}

export const compileWhere = (tree: Node, table: Table, params: readonly string[]): CompiledWhere => ({
  predicate: compile(tree, table, params),
  equalities: equalitiesOf(tree, table, params),
})

const columnOf = (node: Node, table: Table): Column | undefined =>
  node.type === 'column' ? table.columns[node.index] : undefined

/** The text that Postgres prints for a constant of the column's type; `undefined` when that is not plain to see. */
const canonical = (node: Node, { exact }: Column, params: readonly string[]): string | null | undefined => {
  if (node.type === 'literal')
    return node.value === null ? null : exact === 'bool' ? (node.value ? 't' : 'f') : undefined
  const isNumber = node.type === 'constant' && node.kind === 'number'
  const text = node.type === 'constant' ? node.text : node.type === 'param' ? params[node.number - 1] : undefined
  if (text === undefined) return undefined
  switch (exact) {
    case 'text':
    case 'enum':
      return isNumber ? undefined : text
    case 'uuid':
      return !isNumber && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ? text.toLowerCase() : undefined
    case 'bool':
      if (isNumber) return undefined
      return text === 'true' || text === 't' ? 't' : text === 'false' || text === 'f' ? 'f' : undefined
    case 'int':
      return /^-?\d{1,18}$/.test(text) ? BigInt(text).toString() : undefined
    case 'other':
      return undefined
  }
}

const FLIPPED: Readonly<Record<string, string>> = { '=': '=', '<>': '<>', '<': '>', '>': '<', '<=': '>=', '>=': '<=' }

const compile = (node: Node, table: Table, params: readonly string[]): Predicate | undefined => {
  const sub = (child: Node) => compile(child, table, params)
  switch (node.type) {
    case 'literal': {
      const { value } = node
      return () => value
    }
    case 'column': {
      const { index } = node
      return table.columns[index]?.exact === 'bool' ? (row) => truthOf(row[index]) : undefined
    }
    case 'and': {
      const [left, right] = [sub(node.left), sub(node.right)]
      return left && right ? (row) => and(left(row), right, row) : undefined
    }
    case 'or': {
      const [left, right] = [sub(node.left), sub(node.right)]
      return left && right ? (row) => or(left(row), right, row) : undefined
    }
    case 'not': {
      const operand = sub(node.operand)
      return operand && ((row) => negate(operand(row)))
    }
    case 'isNull': {
      const { operand, negated } = node
      if (operand.type !== 'column') return undefined
      // A composite value is null when all its fields are: only plain types are decided here.
      if (table.columns[operand.index]?.exact === 'other') return undefined
      return (row) => ((row[operand.index] ?? null) === null) !== negated
    }
    case 'is': {
      const operand = sub(node.operand)
      const { value, negated } = node
      return operand && ((row) => (operand(row) === value) !== negated)
    }
    case 'in':
      return compileIn(node, table, params)
    case 'compare':
      return compileComparison(node.operator, node.left, node.right, table, params)
    default:
      return undefined
  }
}

const truthOf = (text: string | null | undefined): Truth => (text === null || text === undefined ? null : text === 't')
const negate = (truth: Truth): Truth => (truth === null ? null : !truth)
const and = (left: Truth, right: Predicate, row: Row): Truth => {
  if (left === false) return false
  const second = right(row)
  return second === false ? false : left === null || second === null ? null : true
}
const or = (left: Truth, right: Predicate, row: Row): Truth => {
  if (left === true) return true
  const second = right(row)
  return second === true ? true : left === null || second === null ? null : false
}

const compileIn = (
  node: Extract<Node, { type: 'in' }>,
  table: Table,
  params: readonly string[],
): Predicate | undefined => {
  const { operand, negated } = node
  const column = columnOf(operand, table)
  if (operand.type !== 'column' || !column || column.exact === 'other') return undefined
  const values = new Set<string>()
  let hasNull = false
  for (const item of node.items) {
    const value = canonical(item, column, params)
    if (value === undefined) return undefined
    if (value === null) hasNull = true
    else values.add(value)
  }
  const { index } = operand
  return (row) => {
    const value = row[index] ?? null
    if (value === null) return null
    if (values.has(value)) return !negated
    return hasNull ? null : negated
  }
}

const compileComparison = (
  operator: string,
  left: Node,
  right: Node,
  table: Table,
  params: readonly string[],
): Predicate | undefined => {
  if (left.type !== 'column') {
    return right.type === 'column'
      ? compileComparison(FLIPPED[operator] as string, right, left, table, params)
      : undefined
  }
  const column = columnOf(left, table)
  if (!column || column.exact === 'other') return undefined
  const isEquality = operator === '=' || operator === '<>'
  const { index } = left
  if (right.type === 'column') {
    const other = columnOf(right, table)
    // Text columns might differ in collation, which Postgres would refuse or resolve; the same column can't.
    if (!isEquality || !other || other.typeOid !== column.typeOid || other.collateSql !== column.collateSql)
      return undefined
    const otherIndex = right.index
    const wanted = operator === '='
    return (row) => {
      const [a, b] = [row[index] ?? null, row[otherIndex] ?? null]
      return a === null || b === null ? null : (a === b) === wanted
    }
  }
  const value = canonical(right, column, params)
  if (value === undefined) return undefined
  if (value === null) return () => null
  if (isEquality) {
    const wanted = operator === '='
    return (row) => {
      const text = row[index] ?? null
      return text === null ? null : (text === value) === wanted
    }
  }
  if (column.exact !== 'int') return undefined
  const bound = BigInt(value)
  const holds = ORDER[operator]
  return (
    holds &&
    ((row) => {
      const text = row[index] ?? null
      return text === null ? null : holds(BigInt(text), bound)
    })
  )
}

const ORDER: Readonly<Record<string, (a: bigint, b: bigint) => boolean>> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
}

const equalitiesOf = (node: Node, table: Table, params: readonly string[]): Equality[] => {
  if (node.type === 'and')
    return [...equalitiesOf(node.left, table, params), ...equalitiesOf(node.right, table, params)]
  if (node.type !== 'compare' || node.operator !== '=') return []
  const [operand, constant] = node.left.type === 'column' ? [node.left, node.right] : [node.right, node.left]
  const column = columnOf(operand, table)
  if (operand.type !== 'column' || !column) return []
  const value = canonical(constant, column, params)
  return typeof value === 'string' ? [{ column: operand.index, value }] : []
}
