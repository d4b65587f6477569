import { expect, test } from 'vitest'
import { actionName, linesOf } from './command-query.ts'

const texts = (pieces: Parameters<typeof linesOf>[0]) => linesOf(pieces).map(({ text, stream }) => `${stream}:${text}`)

test('pieces are joined to lines, also where a piece ends in the middle of one', () => {
  expect(
    texts([
      { stream: 'stdout', text: 'one\ntw' },
      { stream: 'stdout', text: 'o\nthree\n' },
      { stream: 'stdout', text: 'four' },
    ]),
  ).toEqual(['out:one', 'out:two', 'out:three', 'out:four'])
})

test('streams keep their own lines, in the order of the pieces', () => {
  expect(
    texts([
      { stream: 'stdout', text: 'a' },
      { stream: 'stderr', text: 'b\n' },
      { stream: 'progress', text: 'c\n' },
    ]),
  ).toEqual(['out:a', 'err:b', 'system:c'])
})

test('an action without a name of its own is spelled out', () => {
  expect(actionName('auth_set_api_key')).toBe('Auth set api key')
  expect(actionName('provision')).toBe('Set up')
})
