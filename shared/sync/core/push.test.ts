import { expect, test } from 'vitest'
import { newPush, type PushEffect, type PushEvent, type PushState, push } from './push.ts'

const MOST = 10
const ME = 'me'
const at = (events: readonly PushEvent[], from: PushState = newPush(ME, MOST)) => {
  let state = from
  let effects: readonly PushEffect[] = []
  for (const event of events) ({ state, effects } = push(state, event, MOST))
  return { state, effects, kinds: effects.map(({ type }) => type) }
}
const read = (first: number, count: number, replicaId = ME): PushEvent => ({ type: 'read', replicaId, first, count })
const sending: PushEvent[] = [{ type: 'poked' }, read(1, 3)]
const refused = (status: number, code: string, more: { expected_seq?: number } = {}): PushEvent => ({
  type: 'refused',
  replicaId: ME,
  status,
  body: { code, message: code, ...more },
  retryAfterMs: 0,
})
const accepted = (last: number): PushEvent => ({
  type: 'accepted',
  replicaId: ME,
  answer: { last_seq: last, results: [{ seq: last, outcome: 'applied' }] },
})
const looked = (next: number, held: boolean, replicaId = ME): PushEvent => ({ type: 'looked', replicaId, next, held })

test('W1: one batch at a time; what is written meanwhile is read when it is done', () => {
  const { state, kinds } = at([...sending, { type: 'poked' }, { type: 'poked' }])
  expect([state.doing, kinds]).toEqual(['sending', []])
  expect(at([...sending, accepted(3), looked(4, true), { type: 'stored' }]).effects).toEqual([
    { type: 'read', most: MOST },
  ])
})

test('W2: an answer marks what was sent as accepted, never what lies beyond it', () => {
  const { effects } = at([...sending, accepted(5), looked(9, true)])
  expect(effects).toContainEqual({ type: 'accept', replicaId: ME, upto: 3, applied: [5] })
})

test('W3: numbers that the server misses are sent again while they are held', () => {
  const { effects } = at([...sending, refused(409, 'out_of_order', { expected_seq: 1 }), looked(4, true)])
  expect(effects).toContainEqual({ type: 'realign', replicaId: ME, expected: 1 })
})

test('W3: what is not held, was never made, or was made by somebody else leads to a new identity', () => {
  const expecting = (expected: number) => [...sending, refused(409, 'out_of_order', { expected_seq: expected })]
  expect(at([...expecting(1), looked(4, false)]).kinds).toEqual(['renew'])
  expect(at([...expecting(9), looked(4, false)]).kinds).toEqual(['renew'])
  expect(at([...sending, accepted(9), looked(4, true)]).kinds).toEqual(['renew'])
  expect(at([...sending, refused(409, 'identity_taken')]).kinds).toEqual(['renew'])
})

test('W3: a server that keeps expecting the same number is asked again later, not in a circle', () => {
  const conflict = refused(409, 'out_of_order', { expected_seq: 1 })
  const once = at([...sending, conflict, looked(4, true), { type: 'stored' }, read(1, 3)])
  expect(at([conflict], once.state).kinds).toEqual(['log', 'sleep'])
})

test('W4: without rights or with the wrong schema the outbox waits, and is tried again', () => {
  for (const [status, code] of [
    [403, 'revoked'],
    [426, 'schema_too_new'],
    [400, 'malformed'],
  ] as const) {
    const { effects, state } = at([...sending, refused(status, code)])
    expect(effects).toEqual([
      { type: 'set_parked', reason: code },
      { type: 'sleep', why: 'parked' },
    ])
    expect(at([{ type: 'woke' }], state).kinds).toEqual(['read'])
    expect(at([{ type: 'woke' }, read(1, 3), refused(status, code)], state).kinds, 'said once').toEqual(['sleep'])
  }
  expect(at([...sending, refused(401, 'unauthenticated')]).effects).toContainEqual({
    type: 'set_unauthorized',
    unauthorized: true,
  })
})

test('W4: too large a push is sent in smaller ones; a single one that is too large waits', () => {
  expect(at([...sending, refused(413, 'too_large')]).effects).toEqual([{ type: 'read', most: 1 }])
  expect(at([{ type: 'poked' }, read(1, 1), refused(413, 'too_large')]).kinds).toEqual(['set_parked', 'sleep'])
})

test('W5: what was read, asked or answered under a former identity marks nothing', () => {
  const renewed: PushEvent = { type: 'renewed', replicaId: 'other' }
  expect(at([...sending, renewed, accepted(3)]).kinds).toEqual(['read'])
  expect(at([...sending, accepted(3), renewed, looked(4, true)]).kinds).toEqual(['read'])
  expect(at([...sending, accepted(3), renewed, looked(4, true, 'other')]).kinds).toEqual(['read'])
  expect(at([{ type: 'poked' }, renewed, read(1, 3)]).kinds).toEqual(['read'])
})

test('W5: an idle pusher that gets a new name looks whether something is pending under it', () => {
  expect(at([{ type: 'poked' }, read(0, 0), { type: 'renewed', replicaId: 'other' }]).kinds).toEqual(['read'])
})
