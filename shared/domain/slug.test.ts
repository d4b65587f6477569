import { expect, test } from 'vitest'
import { slugFrom, slugProblem } from './slug.ts'

test.each(['ada', 'ada-2', 'a1', 'x'.repeat(40)])('%s is a slug', (slug) => expect(slugProblem(slug)).toBeUndefined())
test.each(['a', 'team', 'here', 'x'.repeat(41), 'Ada', 'a b', '-ada', 'ada-', 'new', 'a/b', '..', 'ä1', ''])(
  '%j is none',
  (slug) => expect(slugProblem(slug)).toMatch(/slug|reserved/),
)
test.each([
  ['Ada Lovelace', 'ada-lovelace'],
  ['  Zoë  ', 'zoe'],
  ['漢字', ''],
  ['A'.repeat(50), 'a'.repeat(40)],
])('%s becomes %s', (name, slug) => expect(slugFrom(name)).toBe(slug))
