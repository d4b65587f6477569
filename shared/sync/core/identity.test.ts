import { expect, test } from 'vitest'
import { foreignAck, identify, type Presented, type Remembered } from './identity.ts'

const known: Remembered = { replicaId: 'r', tenantId: 't', ownerId: 'o', guard: 'g' }
const presented: Presented = { tenantId: 't', ownerId: 'o', kind: 'browser', guard: 'g' }

test('I1: the same guard is the same replica; another one is a copy; the first one is remembered', () => {
  expect(identify(known, presented)).toEqual({ type: 'same' })
  expect(identify(known, { ...presented, guard: undefined })).toEqual({ type: 'same' })
  expect(identify(known, { ...presented, guard: 'h' })).toEqual({ type: 'copy', guard: 'h' })
  expect(identify({ ...known, guard: null }, presented)).toEqual({ type: 'remember_guard', guard: 'g' })
})

test('I2: a database of another workspace, person or gateway is not opened, whatever its guard', () => {
  for (const [other, whose] of [
    [{ tenantId: 'u' }, 'workspace'],
    [{ ownerId: 'p' }, 'person'],
    [{ ownerId: 'p', kind: 'gateway' as const }, 'gateway'],
  ] as const) {
    const found = identify(known, { ...presented, ...other })
    expect(found).toEqual({ type: 'foreign', message: expect.stringContaining(`another ${whose}`) })
  }
})

test('I3: an acknowledgement of a number never given, or given to another mutation, is somebody else’s', () => {
  const ack = { seq: 4, lsn: 1n, mutationId: 'm' }
  expect(foreignAck(ack, { next: 5, mutationId: 'm' })).toBeUndefined()
  expect(foreignAck(ack, { next: 5, mutationId: undefined }), 'settled here long ago').toBeUndefined()
  expect(foreignAck({ ...ack, mutationId: undefined }, { next: 5, mutationId: 'm' }), 'an older server').toBeUndefined()
  expect(foreignAck(ack, { next: 4, mutationId: undefined })).toMatch(/never made here/)
  expect(foreignAck(ack, { next: 5, mutationId: 'n' })).toMatch(/another mutation 4/)
})

test('I3: a stored acknowledgement that is somebody else’s makes the database a copy at the next start', () => {
  expect(identify(known, presented, 'never made')).toEqual({ type: 'copy', guard: 'g' })
})
