import type { RunEvent } from '@hq/shared/domain/runs.ts'
import { expect, test } from 'vitest'
import { createTold } from './told.ts'

type Piece = ['message' | 'reasoning', string]

/** Tries of one answer; what the log says of them. */
function tell(...tries: Piece[][]): string[] {
  const events: RunEvent[] = []
  const told = createTold((event) => void events.push(event))
  for (const [index, pieces] of tries.entries()) {
    told.begin(index + 1)
    for (const [kind, text] of pieces) told.add(kind, text)
  }
  return events.map((event) => {
    const data = event.data as { turn?: number; text: string; code?: string }
    return `${data.turn}:${event.kind === 'status' ? data.code : `${event.kind} ${data.text}`}`
  })
}
const said = (...texts: string[]): Piece[] => texts.map((text) => ['message', text])

test.each<[string, Piece[][], string[]]>([
  ['one try is told as it comes', [said('Hel', 'lo')], ['1:message Hel', '1:message lo']],
  [
    'the same again goes on where it broke off (S1)',
    [said('Hel'), said('He', 'llo', '!')],
    ['1:message Hel', '1:message lo', '1:message !'],
  ],
  [
    'in pieces of any size',
    [said('Hello w'), said('H', 'e', 'llo wor', 'ld')],
    ['1:message Hello w', '1:message or', '1:message ld'],
  ],
  [
    'three tries, each a little further',
    [said('a'), said('ab'), said('abc')],
    ['1:message a', '1:message b', '1:message c'],
  ],
  [
    'something else: anew, from its beginning (S2)',
    [said('Hello'), said('He', 'y you')],
    ['1:message Hello', '1:anew', '2:message Hey you'],
  ],
  [
    'anew, and then broken and anew again',
    [said('A'), said('B'), said('C')],
    ['1:message A', '1:anew', '2:message B', '2:anew', '3:message C'],
  ],
  ['nothing was told before: nothing is given up', [[], said('B')], ['2:message B']],
  [
    'thoughts and words apart, given up together',
    [
      [
        ['reasoning', 'Hm'],
        ['message', 'One'],
      ],
      [
        ['reasoning', 'Hm'],
        ['message', 'Two'],
      ],
    ],
    ['1:reasoning Hm', '1:message One', '1:anew', '2:reasoning Hm', '2:message Two'],
  ],
  ['a shorter one that says no more is not told again', [said('Hello'), said('Hel')], ['1:message Hello']],
])('%s', (_, tries, log) => expect(tell(...tries)).toEqual(log))
