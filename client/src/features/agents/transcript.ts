/**
 * A run's events as a person reads them: pieces of a message joined, a tool call with its result, notes between. Pure.
 *
 *  T1 Pieces of `message` and `reasoning` are joined in the order of `seq` while turn and kind stay the same.
 *     What was given up (`anew`) is left out: it came once more.
 *  T2 A result stands with its call; a call without one says that it has none yet.
 *  T3 What a call of the model took stands behind what it said; pieces of one turn are joined across it.
 */
import type { Row } from '@hq/shared/schema/tables.ts'

export type RunEventRow = Pick<Row<'agent_run_events'>, 'id' | 'seq' | 'kind' | 'data' | 'created_at'>

export type TranscriptEntry =
  | { readonly id: string; readonly kind: 'message' | 'reasoning'; text: string; readonly turn: number }
  | {
      readonly id: string
      readonly kind: 'tool'
      readonly tool: string
      readonly call: string
      readonly input: string
      result: { readonly ok: boolean; readonly output: string } | undefined
    }
  | { readonly id: string; readonly kind: 'note' | 'error'; readonly text: string }
  | {
      readonly id: string
      readonly kind: 'usage'
      readonly inputTokens: number
      readonly outputTokens: number
      /** Null: unmetered. */
      readonly cost: number | null
    }

const text = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value, null, 2)

function giveUp(entries: TranscriptEntry[], turn: number): void {
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const entry = entries[index]
    if ((entry?.kind === 'message' || entry?.kind === 'reasoning') && entry.turn === turn) entries.splice(index, 1)
  }
}

export function transcript(events: readonly RunEventRow[]): TranscriptEntry[] {
  const entries: TranscriptEntry[] = []
  const calls = new Map<string, Extract<TranscriptEntry, { kind: 'tool' }>>()
  for (const { id, kind, data } of events) {
    const last = entries.findLast((entry) => entry.kind !== 'usage')
    switch (kind) {
      case 'message':
      case 'reasoning': {
        const turn = Number(data['turn'] ?? 0)
        if (last && (last.kind === 'message' || last.kind === 'reasoning') && last.kind === kind && last.turn === turn)
          last.text += text(data['text'])
        else entries.push({ id, kind, text: text(data['text']), turn })
        break
      }
      case 'tool_call': {
        const entry = {
          id,
          kind: 'tool' as const,
          tool: text(data['tool']),
          call: text(data['call']),
          input: text(data['input']),
          result: undefined,
        }
        calls.set(entry.call, entry)
        entries.push(entry)
        break
      }
      case 'tool_result': {
        const call = calls.get(text(data['call']))
        if (call) call.result = { ok: data['ok'] !== false, output: text(data['output']) }
        break
      }
      case 'error':
        entries.push({ id, kind: 'error', text: text(data['text']) })
        break
      case 'status':
        if (data['code'] === 'anew') giveUp(entries, Number(data['turn']))
        // A turn is no line of its own, and the last word of a run is usually the message above it.
        if (data['code'] !== 'turn' && !(last?.kind === 'message' && last.text === data['text']))
          entries.push({ id, kind: 'note', text: text(data['text']) })
        break
      case 'usage':
        entries.push({
          id,
          kind: 'usage',
          inputTokens: Number(data['input_tokens'] ?? 0),
          outputTokens: Number(data['output_tokens'] ?? 0),
          cost: typeof data['cost_usd'] === 'number' ? data['cost_usd'] : null,
        })
        break
    }
  }
  return entries
}
