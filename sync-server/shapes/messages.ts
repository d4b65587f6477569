/**
 * The JSON of log messages and snapshot rows.
 *
 *  1. A key is the quoted table, then each primary key value in quotes, `/` doubled, null as `_`; without a primary key all
 *     columns in table order.
 *  2. An update that changes no column of the shape is no message; one that changes the key is a delete and an insert.
 *  3. An encoder depends on table, columns and replica mode only: shapes that agree in these share what it made.
 */
import type { Table } from './catalog.ts'
import { quoteTable } from './identifiers.ts'
import type { Change } from './pgoutput.ts'
import type { Row, Truth } from './where/compile.ts'

/** A message but for its end, which says whether it is the transaction's last in the shape. */
export interface Message {
  readonly op: number
  readonly head: string
}

export const LAST = ',"last":true}}'
export const NOT_LAST = '}}'

export interface Encoder {
  /** The key, value and headers of a snapshot row. */
  snapshotRow(row: Row): string
  /** Messages for a change, given whether the condition held before and holds after. */
  encode(change: Change, context: TransactionContext, before: Truth, after: Truth): readonly Message[]
}

export interface TransactionContext {
  readonly xid: number
  readonly commitLsn: number
}

const NONE: readonly Message[] = []

export const createEncoder = (table: Table, columns: readonly number[], replica: 'default' | 'full'): Encoder => {
  const names = table.columns.map(({ name }) => JSON.stringify(name))
  const keyColumns = table.primaryKey.length > 0 ? table.primaryKey : table.columns.map((_, index) => index)
  const keyPrefix = quoteTable(table)
  const removed =
    replica === 'full' || table.primaryKey.length === 0
      ? columns
      : columns.filter((index) => keyColumns.includes(index))
  const isKey = table.columns.map((_, index) => table.primaryKey.includes(index))
  const relation = `"relation":[${JSON.stringify(table.schema)},${JSON.stringify(table.name)}]`
  const snapshotEnd = `,"headers":{"operation":"insert",${relation}}}`
  const booleans = new Set(
    columns.filter((index) => table.columns[index]?.typeName === 'bool' && table.columns[index]?.dims === 0),
  )

  const keyOf = (row: Row): string => {
    let key = keyPrefix
    for (const index of keyColumns) {
      const value = row[index] ?? null
      key += value === null ? '/_' : `/"${value.includes('/') ? value.replaceAll('/', '//') : value}"`
    }
    return JSON.stringify(key)
  }

  const object = (row: Row, chosen: readonly number[]): string => {
    let json = '{'
    for (const index of chosen) {
      const value = row[index] ?? null
      json += `${json.length > 1 ? ',' : ''}${names[index]}:${value === null ? 'null' : JSON.stringify(value)}`
    }
    return `${json}}`
  }

  const message = (
    operation: string,
    op: number,
    key: string,
    value: string,
    context: TransactionContext,
    extra = '',
    old = '',
  ): Message => ({
    op,
    head: `{"key":${key},"value":${value}${old},"headers":{"operation":"${operation}",${relation},"txids":[${context.xid}],"lsn":"${context.commitLsn}","op_position":${op}${extra}`,
  })

  const inserted = (row: Row, op: number, context: TransactionContext, extra = ''): Message =>
    message('insert', op, keyOf(row), object(row, columns), context, extra)
  const deleted = (row: Row, op: number, context: TransactionContext, extra = ''): Message =>
    message('delete', op, keyOf(row), object(row, removed), context, extra)

  const updated = (old: Row, row: Row, op: number, context: TransactionContext): readonly Message[] => {
    const changed = columns.filter((index) => old[index] !== row[index])
    const [from, to] = [keyOf(old), keyOf(row)]
    if (from !== to) {
      return [
        deleted(old, op, context, `,"key_change_to":${to}`),
        inserted(row, op + 1, context, `,"key_change_from":${from}`),
      ]
    }
    if (changed.length === 0) return NONE
    if (replica === 'full') {
      return [message('update', op, to, object(row, columns), context, '', `,"old_value":${object(old, changed)}`)]
    }
    const sent = columns.filter((index) => isKey[index] || old[index] !== row[index])
    return [message('update', op, to, object(row, sent), context)]
  }

  // What a change became, by whether the row was and is in the shape. One change at a time, in stream order.
  let cachedFor: Change | undefined
  let cached = new Map<string, readonly Message[]>()

  return {
    snapshotRow(row) {
      const value =
        booleans.size === 0 ? row : row.map((text, index) => (booleans.has(index) ? spellBoolean(text) : text))
      return `{"key":${keyOf(row)},"value":${object(value, columns)}${snapshotEnd}`
    },
    encode(change, context, before, after) {
      const kind = `${before === true ? 'in' : 'out'}-${after === true ? 'in' : 'out'}`
      if (cachedFor !== change) {
        cachedFor = change
        cached = new Map()
      }
      let messages = cached.get(kind)
      if (!messages) {
        const { old, new: row, op } = change
        if (kind === 'in-in') messages = old && row ? updated(old, row, op, context) : NONE
        else if (kind === 'out-in') messages = row ? [inserted(row, op, context)] : NONE
        else if (kind === 'in-out') messages = old ? [deleted(old, op, context)] : NONE
        else messages = NONE
        cached.set(kind, messages)
      }
      return messages
    },
  }
}

/** A snapshot spells booleans as a cast to text does. */
const spellBoolean = (text: string | null | undefined): string | null =>
  text === 't' ? 'true' : text === 'f' ? 'false' : (text ?? null)
