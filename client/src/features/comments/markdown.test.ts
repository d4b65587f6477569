import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, it } from 'vitest'
import { Markdown, safeHref } from './markdown.tsx'
import type { Mentionable } from './mentions.ts'

const html = (text: string, mentionable: readonly Mentionable[] = []) =>
  renderToStaticMarkup(createElement(Markdown, { text, mentionable }))

describe('markdown', () => {
  it('M1 never becomes HTML of the page', () => {
    for (const attack of [
      '<img src=x onerror=alert(1)>',
      'a <script>alert(1)</script> b',
      '<div><b onclick="x()">hi</b></div>',
      '[x](javascript:alert(1))',
      '![x](data:text/html,<script>)',
      '<a href="javascript:x">y</a>',
      '[x]: javascript:alert(1)\n\n[x]',
    ]) {
      const out = html(attack)
      expect(out, attack).not.toMatch(/<(script|img|b|iframe|svg)\b/i)
      expect(out, attack).not.toMatch(/href="(javascript|data)/i)
    }
  })

  it('M2 addresses', () => {
    expect(safeHref('https://x.example')).toBe('https://x.example')
    expect(safeHref('/tasks/1')).toBe('/tasks/1')
    expect(safeHref('//evil.example')).toBeUndefined()
    expect(safeHref('JaVaScRiPt:alert(1)')).toBeUndefined()
    expect(html('[x](https://a.example)')).toContain('rel="noopener noreferrer"')
  })

  it('M3 headings begin below the page’s own', () => {
    expect(html('# One')).toMatch(/<h3[^>]*>One<\/h3>/)
    expect(html('##### Five')).toMatch(/<h6[^>]*>Five<\/h6>/)
  })

  it('lists, tables, code, task lists, quotes', () => {
    expect(html('1. a\n2. b')).toContain('<ol start="1"')
    expect(html('- [x] done\n- [ ] open').match(/done: |to do: /g)).toEqual(['done: ', 'to do: '])
    expect(html('| a | b |\n|---|--:|\n| 1 | 2 |')).toMatch(/<td style="text-align:right"/)
    expect(html('```ts\nconst a = "<b>"\n```')).toContain('const a = &quot;&lt;b&gt;&quot;')
    expect(html('`a<b`')).toContain('a&lt;b</code>')
    expect(html('> quoted')).toContain('<blockquote')
    expect(html('a &amp; b &lt;c&gt;')).toContain('a &amp; b &lt;c&gt;')
  })

  it('highlights mentions in text, not in code', () => {
    const ada: Mentionable = { key: 'ada', handle: 'ada', actor: { kind: 'agent', id: '1', name: 'Ada', emoji: '🦉' } }
    expect(html('hi **@ada**, `@ada`', [ada]).match(/bg-accent-soft/g)).toHaveLength(1)
  })
})
