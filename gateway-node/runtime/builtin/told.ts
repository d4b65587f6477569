/**
 * What a run log is told of an answer that had to be asked for again. Pure.
 *
 *  S1 While a new try says the same as the broken one, nothing is told; what goes beyond it is told as more of the same answer (under its turn).
 *  S2 When it says something else, the answer begins anew: the broken one is given up (`status` with code `anew` and its turn), and the new one is told from its beginning.
 */
import type { RunEvent } from '@hq/shared/domain/runs.ts'

type Kind = 'message' | 'reasoning'

export interface Told {
  /** A try begins; its own turn is used only if it is told from its beginning. */
  begin(turn: number): void
  add(kind: Kind, text: string): void
}

export function createTold(emit: (event: RunEvent) => void): Told {
  /** Of the answer as readers have it. */
  const known: Record<Kind, string> = { message: '', reasoning: '' }
  let knownTurn: number | undefined
  /** Of the present try. */
  let said: Record<Kind, string> = { message: '', reasoning: '' }
  let turn = 0

  const tell = (kind: Kind, text: string): void => {
    if (text === '') return
    knownTurn ??= turn
    known[kind] += text
    emit({ kind, data: { turn: knownTurn, text } })
  }

  return {
    begin(next) {
      turn = next
      said = { message: '', reasoning: '' }
    },
    add(kind, text) {
      const before = said[kind]
      said[kind] += text
      const now = said[kind]
      if (now.length <= known[kind].length ? known[kind].startsWith(now) : now.startsWith(known[kind])) {
        tell(kind, now.slice(Math.max(before.length, known[kind].length))) // (S1)
        return
      }
      if (knownTurn !== undefined)
        emit({ kind: 'status', data: { code: 'anew', text: 'The answer began anew.', turn: knownTurn } })
      known.message = ''
      known.reasoning = ''
      knownTurn = undefined
      for (const each of ['reasoning', 'message'] as const) tell(each, said[each]) // (S2)
    },
  }
}
