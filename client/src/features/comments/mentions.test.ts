import { describe, expect, it } from 'vitest'
import { type Mentionable, matching, mentionKeys, mentionsIn, typedMention } from './mentions.ts'

const agent = (slug: string, name: string): Mentionable => ({
  key: slug,
  handle: slug,
  actor: { kind: 'agent', id: slug, name, emoji: '🦉' },
})
const person = (id: string, name: string): Mentionable => ({
  key: id,
  handle: name,
  actor: { kind: 'person', id, name },
})
const all = [
  agent('ada', 'Ada'),
  agent('ada-two', 'Ada the Second'),
  person('p1', 'Ana'),
  person('p2', 'Ana López'),
  person('p3', '田中 さくら'),
]

describe('mentions', () => {
  it('M1 the longest handle, whatever the case, up to the end of the word', () => {
    expect(mentionKeys('@ada-two and @ADA, please', all)).toEqual(['ada-two', 'ada'])
    expect(mentionKeys('@Ana López! @ana.', all)).toEqual(['p2', 'p1'])
    expect(mentionKeys('@adam @ada_x @ada-three', all)).toEqual([])
    expect(mentionKeys('お願いします@田中 さくらさん', all)).toEqual(['p3'])
  })

  it('M2 addresses and code are text', () => {
    expect(mentionKeys('mail me@ada.example, run `@ada` or\n```\n@ana\n```', all)).toEqual([])
  })

  it('M3 one of two people with the same name', () => {
    const two = [person('x', 'Kim'), person('y', 'Kim')]
    expect(mentionKeys('@Kim look', two, [two[1] as Mentionable])).toEqual(['y'])
  })

  it('each once, and where they stand', () => {
    expect(mentionKeys('@ada @ada', all)).toEqual(['ada'])
    expect(mentionsIn('hi @ada!', all)).toMatchObject([{ start: 3, end: 7 }])
  })

  it('knows what is being typed', () => {
    expect(typedMention('hello @an', 9)).toEqual({ start: 6, query: 'an' })
    expect(typedMention('hello @Ana Ló', 13)).toEqual({ start: 6, query: 'Ana Ló' })
    expect(typedMention('hello @', 7)).toEqual({ start: 6, query: '' })
    expect(typedMention('me@ada', 6)).toBeUndefined()
    expect(typedMention('@ada is here now', 16)).toBeUndefined()
    expect(typedMention('@ada\nnext', 9)).toBeUndefined()
  })

  it('offers beginnings first', () => {
    expect(matching('lo', all).map((who) => who.key)).toEqual(['p2'])
    expect(matching('a', all).map((who) => who.key)).toEqual(['ada', 'ada-two', 'p1', 'p2'])
    expect(matching('two', all).map((who) => who.key)).toEqual(['ada-two'])
  })
})
