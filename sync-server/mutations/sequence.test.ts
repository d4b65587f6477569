import { expect, test } from 'vitest'
import { otherMutation, sequence } from './sequence.ts'

const items = (...seqs: number[]) => seqs.map((seq) => ({ seq, mutationId: `m${seq}` }))

test('S1: numbers follow on the last one taken and on each other', () => {
  expect(sequence(items(4, 5), 3)).toEqual({ type: 'in_order', repeats: [], fresh: items(4, 5) })
  expect(sequence(items(2, 3, 4), 3)).toEqual({ type: 'in_order', repeats: items(2, 3), fresh: items(4) })
  expect(sequence([], 3)).toEqual({ type: 'in_order', repeats: [], fresh: [] })
  for (const wrong of [items(5), items(4, 6), items(4, 4), items(3, 5), items(0), items(-1)]) {
    expect(sequence(wrong, 3)).toMatchObject({ type: 'out_of_order', expected: 4 })
  }
})

test('S2: a repeat is known by number and mutation', () => {
  const taken = new Map([
    [2, 'm2'],
    [3, 'another'],
  ])
  expect(otherMutation(items(2), taken)).toBeUndefined()
  expect(otherMutation(items(2, 3), taken)).toEqual({ seq: 3, mutationId: 'm3' })
  expect(otherMutation(items(1), taken), 'older than what is remembered').toEqual({ seq: 1, mutationId: 'm1' })
})
