import { expect, test } from 'vitest'
import { openClawSessions, openClawTranscript } from './openclaw-routes.ts'

const task = '0197f000-0000-7000-8000-000000000001'
const key = `agent:writer:task-${task}`

test('only sessions of HQ’s runs, newest first, of one agent if asked (W1)', async () => {
  const ask = async () => ({
    sessions: [
      { key: 'agent:writer:main', updatedAt: 9 },
      { key, updatedAt: 1_000 },
      { key: `agent:other:item-${task}`, updatedAt: 2_000 },
    ],
  })
  const all = await openClawSessions(ask, undefined)
  expect(all).toEqual({
    ok: true,
    value: {
      sessions: [
        { key: `agent:other:item-${task}`, agent: 'other', task: null, updated_at: '1970-01-01T00:00:02.000Z' },
        { key, agent: 'writer', task, updated_at: '1970-01-01T00:00:01.000Z' },
      ],
    },
  })
  expect(await openClawSessions(ask, 'writer')).toMatchObject({ value: { sessions: [{ key }] } })
})

test('a transcript in words; tools are named; a long text is cut (W2)', async () => {
  const ask = async () => ({
    messages: [
      { role: 'user', content: 'Do it', timestamp: 0 },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Yes.' },
          { type: 'toolCall', name: 'read' },
        ],
      },
      { role: 'toolResult', content: 'x'.repeat(9_000) },
    ],
  })
  const read = await openClawTranscript(ask, key)
  if (!read.ok) throw new Error(read.message)
  expect(read.value.messages.slice(0, 2)).toEqual([
    { role: 'user', text: 'Do it', at: '1970-01-01T00:00:00.000Z' },
    { role: 'assistant', text: 'Yes.\n(toolCall read)', at: null },
  ])
  expect(read.value.messages[2]?.text).toHaveLength(8_001)
})

test('not running, and a key that is none', async () => {
  const away = async () => undefined
  expect(await openClawSessions(away, undefined)).toMatchObject({ ok: false, code: 'wrong_state' })
  expect(await openClawTranscript(away, key)).toMatchObject({ ok: false, code: 'wrong_state' })
  expect(await openClawTranscript(away, 'agent:writer:main')).toMatchObject({ ok: false, code: 'invalid' })
})
