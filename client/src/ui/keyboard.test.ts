import { describe, expect, it } from 'vitest'
import { eventKeys } from './keyboard.ts'

const event = (key: string, held: Partial<Record<'metaKey' | 'ctrlKey' | 'altKey' | 'shiftKey', boolean>> = {}) => ({
  key,
  metaKey: false,
  ctrlKey: false,
  altKey: false,
  shiftKey: false,
  ...held,
})

describe('eventKeys', () => {
  it.each([
    ['k', event('k')],
    ['mod+k', event('k', { metaKey: true })],
    ['mod+k', event('K', { ctrlKey: true })],
    ['shift+j', event('J', { shiftKey: true })],
    // Shift only makes the character: on a German keyboard ? is ⇧ß, / is ⇧7.
    ['?', event('?', { shiftKey: true })],
    ['/', event('/', { shiftKey: true })],
    ['mod+shift+z', event('Z', { metaKey: true, shiftKey: true })],
    ['shift+enter', event('Enter', { shiftKey: true })],
    ['space', event(' ')],
  ])('%s', (keys, e) => expect(eventKeys(e)).toBe(keys))
})
