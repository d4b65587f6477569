import { expect, test } from 'vitest'
import { keptWords, megabytes, type StorageFacts, storageNotice } from './storage-health.ts'

const facts = (part: Partial<StorageFacts>): StorageFacts => ({
  storage: 'opfs',
  persisted: true,
  usage: 60e6,
  quota: 60e9,
  ...part,
})
const code = (part: Partial<StorageFacts>) => storageNotice(facts(part))?.code

test('quiet while everything is kept and there is room, also where the browser only usually keeps it (N1)', () => {
  expect(code({})).toBeUndefined()
  expect(code({ persisted: false })).toBeUndefined()
  expect(code({ storage: 'idb', usage: undefined, quota: undefined })).toBeUndefined()
})

test('says what is at stake, the worst first (N2)', () => {
  expect(code({ storage: 'memory', quota: 0 })).toBe('not_kept')
  expect(code({ usage: 999e6, quota: 1e9 })).toBe('full')
  expect(code({ usage: 960e6, quota: 1e9 })).toBe('nearly_full')
  expect(code({ persisted: false, usage: 60e6, quota: 600e6 })).toBe('little_room')
  expect(code({ persisted: true, usage: 60e6, quota: 600e6 })).toBeUndefined()
  expect(storageNotice(facts({ usage: 960e6, quota: 1e9 }))?.advice).toContain('40 MB are left')
})

test('what is kept is said as it is', () => {
  expect(keptWords(facts({}))).toContain('Yes')
  expect(keptWords(facts({ persisted: false }))).toContain('may delete')
  expect(keptWords(facts({ persisted: undefined }))).toContain('does not say')
  expect(keptWords(facts({ storage: 'memory' }))).toContain('No')
  expect([megabytes(4e6), megabytes(1.26e9), megabytes(64e9)]).toEqual(['4 MB', '1.3 GB', '64 GB'])
})
