import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

/** The palette's promises, checked over the CSS itself: text ≥ 4.5:1, marks and focus ≥ 3:1, in both themes. */
const css = readFileSync(join(import.meta.dirname, '../tokens.css'), 'utf8')

function block(theme: 'light' | 'dark'): Map<string, string> {
  const body = new RegExp(`\\[data-theme=["']${theme}["']\\] \\{([^}]*--bg:[^}]*)\\}`).exec(css)?.[1]
  if (!body) throw new Error(`no block for ${theme}`)
  return new Map([...body.matchAll(/--([\w-]+):\s*(oklch\([^)]*\))/g)].map((m) => [m[1] ?? '', m[2] ?? '']))
}

/** oklch(L C H) → linear sRGB, clipped to the gamut as a screen does. (Björn Ottosson's matrices.) */
function linear(color: string): [number, number, number] {
  const [L, C, H] = color
    .slice(6, -1)
    .split(/\s+/)
    .map(Number)
    .map((n) => n ?? 0) as [number, number, number]
  const a = C * Math.cos((H * Math.PI) / 180)
  const b = C * Math.sin((H * Math.PI) / 180)
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3
  const clip = (x: number) => Math.min(1, Math.max(0, x))
  return [
    clip(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    clip(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    clip(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ]
}

function contrast(one: string, other: string): number {
  const [x, y] = [one, other].map((color) => {
    const [r, g, b] = linear(color)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }) as [number, number]
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05)
}

const grounds = ['bg', 'surface-1', 'surface-2', 'surface-3', 'float']
const meanings = ['good', 'busy', 'waiting', 'warning', 'danger']
const hues = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `hue-${n}`)

describe.each(['light', 'dark'] as const)('the %s theme', (theme) => {
  const tokens = block(theme)
  const get = (name: string): string => {
    const value = tokens.get(name)
    if (!value) throw new Error(`--${name} is missing in ${theme}`)
    return value
  }
  const short = (pairs: [string, string][], least: number): string[] =>
    pairs
      .map(([front, back]) => ({ front, back, ratio: contrast(get(front), get(back)) }))
      .filter(({ ratio }) => ratio < least)
      .map(({ front, back, ratio }) => `${front} on ${back}: ${ratio.toFixed(2)}`)
  const over = (fronts: string[], backs: string[]) => fronts.flatMap((f) => backs.map((b): [string, string] => [f, b]))

  it('has text of at least 4.5:1 on every ground', () => {
    const inks = ['text-1', 'text-2', 'text-3', 'accent-ink', ...meanings.map((m) => `${m}-ink`)]
    expect(short(over(inks, grounds), 4.5)).toEqual([])
  })

  it('has text of at least 4.5:1 on tints and on the accent', () => {
    const pairs = [...meanings, 'accent'].flatMap((m): [string, string][] => [
      [`${m}-ink`, `${m}-soft`],
      ['text-1', `${m}-soft`],
      ['text-2', `${m}-soft`],
    ])
    pairs.push(['on-accent', 'accent'], ['on-accent', 'accent-hover'], ['text-3', 'accent-soft'])
    expect(short(pairs, 4.5)).toEqual([])
  })

  it('has marks and focus of at least 3:1 on every ground', () => {
    expect(short(over([...meanings, ...hues, 'focus'], grounds), 3)).toEqual([])
  })

  it('keeps its grounds apart', () => {
    expect(new Set(grounds.slice(0, 4).map(get)).size).toBe(4)
  })
})

it('measures contrast as WCAG does', () => {
  expect(contrast('oklch(0 0 0)', 'oklch(1 0 0)')).toBeCloseTo(21, 3)
  expect(contrast('oklch(0.5999 0 0)', 'oklch(1 0 0)')).toBeCloseTo(3.95, 1)
})
