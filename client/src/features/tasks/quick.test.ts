import { describe, expect, it } from 'vitest'
import { parseQuick } from './quick.ts'

const context = {
  mentionable: [
    { key: 'writer', handle: 'writer', actor: { kind: 'agent', id: 'a1', name: 'Writer', emoji: '✍️' } },
    { key: 'p1', handle: 'Ana López', actor: { kind: 'person', id: 'p1', name: 'Ana López' } },
  ],
  streams: [
    { id: 's1', name: 'Marketing' },
    { id: 's2', name: 'Marketing EU' },
  ],
} as const

describe('the line for a new task', () => {
  it('takes assignee, priority and stream out of the text', () => {
    expect(parseQuick('Call Müller @writer !high #marketing eu today', context)).toEqual({
      title: 'Call Müller today',
      assignee: { type: 'agent', id: 'a1' },
      priority: 'high',
      stream_id: 's2',
    })
    expect(parseQuick('@Ana López: 資料を送る', context)).toEqual({
      title: ': 資料を送る',
      assignee: { type: 'human', id: 'p1' },
    })
  })

  it('Q1 leaves what it does not know', () => {
    expect(parseQuick('Ship!! !important #1 me@writer.example #marketingplan', context)).toEqual({
      title: 'Ship!! !important #1 me@writer.example #marketingplan',
    })
  })

  it('Q2 never makes an empty title', () => {
    expect(parseQuick('  @writer ', context)).toEqual({ title: '@writer' })
  })
})
