import { describe, expect, it } from 'vitest'
import { beginDraft, type Draft, type DraftEvent, mustSave, reduceDraft } from './draft.ts'

const run = (draft: Draft, ...events: DraftEvent[]) => events.reduce(reduceDraft, draft)
const typed = (text: string): DraftEvent => ({ type: 'typed', text })
const arrived = (value: string): DraftEvent => ({ type: 'arrived', value })

describe('a draft', () => {
  it('T1 a change from elsewhere never replaces what was typed, and is not overwritten either', () => {
    const both = run(beginDraft('a'), typed('mine'), arrived('theirs'))
    expect(both).toMatchObject({ text: 'mine', theirs: 'theirs' })
    expect(mustSave(both)).toBe(false)
    const kept = reduceDraft(both, { type: 'keep-mine' })
    expect(kept).toMatchObject({ text: 'mine', base: 'theirs', theirs: undefined })
    expect(mustSave(kept)).toBe(true)
    expect(reduceDraft(both, { type: 'take-theirs' })).toMatchObject({ text: 'theirs', base: 'theirs' })
  })

  it('T1 a change that is taken back is no longer in the way', () => {
    expect(mustSave(run(beginDraft('a'), typed('mine'), arrived('b'), arrived('a')))).toBe(true)
  })

  it('T2 while nothing is typed, the newest value is shown', () => {
    expect(run(beginDraft('a'), arrived('b')).text).toBe('b')
  })

  it('T3 the echo of a save is no change from elsewhere, also when typing went on', () => {
    const draft = run(beginDraft('a'), typed('ab'), { type: 'saving' }, typed('abc'), arrived('ab'))
    expect(draft).toMatchObject({ text: 'abc', base: 'ab', theirs: undefined })
    const saved = reduceDraft(draft, { type: 'saved' })
    expect(saved).toMatchObject({ text: 'abc', base: 'ab', saving: undefined })
    expect(mustSave(saved)).toBe(true)
  })

  it('after a save nothing is to be saved; after a failure it is', () => {
    const saving = run(beginDraft('a'), typed('b'), { type: 'saving' })
    expect(mustSave(saving)).toBe(false)
    expect(mustSave(reduceDraft(saving, { type: 'saved' }))).toBe(false)
    expect(mustSave(reduceDraft(saving, { type: 'failed' }))).toBe(true)
  })

  it('text found after a crash is saved when the value is as it was, else set beside it', () => {
    expect(mustSave(beginDraft('a', { base: 'a', text: 'typed' }))).toBe(true)
    expect(beginDraft('new', { base: 'a', text: 'typed' })).toMatchObject({ text: 'typed', theirs: 'new' })
    expect(mustSave(beginDraft('typed', { base: 'a', text: 'typed' }))).toBe(false)
  })
})
