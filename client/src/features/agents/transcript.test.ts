import { expect, test } from 'vitest'
import { type RunEventRow, transcript } from './transcript.ts'

const event = (seq: number, kind: RunEventRow['kind'], data: Record<string, unknown>): RunEventRow => ({
  id: String(seq),
  seq,
  kind,
  data,
  created_at: '2026-11-30T12:00:00Z',
})

test('T1: pieces of one turn are one message; another turn begins anew', () => {
  const entries = transcript([
    event(1, 'message', { turn: 1, text: 'Hel' }),
    event(2, 'message', { turn: 1, text: 'lo' }),
    event(3, 'message', { turn: 2, text: 'Again' }),
  ])
  expect(entries.map((entry) => (entry.kind === 'message' ? entry.text : ''))).toEqual(['Hello', 'Again'])
})

test('T1: an answer that was broken off and went on is one message; one that began anew is there once', () => {
  const broken = [event(1, 'message', { turn: 1, text: 'Half an' }), event(2, 'reasoning', { turn: 1, text: 'Hm' })]
  const retry = event(3, 'status', { code: 'retry', text: 'Cut. Asking again.', turn: 1 })
  const texts = (events: RunEventRow[]) => transcript(events).map((entry) => ('text' in entry ? entry.text : ''))
  expect(texts([...broken, retry, event(4, 'message', { turn: 1, text: ' answer' })])).toEqual([
    'Half an',
    'Hm',
    'Cut. Asking again.',
    ' answer',
  ])
  expect(
    texts([
      ...broken,
      retry,
      event(4, 'status', { code: 'anew', text: 'The answer began anew.', turn: 1 }),
      event(5, 'message', { turn: 2, text: 'Another answer' }),
    ]),
  ).toEqual(['Cut. Asking again.', 'The answer began anew.', 'Another answer'])
})

test('T2: a result stands with its call, and a call without one has none', () => {
  const entries = transcript([
    event(1, 'tool_call', { turn: 1, call: 'a', tool: 'task_show', input: { id: 7 } }),
    event(2, 'tool_call', { turn: 1, call: 'b', tool: 'claim', input: {} }),
    event(3, 'tool_result', { turn: 1, call: 'a', tool: 'task_show', ok: true, output: 'Brief' }),
  ])
  expect(entries).toMatchObject([
    { call: 'a', result: { ok: true, output: 'Brief' } },
    { call: 'b', result: undefined },
  ])
})

test('errors and notes are kept, turns are not lines of their own', () => {
  const kinds = transcript([
    event(1, 'status', { code: 'started', text: 'Started' }),
    event(2, 'status', { code: 'turn', text: 'Turn 1' }),
    event(3, 'usage', { turn: 1 }),
    event(4, 'error', { code: 'refused', text: 'The provider refused.' }),
  ]).map(({ kind }) => kind)
  expect(kinds).toEqual(['note', 'usage', 'error'])
})

test('the closing note is left out when it repeats the last message', () => {
  const entries = transcript([
    event(1, 'message', { turn: 1, text: 'All done.' }),
    event(2, 'status', { code: 'done', text: 'All done.' }),
  ])
  expect(entries).toHaveLength(1)
})

test('T3: what each call took stands behind it, and parts nothing that belongs together', () => {
  const usage = { turn: 1, provider: 'p', model: 'm', input_tokens: 1200, output_tokens: 34, cost_usd: 0.002 }
  const entries = transcript([
    event(1, 'message', { turn: 1, text: 'Hel' }),
    event(2, 'usage', usage),
    event(3, 'message', { turn: 1, text: 'lo' }),
    event(4, 'status', { code: 'done', text: 'Hello' }),
    event(5, 'usage', { ...usage, cost_usd: null }),
  ])
  expect(entries).toMatchObject([
    { kind: 'message', text: 'Hello' },
    { kind: 'usage', inputTokens: 1200, outputTokens: 34, cost: 0.002 },
    { kind: 'usage', cost: null },
  ])
})
