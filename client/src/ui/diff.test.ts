import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { diffLines } from './diff.ts'

const sides = (before: string, after: string) => {
  const lines = diffLines(before, after)
  return {
    before: lines.filter((l) => l.kind !== 'added').map((l) => l.text),
    after: lines.filter((l) => l.kind !== 'removed').map((l) => l.text),
    changed: lines.filter((l) => l.kind !== 'same').length,
  }
}

describe('diffLines', () => {
  it('gives both texts back, whatever they are', () => {
    const line = fc.constantFrom('a', 'b', 'c', '', 'hello world', 'x y z')
    fc.assert(
      fc.property(fc.array(line, { maxLength: 40 }), fc.array(line, { maxLength: 40 }), (a, b) => {
        const before = a.map((l) => `${l}\n`).join('')
        const after = b.map((l) => `${l}\n`).join('')
        const result = sides(before, after)
        expect(result.before).toEqual(a)
        expect(result.after).toEqual(b)
      }),
    )
  })

  it('changes as little as it can', () => {
    expect(sides('a\nb\nc\nd\n', 'a\nc\nd\ne\n').changed).toBe(2)
    expect(sides('a\nb\nc\na\nb\nb\na\n', 'c\nb\na\nb\na\nc\n').changed).toBe(5)
    expect(sides('same\n', 'same\n').changed).toBe(0)
  })

  it('marks the words that differ in a changed line', () => {
    const [removed, added] = diffLines('Send it to Ana today', 'Send it to Ben today')
    expect(removed?.parts?.filter((p) => p.changed)).toEqual([{ text: 'Ana', changed: true }])
    expect(added?.parts?.map((p) => p.text).join('')).toBe('Send it to Ben today')
  })

  it('numbers lines on both sides', () => {
    const lines = diffLines('a\nb\n', 'b\nc\n')
    expect(lines.map((l) => [l.kind, l.before, l.after])).toEqual([
      ['removed', 1, null],
      ['same', 2, 1],
      ['added', null, 2],
    ])
  })
})
