import { expect, test } from 'vitest'
import { type FileRow, fileView, type WriteRow } from './personality.ts'

const file: FileRow = { id: '1', path: 'SOUL.md', sha: 'aa', content: 'Old', updated_at: '2026-12-01T10:00:00Z' }
const write = (more: Partial<WriteRow>): WriteRow => ({
  id: '2',
  status: 'pending',
  payload: { path: 'SOUL.md', text: 'New', sha: 'aa' },
  error_message: null,
  result: null,
  completed_at: '2026-12-01T11:00:00Z',
  ...more,
})

test('P1: what waits is shown at once, then the file is', () => {
  expect(fileView(file, undefined)).toMatchObject({ text: 'Old', sha: 'aa', state: 'there' })
  expect(fileView(file, write({}))).toMatchObject({ text: 'New', state: 'waiting' })
  const done = write({ status: 'done', result: { sha: 'bb' } })
  expect(fileView(file, done)).toMatchObject({ text: 'New', state: 'waiting' })
  // Put back to what it was, later.
  expect(fileView({ ...file, updated_at: '2026-12-01T12:00:00Z' }, done)).toMatchObject({ text: 'Old', state: 'there' })
  const mirrored = { ...file, sha: 'bb', content: 'New' }
  expect(fileView(mirrored, write({ status: 'done', result: { sha: 'bb' } }))).toMatchObject({
    text: 'New',
    state: 'there',
  })
  const later = { ...file, sha: 'cc', content: 'Later' }
  expect(fileView(later, write({ status: 'done', result: { sha: 'bb' } }))).toMatchObject({
    text: 'Later',
    state: 'there',
  })
})

test('P2: a change that failed keeps its text and says why; a cancelled one is nothing', () => {
  expect(fileView(file, write({ status: 'failed', error_message: 'It changed meanwhile.' }))).toMatchObject({
    text: 'Old',
    state: 'failed',
    reason: 'It changed meanwhile.',
    lost: 'New',
  })
  const met = write({ status: 'failed', error_message: 'No.', result: { conflict: { sha: 'dd', text: 'Met' } } })
  expect(fileView(file, met)).toMatchObject({ text: 'Met', sha: 'dd', state: 'failed', lost: 'New' })
  expect(fileView({ ...file, sha: 'ee', content: 'Later', updated_at: '2026-12-01T12:00:00Z' }, met)).toMatchObject({
    text: 'Later',
    sha: 'ee',
  })
  const gone = write({ status: 'failed', result: { conflict: { sha: null, text: null } } })
  expect(fileView(file, gone)).toMatchObject({ text: null, sha: null, state: 'failed' })
  expect(fileView(file, write({ status: 'cancelled' }))).toMatchObject({ text: 'Old', state: 'there' })
  expect(fileView(undefined, undefined)).toMatchObject({ text: null, sha: null })
  expect(fileView({ ...file, content: null }, undefined).text).toBeUndefined()
})
