/**
 * What models cost, as data: US dollars per million tokens, list prices as the vendors published them. A model that is not here is unmetered (null),
 * not free; `prices` in `<home>/models.json` adds or corrects. The longest name that a model id begins with counts, so that dated versions match.
 */
export interface Price {
  readonly input: number
  readonly output: number
  /** Defaults: a tenth of `input`. */
  readonly cacheRead?: number
  /** Defaults: `input`. */
  readonly cacheWrite?: number
}

export const PRICES: Readonly<Record<string, Price>> = {
  'claude-opus-4-5': { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 },
  'claude-opus-4-1': { input: 15, output: 75, cacheRead: 1.5, cacheWrite: 18.75 },
  'claude-opus-4-0': { input: 15, output: 75, cacheRead: 1.5, cacheWrite: 18.75 },
  'claude-opus-4-20250514': { input: 15, output: 75, cacheRead: 1.5, cacheWrite: 18.75 },
  'claude-sonnet-4-5': { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
  'claude-sonnet-4-0': { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
  'claude-sonnet-4-20250514': { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
  'claude-haiku-4-5': { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 },
  'claude-3-7-sonnet': { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
  'claude-3-5-haiku': { input: 0.8, output: 4, cacheRead: 0.08, cacheWrite: 1 },
  'gpt-5-nano': { input: 0.05, output: 0.4, cacheRead: 0.005 },
  'gpt-5-mini': { input: 0.25, output: 2, cacheRead: 0.025 },
  'gpt-5': { input: 1.25, output: 10, cacheRead: 0.125 },
  'gpt-4.1-nano': { input: 0.1, output: 0.4, cacheRead: 0.025 },
  'gpt-4.1-mini': { input: 0.4, output: 1.6, cacheRead: 0.1 },
  'gpt-4.1': { input: 2, output: 8, cacheRead: 0.5 },
  'gpt-4o-mini': { input: 0.15, output: 0.6, cacheRead: 0.075 },
  'gpt-4o': { input: 2.5, output: 10, cacheRead: 1.25 },
}

export interface Tokens {
  /** All input tokens, cached ones included. */
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** US dollars; null: no price known. */
export function costOf(model: string, tokens: Tokens, prices: Readonly<Record<string, Price>>): number | null {
  const name = model.toLowerCase().replace(/^.*\//, '')
  const match = Object.keys(prices)
    .filter((key) => name === key || name.startsWith(`${key}-`) || model === key)
    .sort((a, b) => b.length - a.length)[0]
  const price = match === undefined ? undefined : prices[match]
  if (!price) return null
  const plain = Math.max(0, tokens.input - tokens.cacheRead - tokens.cacheWrite)
  const micro =
    plain * price.input +
    tokens.cacheRead * (price.cacheRead ?? price.input / 10) +
    tokens.cacheWrite * (price.cacheWrite ?? price.input) +
    tokens.output * price.output
  return Math.round(micro) / 1_000_000
}
