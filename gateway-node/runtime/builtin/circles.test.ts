import { expect, test } from 'vitest'
import { createCircles } from './circles.ts'

/** Each letter is a call; a digit behind it its answer. */
const walk = (calls: string): string[] => {
  const circles = createCircles()
  return calls.split(' ').map((call) => circles.answered(call.charAt(0), call.slice(1)))
}

test.each<[string, string, string]>([
  ['A B A B A B', 'A B A B A B', 'fine fine fine warn fine end'],
  ['A B C three times', 'A B C A B C A B C', 'fine fine fine fine fine warn fine fine end'],
  ['a pattern within other work', 'X Y A B A B A B', 'fine fine fine fine fine warn fine end'],
  ['the answers change: it gets somewhere', 'A1 B1 A2 B2 A3 B3', 'fine fine fine fine fine fine'],
  ['one call over and over is counted elsewhere', 'A A A A A A', 'fine fine fine fine fine fine'],
  ['interrupted patterns are none', 'A B A C A B', 'fine fine fine fine fine fine'],
])('%s (C2)', (_, calls, verdicts) => {
  // What lies between two warnings may be a warning too: only the first and the end count.
  const seen = walk(calls)
  const expected = verdicts.split(' ')
  expect(seen.indexOf('warn')).toBe(expected.indexOf('warn'))
  expect(seen.indexOf('end')).toBe(expected.indexOf('end'))
})

test('the same call counts, however far apart (C1)', () => {
  const circles = createCircles()
  expect(['a', 'b', 'a', 'c', 'a'].map((call) => circles.count(call))).toEqual([1, 1, 2, 1, 3])
})
