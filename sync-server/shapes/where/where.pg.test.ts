/** Random conditions on random rows: what is compiled, and what goes back to Postgres, must both decide as SELECT does. */
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeTable, type Table } from '../catalog.ts'
import { type Database, openDatabase } from '../database.ts'
import { type Definition, resolveDefinition } from '../definition.ts'
import { evaluateConditions } from '../evaluate.ts'
import { silentLogger } from '../protocol.ts'
import type { Shape } from '../shapes.ts'
import { startTestPostgres, type TestPostgres } from '../testing/postgres.ts'
import type { Row } from './compile.ts'

let postgres: TestPostgres
let database: Database
let table: Table
let rows: Row[]

const UUIDS = [1, 2, 3].map((n) => `a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1${n}`)
const TEXTS = ['', 'a', 'A', 'ab', `it's`, 'ä', 'a%', '\\', 'now', ' ']

/** Of each column after the first. */
const VALUES: readonly (readonly (string | null)[])[] = [
  ['-1', '0', '1', null],
  ['-2', '0', '1', '7', null],
  ['9007199254740993', '-9223372036854775808', '7', null],
  [...TEXTS, null],
  ['', 'a', 'ab  ', null],
  ['a', 'ab', 'abc', null],
  ['t', 'f', null],
  [...UUIDS, null],
  ['sad', 'ok', "it's", null],
  ['-1.5', '0', '1', 'NaN', null],
  ['NaN', '-0', '1e300', '2', null],
  ['2024-01-01 12:00+02', 'infinity', null],
  ['{}', '{a,NULL}', null],
]

beforeAll(async () => {
  postgres = await startTestPostgres()
  const client = new pg.Client({ connectionString: postgres.url })
  await client.connect()
  await client.query(`create type mood as enum ('sad', 'ok', 'it''s')`)
  await client.query(`create table item (id int primary key, small int2, n int4, big int8, name text, code varchar(4), pad char(3),
    done bool, ref uuid, feel mood, price numeric(8,2), ratio float8, due timestamptz, tags text[])`)
  for (let id = 1; id <= 200; id++) {
    // Strides without a common factor, so that values meet in many combinations.
    const values = VALUES.map((choices, index) => choices[(id * (2 * index + 1) + index) % choices.length])
    const list = values.map((_, index) => `$${index + 2}`).join(', ')
    await client.query(`insert into item values ($1, ${list})`, [id, ...values])
  }
  await client.end()
  database = openDatabase({ connectionString: postgres.url }, 2, silentLogger)
  table = (await describeTable(database, await database.serverVersion(), { schema: 'public', name: 'item' })) as Table
  const result = await database.query('select * from item order by id')
  rows = result.rows
})
afterAll(async () => {
  await database?.close()
  await postgres?.stop()
})

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`
const oneOf = (...values: readonly string[]) => fc.constantFrom(...values)
const COMPARE = oneOf('=', '<>', '!=', '<', '<=', '>', '>=')
const EQUAL = oneOf('=', '<>')
const text = fc.constantFrom(...TEXTS).map(quoted)
const int = oneOf(
  '-2',
  '-1',
  '0',
  '1',
  '7',
  '007',
  '7.0',
  `'7'`,
  `' 7 '`,
  '9007199254740993',
  '9007199254740992',
  '-9223372036854775808',
  '1e0',
  'null',
)
const uuid = oneOf(...UUIDS.map(quoted), ...UUIDS.map((id) => quoted(id.toUpperCase())), quoted(`{${UUIDS[0]}}`))
const spaced = (...parts: fc.Arbitrary<string>[]) => fc.tuple(...parts).map((words) => words.join(' '))

const leaf = fc.oneof(
  spaced(oneOf('small', 'n', 'big'), COMPARE, int),
  spaced(int, COMPARE, oneOf('n', 'big')),
  spaced(oneOf('n', 'big', 'name', 'done', 'feel', 'code'), oneOf('is null', 'is not null')),
  spaced(oneOf('name', 'code', 'pad'), COMPARE, text),
  spaced(oneOf('name'), oneOf('like', 'ilike', 'not like'), oneOf(`'a%'`, `'_'`, `'%\\%'`)),
  spaced(oneOf('name', 'code'), oneOf('in', 'not in'), spaced(oneOf('('), text, oneOf(','), text, oneOf(')'))),
  spaced(oneOf('n', 'big'), oneOf('in', 'not in'), spaced(oneOf('('), int, oneOf(','), int, oneOf(')'))),
  spaced(oneOf('ref'), EQUAL, uuid),
  spaced(oneOf('feel'), EQUAL, oneOf(`'sad'`, `'it''s'`)),
  oneOf(
    'done',
    'not done',
    'done is true',
    'done is not true',
    'done is unknown',
    `done = 't'`,
    'done = false',
    `done <> 'yes'`,
    'done in (true, null)',
  ),
  oneOf(
    'n = n',
    'name = name',
    'n = big',
    'small < n',
    'name = code',
    'n between 0 and 5',
    'n + 1 = 2',
    `coalesce(name, 'a') = 'a'`,
  ),
  oneOf(
    'price = 1',
    `price > 'NaN'`,
    'ratio = 2',
    'ratio <> 0',
    `due < '2024-01-01 10:00:01Z'`,
    `tags @> '{a}'`,
    `'a' = any (tags)`,
    'null',
    'true',
    'n = null',
  ),
)
const { condition } = fc.letrec<{ condition: string }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'condition' },
    { weight: 3, arbitrary: leaf },
    fc.tuple(tie('condition'), oneOf('and', 'or'), tie('condition')).map(([a, operator, b]) => `${a} ${operator} ${b}`),
    tie('condition').map((inner) => `not (${inner})`),
    tie('condition').map((inner) => `(${inner})`),
    fc
      .tuple(tie('condition'), oneOf('is true', 'is not false', 'is unknown'))
      .map(([inner, test]) => `(${inner}) ${test}`),
  ),
}))

test('a condition decides on changes as SELECT does', async () => {
  expect(rows.length).toBe(200)
  let compiledCount = 0
  await fc.assert(
    fc.asyncProperty(condition, async (where) => {
      const expected = await database.query(`select (${where})::text from item order by id`).catch(() => undefined)
      const definition: Definition | undefined = await resolveDefinition(database, { table: 'item', where }, 'full', {
        table: () => undefined,
        intern: (found) => found,
        paramTypes: new WeakMap(),
      }).catch(() => undefined)
      // What Postgres refuses is refused, and nothing else of this grammar is.
      expect(definition !== undefined).toBe(expected !== undefined)
      if (!definition?.where || !expected) return
      const truths = expected.rows.map(([truth]) => (truth === 'true' ? true : truth === 'false' ? false : null))
      const { predicate, equalities } = definition.where
      if (predicate) {
        compiledCount++
        expect(rows.map(predicate)).toEqual(truths)
      }
      for (const { column, value } of equalities) {
        for (const [index, row] of rows.entries()) if (truths[index]) expect(row[column]).toBe(value)
      }
      const shape = { definition } as Shape
      expect((await evaluateConditions(database, [shape], rows)).get(shape)).toEqual(truths)
    }),
    { numRuns: 400 },
  )
  expect(compiledCount).toBeGreaterThan(50)
  expect(table.columns).toHaveLength(14)
})
