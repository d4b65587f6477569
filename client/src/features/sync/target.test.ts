import { expect, test } from 'vitest'
import { targetOf } from './target.ts'

test('an address names a change or a conflict, or nothing', () => {
  const id = '0190a000-0000-7000-8000-000000000001'
  expect(targetOf('change-12')).toEqual({ seq: 12, conflict: undefined })
  expect(targetOf(`conflict-${id}`)).toEqual({ seq: undefined, conflict: id })
  for (const hash of ['', 'change-', 'change-1x', 'conflict-1', 'other'])
    expect(targetOf(hash)).toEqual({ seq: undefined, conflict: undefined })
})
