import { expect, test } from 'vitest'
import { secretState } from './secret-words.ts'

const facts = { sync_status: 'active', sync_error: null, version: 1, synced_version: 1, deleted_at: null } as const
const say = (more: Partial<Parameters<typeof secretState>[0]>, away?: string): string => {
  const { label, detail } = secretState({ ...facts, ...more }, away)
  return detail === undefined ? label : `${label}: ${detail}`
}

test('each state has its words, the reason first', () => {
  expect(say({})).toBe('In use')
  expect(say({ sync_status: 'pending', synced_version: null })).toBe('On its way')
  expect(say({ sync_status: 'pending', synced_version: null }, 'shed')).toBe('On its way: when shed is back')
  expect(say({ version: 2 })).toBe('Old value in use: the new one is on its way')
  expect(say({ sync_status: 'error', sync_error: 'Broken.' })).toBe('Can’t be used: Broken.')
  expect(say({ deleted_at: '2026-12-01T00:00:00Z' }, 'shed')).toBe('Being revoked: when shed is back')
  expect(say({ deleted_at: '2026-12-01T00:00:00Z', sync_status: 'revoked' })).toBe('Revoked: gone from its gateway')
})
