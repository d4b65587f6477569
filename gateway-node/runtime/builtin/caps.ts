/** The limits of a run, and its clock. */

export interface Caps {
  readonly turns: number
  readonly toolCalls: number
  /** Input and output tokens of the whole run. */
  readonly tokens: number
  /** ms */
  readonly wallMs: number
  /** How often the same tool may be called with the same input. */
  readonly repeats: number
  /** Retries of one round. */
  readonly retries: number
  /** ms before the first retry, four times that before the second. */
  readonly retryMs: number
  /** The longest that a provider's own word (Retry-After) is waited for within a run, in ms. */
  readonly retryAfterMs: number
  /** ms without a word from the model. */
  readonly silenceMs: number
  readonly outputTokens: number
}

export const CAPS: Caps = {
  turns: 30,
  toolCalls: 60,
  tokens: 600_000,
  wallMs: 15 * 60_000,
  repeats: 4,
  retries: 2,
  retryMs: 1_500,
  retryAfterMs: 60_000,
  silenceMs: 120_000,
  outputTokens: 8_192,
}

export interface Clock {
  /** Aborted when the time is over. */
  readonly signal: AbortSignal
  /** Runs `work`; what it says it has waited (for a person) is not counted, and nothing is cut off while it runs. */
  during<T extends { readonly waitedMs?: number }>(work: () => Promise<T>): Promise<T>
  end(): void
}

export function startClock(ms: number): Clock {
  const over = new AbortController()
  let deadline = performance.now() + ms
  const ring = (): void => over.abort(new Error('The run took too long.'))
  let timer = setTimeout(ring, ms)
  return {
    signal: over.signal,
    async during(work) {
      clearTimeout(timer)
      try {
        const result = await work()
        deadline += result.waitedMs ?? 0
        return result
      } finally {
        timer = setTimeout(ring, Math.max(0, deadline - performance.now()))
      }
    },
    end: () => clearTimeout(timer),
  }
}
