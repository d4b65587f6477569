import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { highlight, type Language } from './highlight.ts'

describe('highlight', () => {
  it('loses no character in any language', () => {
    const languages: Language[] = ['ts', 'json', 'sh', 'py', 'sql', 'yaml', 'md', 'text']
    fc.assert(
      fc.property(fc.constantFrom(...languages), fc.array(fc.string(), { maxLength: 8 }), (language, lines) => {
        const clean = lines.map((line) => line.replaceAll('\n', ''))
        expect(highlight(clean, language).map((tokens) => tokens.map((t) => t.text).join(''))).toEqual(clean)
      }),
    )
  })

  it('follows a block comment over lines', () => {
    const kinds = highlight(['a /* b', 'c', 'd */ e'], 'ts').map((tokens) => tokens.map((t) => t.kind))
    expect(kinds).toEqual([['plain', 'comment'], ['comment'], ['comment', 'plain']])
  })

  it('tells keys from values in JSON', () => {
    expect(highlight(['{"a": "b", "n": 1, "t": true}'], 'json')[0]?.filter((t) => t.kind !== 'plain')).toEqual([
      { text: '"a"', kind: 'key' },
      { text: '"b"', kind: 'string' },
      { text: '"n"', kind: 'key' },
      { text: '1', kind: 'number' },
      { text: '"t"', kind: 'key' },
      { text: 'true', kind: 'keyword' },
    ])
  })
})
