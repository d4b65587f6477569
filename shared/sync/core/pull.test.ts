import { expect, test } from 'vitest'
import {
  newPull,
  type Place,
  type PullEffect,
  type PullEvent,
  type PullState,
  pull,
  type ShapeMessage,
} from './pull.ts'

const row = (id: string, name = 'x') => ({ id, name })
const snapshot = (id: string): ShapeMessage => ({ value: row(id), headers: { operation: 'insert' } })
const change = (
  id: string,
  lsn: number,
  op = 0,
  operation: 'insert' | 'update' | 'delete' = 'update',
): ShapeMessage => ({
  value: row(id),
  headers: { operation, lsn: String(lsn), op_position: op },
})
const end: ShapeMessage = { headers: { control: 'snapshot-end' } }
const upToDate = (lsn: number): ShapeMessage => ({
  headers: { control: 'up-to-date', global_last_seen_lsn: String(lsn) },
})
const mustRefetch: ShapeMessage = { headers: { control: 'must-refetch' } }
const answer = (messages: readonly ShapeMessage[], handle = 'h'): PullEvent => ({
  type: 'answered',
  handle,
  messages,
  replicaId: 'me',
})
const stored: Place = { handle: 'h', offset: '10_0', position: 10n }
const start = (place: Place | undefined, hasRows: boolean): PullEvent => ({ type: 'started', stored: place, hasRows })
const at = (events: readonly PullEvent[], from: PullState = newPull('contacts')) => {
  let state = from
  const effects: PullEffect[] = []
  for (const event of events) {
    const next = pull(state, event)
    state = next.state
    effects.push(...next.effects)
  }
  return { state, effects, kinds: effects.map(({ type }) => type) }
}

test('R1: a batch carries the place of its last message, whatever up-to-date says of the log', () => {
  const { effects } = at([start(stored, true), answer([change('a', 20, 2), change('b', 20, 4), upToDate(99)])])
  expect(effects[0]).toMatchObject({ type: 'apply', place: { offset: '20_4', position: 99n } })
  expect(effects[1]).toEqual({ type: 'reached', position: 99n })
})

test('R1: nothing of a snapshot has a place before its end', () => {
  const { effects } = at([start(undefined, false), answer([snapshot('a')]), answer([snapshot('b')])])
  expect(effects.map(({ type }) => type)).toEqual(['started_over', 'load', 'load'])
  const whole = at([start(undefined, false), answer([snapshot('a'), end, change('a', 30), upToDate(30)])])
  expect(whole.kinds).toEqual(['started_over', 'load', 'apply', 'apply', 'reached', 'loaded'])
  expect(whole.effects[2]).toMatchObject({ place: { offset: '0_inf' } })
})

test('R1: an up-to-date without rows moves no stored place', () => {
  expect(at([start(stored, true), answer([upToDate(50)])]).kinds).toEqual(['reached'])
})

test('R3: a failure ends the stream; what still comes of it is not looked at', () => {
  const { kinds, state } = at([start(stored, true), { type: 'failed', reason: 'disk' }, answer([change('a', 20)])])
  expect(kinds).toEqual(['restart'])
  expect(state.status).toBe('stopped')
})

test('R3: a message without id is a failure, and nothing of its answer is applied', () => {
  const broken: ShapeMessage = { value: {}, headers: { operation: 'insert', lsn: '20', op_position: 0 } }
  expect(at([start(stored, true), answer([change('a', 19), broken])]).kinds).toEqual(['restart'])
})

test('R3: each failure in a row waits longer, a batch that went in makes good for them', () => {
  const fail: PullEvent = { type: 'failed', reason: 'x' }
  const tries = at([start(stored, true), fail, start(stored, true), fail, start(stored, true), fail])
  expect(tries.effects.map((effect) => effect.type === 'restart' && effect.attempt)).toEqual([0, 1, 2])
  expect(at([start(stored, true), { type: 'applied' }, fail], tries.state).effects).toMatchObject([{ attempt: 0 }])
})

test('R4: missing rights wait, a bad request begins anew, everything else is tried again', () => {
  const failed = (status: number): PullEvent => ({ type: 'failed', reason: 'no', status })
  expect(at([start(stored, true), failed(401)]).kinds).toEqual(['set_unauthorized', 'wait_for_rights'])
  expect(at([start(stored, true), failed(403)]).kinds).toEqual(['wait_for_rights'])
  expect(at([start(stored, true), failed(400)]).effects).toMatchObject([{ type: 'restart', fromBeginning: true }])
  expect(at([start(stored, true), failed(500)]).effects).toMatchObject([{ type: 'restart', fromBeginning: false }])
})

test('R6: a refetch is staged and swapped, and says that what it had reached no longer counts', () => {
  const events = [
    start(stored, true),
    answer([mustRefetch]),
    answer([snapshot('a')], 'i'),
    answer([snapshot('b'), end], 'i'),
  ]
  const { kinds, effects } = at(events)
  expect(kinds.filter((kind) => kind !== 'started_over')).toEqual(['begin_staging', 'stage', 'stage', 'swap'])
  expect(kinds[0]).toBe('started_over')
  expect(effects.at(-1)).toMatchObject({ type: 'swap', place: { handle: 'i', offset: '0_inf', position: 0n } })
})

test('R6: another handle without a word of it is a refetch too; rows before it are dropped', () => {
  const { kinds } = at([start(stored, true), answer([snapshot('a'), end, upToDate(40)], 'another')])
  expect(kinds).toEqual(['started_over', 'begin_staging', 'stage', 'swap', 'reached', 'loaded'])
})

test('R6: a first load goes straight in, unless rows are there', () => {
  const kindsOf = (hasRows: boolean) => at([start(undefined, hasRows), answer([snapshot('a'), end])]).kinds.slice(1)
  expect(kindsOf(true)).toEqual(['begin_staging', 'stage', 'swap'])
  expect(kindsOf(false)).toEqual(['load', 'apply'])
})

test('E7: the first answer from the beginning says so, once: it may be of another log than what other tables stand in', () => {
  const events = [start(undefined, false), answer([end]), answer([change('a', 20), upToDate(20)])]
  expect(at(events).kinds.filter((kind) => kind === 'started_over')).toHaveLength(1)
  expect(at([start(stored, true), answer([change('a', 20), upToDate(20)])]).kinds).not.toContain('started_over')
})

test('an acknowledgement is a row of client_progress that is ours; its snapshot gives it no place in the log', () => {
  const progress = (replica: string, seq: number, headers: ShapeMessage['headers']): ShapeMessage => ({
    value: { id: replica, replica_id: replica, last_seq: String(seq), last_mutation_id: 'm' },
    headers,
  })
  const live = { operation: 'update' as const, lsn: '20', op_position: 0 }
  const from = newPull('client_progress')
  expect(at([start(stored, true), answer([progress('other', 9, live), upToDate(20)])], from).effects[0]).toMatchObject({
    ack: undefined,
  })
  expect(at([start(stored, true), answer([progress('me', 4, live), upToDate(20)])], from).effects[0]).toMatchObject({
    ack: { seq: 4, lsn: 20n, mutationId: 'm' },
  })
  const first = at([start(undefined, false), answer([progress('me', 4, { operation: 'insert' }), end])], from)
  expect(first.effects[2]).toMatchObject({ type: 'apply', ack: { seq: 4, lsn: undefined } })
})

test('a table is loaded when what changed since its snapshot is in too, however old the snapshot is', () => {
  const events = [
    start(undefined, false),
    answer([end]),
    answer([change('a', 20)]),
    answer([change('b', 30), upToDate(30)]),
  ]
  expect(at(events).kinds).toEqual(['started_over', 'apply', 'apply', 'apply', 'reached', 'loaded'])
})

test('R3: a stream that could not begin is tried again too, later each time', () => {
  const failing: PullEvent = { type: 'not_started', reason: 'the database is away' }
  expect(at([failing, failing]).effects).toMatchObject([
    { type: 'restart', attempt: 0, reason: 'the database is away' },
    { type: 'restart', attempt: 1 },
  ])
})
