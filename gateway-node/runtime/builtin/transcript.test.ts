import type { ModelMessage } from 'ai'
import { describe, expect, test } from 'vitest'
import { estimateTokens, fit, repair, reserveOf } from './transcript.ts'

const user = (text: string): ModelMessage => ({ role: 'user', content: text })
const call = (...ids: string[]): ModelMessage => ({
  role: 'assistant',
  content: ids.map((id) => ({ type: 'tool-call', toolCallId: id, toolName: 't', input: {} })),
})
const result = (id: string, value = `result of ${id}`): ModelMessage => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId: id, toolName: 't', output: { type: 'text', value } }],
})
const idsOf = (messages: readonly ModelMessage[]): string[] =>
  messages.map((message) =>
    typeof message.content === 'string'
      ? message.role
      : `${message.role}:${message.content.map((part) => ('toolCallId' in part ? part.toolCallId : part.type)).join(',')}`,
  )

describe('repair', () => {
  test('what is in order stays as it is (M3)', () => {
    const good: ModelMessage[] = [
      user('hi'),
      call('a'),
      result('a'),
      call('b', 'c'),
      { role: 'tool', content: [...(result('b').content as []), ...(result('c').content as [])] },
      { role: 'assistant', content: [{ type: 'text', text: 'done' }] },
    ]
    expect(repair(good)).toEqual(good)
  })

  test.each<[string, ModelMessage[], string[]]>([
    ['a missing result is made up', [user('x'), call('a'), user('y')], ['user', 'assistant:a', 'tool:a', 'user']],
    [
      'an orphaned result is dropped',
      [user('x'), result('z'), call('a'), result('a')],
      ['user', 'assistant:a', 'tool:a'],
    ],
    ['a result that came twice is there once', [call('a'), result('a'), result('a')], ['assistant:a', 'tool:a']],
    [
      'a result in the wrong place moves to its call',
      [call('a'), user('x'), result('a')],
      ['assistant:a', 'tool:a', 'user'],
    ],
    [
      'results in separate messages are joined',
      [call('a', 'b'), result('b'), result('a')],
      ['assistant:a,b', 'tool:a,b'],
    ],
    ['a call twice is there once', [call('a'), result('a'), call('a')], ['assistant:a', 'tool:a']],
    [
      'a call without a name goes, and its empty message too',
      [user('x'), { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'a', toolName: '', input: {} }] }],
      ['user'],
    ],
  ])('%s (M1, M2)', (_, messages, expected) => {
    expect(idsOf(repair(messages))).toEqual(expected)
    expect(repair(repair(messages))).toEqual(repair(messages))
  })

  test('a made-up result is an error, so that the model knows', () => {
    expect(repair([call('a')])[1]).toMatchObject({ content: [{ output: { type: 'error-text' } }] })
  })
})

describe('fitting into the window', () => {
  const long = 'word '.repeat(4_000)
  const conversation: ModelMessage[] = [user(`The task. ${long}`)]
  for (let n = 0; n < 12; n += 1) conversation.push(call(`c${n}`), result(`c${n}`, `${n} ${long}`))

  test('a conversation that fits is not touched', () => {
    expect(fit(conversation, 1_000_000, 0)).toEqual({ messages: conversation, shortened: 0 })
  })

  test('old results are shortened until the reserve is free; task and newest stay whole (M4)', () => {
    const window = 64_000
    const { messages, shortened } = fit(conversation, window, 1_000)
    const used = messages.reduce((sum, message) => sum + estimateTokens(message), 0)
    expect(shortened).toBeGreaterThan(0)
    expect(used).toBeLessThanOrEqual(window - reserveOf(window) - 1_000)
    expect(messages[0]).toBe(conversation[0])
    expect(messages.slice(-4)).toEqual(conversation.slice(-4))
    expect(repair(messages)).toEqual(messages)
  })

  test('the reserve is 20,000 tokens, and half of a small window', () => {
    expect([reserveOf(200_000), reserveOf(40_000), reserveOf(8_000)]).toEqual([20_000, 20_000, 4_000])
  })
})
