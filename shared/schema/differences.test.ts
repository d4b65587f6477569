import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addDifference, hasDifference, insertOver, parseTextArray } from './differences.ts'

const elements = fc.uniqueArray(fc.constantFrom<string | null>('a', 'b', 'c', 'd', 'e', null), { maxLength: 5 })
const asSet = (value: unknown): unknown[] => [...(value as unknown[])].sort()

test('D1: a sum keeps every digit', () => {
  expect(addDifference('increment', '9007199254740993', '1', '3')).toBe('9007199254740995')
  expect(addDifference('increment', '0.1', '0', '0.2')).toBe('0.3')
  expect(addDifference('increment', '1.50', '1', '-2')).toBe('-1.50')
  expect(addDifference('increment', '-0.05', '0', '0.01')).toBe('-0.04')
  expect(addDifference('increment', null, 2, 5)).toBe('3')
})

test('D2: what was added is added, what was removed is removed, and order is kept', () => {
  expect(addDifference('add_remove', ['a', 'b', 'c'], ['a', 'b'], ['b', 'x'])).toEqual(['b', 'c', 'x'])
  fc.assert(
    fc.property(elements, elements, elements, (present, base, next) => {
      const result = addDifference('add_remove', present, base, next) as (string | null)[]
      for (const element of ['a', 'b', 'c', 'd', 'e', null]) {
        const [is, was, wanted] = [present, base, next].map((list) => list.includes(element))
        expect(result.includes(element)).toBe(was === wanted ? is : wanted)
      }
    }),
  )
})

test('D3: a base equal to the present value gives the new value itself', () => {
  fc.assert(
    fc.property(elements, elements, (base, next) => {
      expect(addDifference('add_remove', base, base, next)).toEqual(next)
    }),
  )
})

test('D4: a set changed twice by the same difference is changed once', () => {
  fc.assert(
    fc.property(elements, elements, elements, (present, base, next) => {
      const once = addDifference('add_remove', present, base, next)
      expect(asSet(addDifference('add_remove', once, base, next))).toEqual(asSet(once))
    }),
  )
})

test('D5: an insert over a row that is there adds to a set and leaves a sum', () => {
  expect(insertOver('add_remove', ['a'], ['b'])).toEqual(['a', 'b'])
  expect(insertOver('increment', '5', '5')).toBe('5')
  expect(insertOver('increment', null, '5')).toBe('5')
})

test('what cannot be counted with', () => {
  for (const value of [1, '1', '-1.5', '1e3', null, undefined]) expect(hasDifference('increment', value)).toBe(true)
  for (const value of ['x', '', 'NaN', true, {}, []]) expect(hasDifference('increment', value)).toBe(false)
  for (const value of [[], ['a', null], null]) expect(hasDifference('add_remove', value)).toBe(true)
  for (const value of ['a', 5, {}, [1], [['a']]]) expect(hasDifference('add_remove', value)).toBe(false)
})

test('the text of an array is read as Postgres prints it', () => {
  expect(parseTextArray('{}')).toEqual([])
  expect(parseTextArray('{a,"b c",NULL,"NULL","","x\\"y\\\\z","{,}"}')).toEqual([
    'a',
    'b c',
    null,
    'NULL',
    '',
    'x"y\\z',
    '{,}',
  ])
})
