/**
 * Recognises that a model goes in circles. Pure.
 *
 *  C1 The same call with the same input counts, however far apart; `repeats` of them are the most.
 *  C2 A pattern of two to four calls (A B A B …) whose calls and answers are the same each time: after the second time the model is told, after the third it ends.
 */
export interface Circles {
  /** Before a call is made: how often it was made with this input, this time included. */
  count(call: string): number
  /** After it was answered. */
  answered(call: string, output: string): 'fine' | 'warn' | 'end'
}

const PERIODS = [2, 3, 4]

export function createCircles(): Circles {
  const counts = new Map<string, number>()
  const history: string[] = []
  return {
    count(call) {
      const count = (counts.get(call) ?? 0) + 1
      counts.set(call, count)
      return count
    },
    answered(call, output) {
      history.push(`${call}\n${output}`)
      const times = Math.max(...PERIODS.map((period) => timesAtEnd(history, period)))
      return times >= 3 ? 'end' : times === 2 ? 'warn' : 'fine'
    },
  }
}

/** How often the last `period` entries stand at the end, one after the other; 1: once. */
function timesAtEnd(history: readonly string[], period: number): number {
  const block = history.slice(-period)
  // One and the same call over and over is C1's business.
  if (block.length < period || block.every((entry) => entry === block[0])) return 1
  let times = 1
  for (let end = history.length - period; end >= period; end -= period) {
    if (!block.every((entry, index) => history[end - period + index] === entry)) break
    times += 1
  }
  return times
}
