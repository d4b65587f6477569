import { describe, expect, test } from 'vitest'
import type { Column, ExactKind, Table } from '../catalog.ts'
import { compileWhere, type Row } from './compile.ts'
import { parseWhere, whereSql } from './parse.ts'

const column = (name: string, exact: ExactKind, typeName: string = exact): Column => ({
  name,
  typeOid: typeName.length,
  typmod: -1,
  typeName,
  typeSql: typeName,
  dims: 0,
  notNull: false,
  collateSql: '',
  exact,
})
const TABLE: Table = {
  oid: 1,
  schema: 'public',
  name: 'item',
  isPartitioned: false,
  hasFullIdentity: true,
  primaryKey: [0],
  columns: [
    column('id', 'int', 'int4'),
    column('name', 'text'),
    column('done', 'bool'),
    column('ref', 'uuid'),
    column('price', 'other', 'numeric'),
    column('at', 'other', 'timestamptz'),
    column('Odd "name"', 'text'),
  ],
}
const UUID = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
const row = (values: Partial<Record<string, string | null>>): Row =>
  TABLE.columns.map(({ name }) => values[name] ?? null)

const sql = (text: string): string => whereSql(parseWhere(text, TABLE), (number) => `$${number}`)
const compiled = (text: string, params: string[] = []) => compileWhere(parseWhere(text, TABLE).tree, TABLE, params)
const decides = (text: string, values: Partial<Record<string, string | null>>, params: string[] = []) => {
  const { predicate } = compiled(text, params)
  if (!predicate) throw new Error(`not compiled: ${text}`)
  return predicate(row(values))
}

describe('the language', () => {
  test('what Postgres is given is what was read, re-quoted (parse, invariant 1)', () => {
    expect(sql(`ITEM.Name='it''s' AND"Odd ""name"""<>$1 or not done`)).toBe(
      `"name" = 'it''s' AND "Odd ""name""" <> $1 OR NOT "done"`,
    )
    expect(sql(`public.item.id in (1,-2) and price between 1.5 and 2e3`)).toBe(
      `"id" IN ( 1 , - 2 ) AND "price" BETWEEN 1.5 AND 2e3`,
    )
    expect(sql(`name = '\\'`)).toBe(`"name" = E'\\\\'`)
    expect(sql(`at > timestamptz '2024-01-01' and name::varchar(3) like 'a%'`)).toBe(
      `"at" > timestamptz '2024-01-01' AND "name" :: varchar ( 3 ) LIKE 'a%'`,
    )
  })

  test.each([
    'id =',
    'id = 1; drop table item',
    'select 1',
    '(select 1) = id',
    'id in (select 1)',
    'exists (select 1)',
    `name = 'open`,
    '(id = 1',
    'id = 1)',
    'id = 1 -- comment',
    'id = 1 /* comment */',
    'name = $$x$$',
    `name = E'\\n'`,
    'random() > 0.5',
    'now() is not null',
    'current_timestamp > at',
    'pg_sleep(1) is null',
    'pg_catalog.pg_sleep(1) is null',
    `lo_export(1, 'x') = 1`,
    'nothing = 1',
    'other.id = 1',
    'ctid is null',
    `at > 'now'::timestamptz`,
    `at > timestamptz 'today'`,
    `at > cast('tomorrow' as timestamptz)`,
    `name::timestamptz > at`,
    `('no' || 'w')::timestamptz > at`,
    `'item'::regclass is null`,
    'id = $0',
    'id operator(pg_catalog.=) 1',
    '1_000 = id',
    `name = 'a\0b'`,
    `${'('.repeat(500)}id = 1${')'.repeat(500)}`,
  ])('refuses %s', (text) => {
    expect(() => parseWhere(text, TABLE)).toThrow()
  })

  test('a word for the present moment can only be text (parse, invariant 3)', () => {
    expect(sql(`name = 'Today'`)).toBe(`"name" = CAST('Today' AS text)`)
    expect(sql(`name = 'nowhere'`)).toBe(`"name" = 'nowhere'`)
  })
})

describe('the compiled part', () => {
  test('decides as three-valued logic does (compile, invariant 2)', () => {
    expect(decides('id = 7', { id: '7' })).toBe(true)
    expect(decides('7 < id', { id: '10' })).toBe(true)
    expect(decides('id <> 7', { id: null })).toBe(null)
    expect(decides('not (id = null)', { id: '1' })).toBe(null)
    expect(decides('done or id > 100', { id: '1' })).toBe(null)
    expect(decides('done or id > 100', { id: '101' })).toBe(true)
    expect(decides('done and id > 100', { id: '1' })).toBe(false)
    expect(decides('done is not true', {})).toBe(true)
    expect(decides('done is unknown', {})).toBe(true)
    expect(decides('id not in (1, null)', { id: '2' })).toBe(null)
    expect(decides('id in (1, null)', { id: '1' })).toBe(true)
    expect(decides('id = id', {})).toBe(null)
    expect(decides(`ref = '${UUID.toUpperCase()}'`, { ref: UUID })).toBe(true)
    expect(decides('ref = $1', { ref: UUID }, [UUID.toUpperCase()])).toBe(true)
    expect(decides('done = $1', { done: 'f' }, ['false'])).toBe(true)
    expect(decides(`name = ''`, { name: '' })).toBe(true)
  })

  test.each([
    `name > 'b'`,
    `name like 'a%'`,
    'price = 10',
    'price is null and id = 1.0',
    'id = 7.0',
    `id = ' 7 '`,
    `done = 'yes'`,
    `ref = '{${UUID}}'`,
    `at = '2024-01-01'`,
    'id + 1 = 2',
    'lower(name) = $1',
    'id between 1 and 2',
  ])('leaves %s to Postgres (compile, invariant 1)', (text) => {
    expect(compiled(text, ['x']).predicate).toBeUndefined()
  })

  test('equalities choose candidates, also beside what only Postgres decides (compile, invariant 3)', () => {
    expect(
      compiled(`ref = $1 and name = 'a' and price > 1 and (id = 1 or id = 2)`, [UUID.toUpperCase()]).equalities,
    ).toEqual([
      { column: 3, value: UUID },
      { column: 1, value: 'a' },
    ])
    expect(compiled(`id = 007 or name = 'a'`).equalities).toEqual([])
    expect(compiled('id = 007').equalities).toEqual([{ column: 0, value: '7' }])
    expect(compiled('not (id = 7)').equalities).toEqual([])
  })
})
