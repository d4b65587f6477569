/** The model alone, as a state machine; that the database does the same is overlay.model.test.ts. */
import { expect, test } from 'vitest'
import { fold, newOverlay, type Overlay, type OverlayEvent, overlay, type Values } from './overlay.ts'
import type { Place } from './pull.ts'

const ME = '0197f000-0000-7000-8000-00000000000a'
const OTHER = '0197f000-0000-7000-8000-00000000000b'
const place = (offset: string, position = 1n): Place => ({ handle: 'h', offset, position })

const after = (...events: OverlayEvent[]): Overlay => events.reduce(overlay, newOverlay(ME))
let made = 0
const wrote = (set: Values, op: 'insert' | 'update' = 'update', id = '1', table = 'contacts'): OverlayEvent => ({
  type: 'wrote',
  mutationId: `m${++made}`,
  now: 1,
  changes: [{ table, id, op, set }],
})
const came = (row: Record<string, string | null>, id = '1'): OverlayEvent => ({
  type: 'apply',
  table: 'contacts',
  upserts: [{ id, ...row }],
  deletes: [],
})
const gone = (id = '1'): OverlayEvent => ({ type: 'apply', table: 'contacts', upserts: [], deletes: [id] })
const settle = (upto: number): OverlayEvent => ({ type: 'settle', replicaId: ME, upto })
const refuse = (seq: number): OverlayEvent => ({
  type: 'apply',
  table: 'mutation_results',
  upserts: [{ id: `r${seq}`, replica_id: ME, seq: String(seq), outcome: 'rejected', code: 'stale' }],
  deletes: [],
})
const acknowledge = (seq: number, offset = `${seq}_0`): OverlayEvent => ({
  type: 'apply',
  table: 'client_progress',
  upserts: [],
  deletes: [],
  place: place(offset),
  ack: { seq, lsn: BigInt(seq) },
})
const row = (state: Overlay, id = '1'): Values | undefined => state.rows.get(`contacts/${id}`)
const states = ({ outbox }: Overlay): string[] => outbox.map(({ seq, state }) => `${seq} ${state}`)

test('O1: without pending changes a row is what came; with them it is folded over what came', () => {
  const plain = after(came({ name: 'n' }), came({ name: 'm' }))
  expect(row(plain)).toEqual({ id: '1', name: 'm' })
  expect(plain.base.size).toBe(0)
  const pending = after(came({ name: 'n', title: null }), wrote({ title: 'mine' }))
  expect(pending.base.get('contacts/1')).toEqual({ id: '1', name: 'n', title: null })
  expect(row(pending)).toEqual({ id: '1', name: 'n', title: 'mine' })
})

test('O2: an insert makes the row, and is an update over its own echo', () => {
  const mine = after(wrote({ id: '1', name: 'n' }, 'insert'))
  expect(mine.base.get('contacts/1')).toBeNull()
  const echoed = overlay(mine, came({ name: 'n', notes: 'theirs' }))
  expect(row(echoed)).toEqual({ id: '1', name: 'n', notes: 'theirs' })
  expect(row(overlay(echoed, settle(1)))).toEqual({ id: '1', name: 'n', notes: 'theirs' })
})

test('O3: an update of a row that the server no longer has shows nothing, and shows again when the row comes back', () => {
  const removed = after(came({ name: 'n' }), wrote({ title: 'mine' }), gone())
  expect(row(removed)).toBeUndefined()
  expect(row(overlay(removed, came({ name: 'again' })))).toEqual({ id: '1', name: 'again', title: 'mine' })
})

test('O4: ending a mutation and folding again is the exact undo of its patches', () => {
  const two = after(came({ name: 'n', title: 'x' }), wrote({ title: 'bad', notes: 'bad' }), wrote({ title: 'good' }))
  const refused = [refuse(1), settle(1)].reduce(overlay, two)
  expect(row(refused)).toEqual({ id: '1', name: 'n', title: 'good' })
  const both = [refuse(2), settle(2)].reduce(overlay, refused)
  expect(row(both)).toEqual({ id: '1', name: 'n', title: 'x' })
  expect(both.base.size).toBe(0)
})

test('O5: what comes for a row with pending changes goes below them', () => {
  const state = after(came({ name: 'n', title: 'x' }), wrote({ title: 'mine' }), came({ name: 'm', title: 'theirs' }))
  expect(row(state)).toMatchObject({ name: 'm', title: 'mine' })
  expect(row(overlay(state, settle(1)))).toMatchObject({ name: 'm', title: 'theirs' })
})

test('O6: numbers have no gaps, and an entry leaves only settled or given up', () => {
  const state = after(
    wrote({ id: '1', name: 'n' }, 'insert'),
    wrote({ name: 'n' }), // no change: no number
    wrote({ title: 'x' }, 'update', 'nobody'),
    wrote({ id: '2', name: 'n' }, 'insert', '2'),
  )
  expect(states(state)).toEqual(['1 pending', '2 pending'])
  const refused = [{ type: 'accept', replicaId: ME, upto: 2 } as const, refuse(1), settle(2)].reduce(overlay, state)
  expect(states(refused)).toEqual(['1 rejected'])
  expect(states(overlay(refused, settle(9)))).toEqual(['1 rejected'])
  expect(states(overlay(refused, { type: 'discard', seq: 1 }))).toEqual([])
  expect(refused.next).toBe(3)
})

test('O6: what is said under another identity changes nothing', () => {
  const state = after(wrote({ id: '1', name: 'n' }, 'insert'))
  for (const event of [
    { type: 'accept', replicaId: OTHER, upto: 9 },
    { type: 'realign', replicaId: OTHER, expected: 9 },
    { type: 'settle', replicaId: OTHER, upto: 9 },
  ] as const)
    expect(overlay(state, event)).toEqual(state)
})

test('O6: under a new identity what waits is numbered from 1, what was refused stays aside, and its row stays pending', () => {
  const state = after(
    wrote({ id: '1', name: 'n' }, 'insert'),
    wrote({ id: '2', name: 'n' }, 'insert', '2'),
    acknowledge(1),
    refuse(1),
    settle(1),
    { type: 'remint', replicaId: OTHER },
  )
  expect(states(state)).toEqual(['-1 rejected', '1 pending'])
  expect(state).toMatchObject({ replicaId: OTHER, next: 2, ack: undefined })
  expect([...state.shapes.keys(), ...state.rows.keys()]).toEqual(['contacts/2'])
})

test('O7: acknowledgements fetched anew replace what was known; what they do not cover is pending again', () => {
  const known = after(wrote({ id: '1' }, 'insert'), wrote({ id: '2' }, 'insert', '2'), acknowledge(2))
  expect(states(known)).toEqual(['1 accepted', '2 accepted'])
  // A late one says nothing new; a snapshot says all there is.
  expect(overlay(known, acknowledge(1)).ack).toMatchObject({ seq: 2 })
  const anew = overlay(known, acknowledge(1, '0_inf'))
  expect(states(anew)).toEqual(['1 accepted', '2 pending'])
  expect(anew.ack).toMatchObject({ seq: 1 })
})

test('O7: a server that expects a number which it had acknowledged makes that acknowledgement void', () => {
  const known = after(wrote({ id: '1' }, 'insert'), wrote({ id: '2' }, 'insert', '2'), acknowledge(2))
  const realigned = overlay(known, { type: 'realign', replicaId: ME, expected: 2 })
  expect(states(realigned)).toEqual(['1 accepted', '2 pending'])
  expect(realigned.ack).toBeUndefined()
  expect(overlay(known, { type: 'realign', replicaId: ME, expected: 3 }).ack).toMatchObject({ seq: 2 })
})

test('O8: a transaction leaves one patch per row: what it began from and what it ended with', () => {
  const change = (op: 'insert' | 'update' | 'delete', set: Values, id = '1') => ({ table: 'contacts', id, op, set })
  const state = after(came({ name: 'n', title: 'x', deleted_at: null }), {
    type: 'wrote',
    mutationId: 'm',
    now: 1,
    changes: [
      change('update', { name: 'a', title: 'y' }),
      change('update', { name: 'b', title: 'x' }),
      change('insert', { id: '2', name: 'c' }, '2'),
      change('update', { name: 'd', notes: null }, '2'),
      change('insert', { id: '3', name: 'e' }, '3'),
      change('delete', { deleted_at: 'now' }, '3'),
    ],
  })
  expect(state.outbox[0]?.patches).toEqual([
    { table: 'contacts', id: '1', op: 'update', set: { name: 'b' }, base: { name: 'n' } },
    { table: 'contacts', id: '2', op: 'insert', set: { id: '2', name: 'd' }, base: {} },
  ])
  expect(row(state, '3')).toBeUndefined()
})

test('O9: a set shows what was added and removed, over whatever the server has', () => {
  const state = after(came({ name: 'n', tags: '{a,b}' }), wrote({ tags: ['b', 'mine'] }))
  expect(row(state)).toMatchObject({ tags: ['b', 'mine'] })
  const moved = overlay(state, came({ name: 'n', tags: '{a,b,theirs}' }))
  expect(row(moved)).toMatchObject({ tags: ['b', 'theirs', 'mine'] })
  // Its own echo changes nothing more.
  expect(row(overlay(moved, came({ name: 'n', tags: '{b,theirs,mine}' })))).toMatchObject({
    tags: ['b', 'theirs', 'mine'],
  })
})

test('O9: a sum adds its difference to whatever the server has', () => {
  const rules = () => ({ n: 'increment' as const })
  const patch = { table: 'counters', op: 'update' as const, set: { n: '13' }, base: { n: '10' } }
  expect(fold({ n: '20' }, [patch, { ...patch, set: { n: '14' }, base: { n: '13' } }], rules)).toEqual({ n: '24' })
  expect(fold({ n: '20' }, [{ ...patch, op: 'insert', base: {} }], rules)).toEqual({ n: '20' })
})

test('R1: a position is stored with the rows that it stands for, and a load has none', () => {
  const loaded = after({ type: 'load', table: 'contacts', rows: [{ id: '1', name: 'n' }] })
  expect(loaded.shapes.size).toBe(0)
  const applied = overlay(loaded, { ...came({ name: 'm' }), place: place('7_0', 7n) } as OverlayEvent)
  expect([row(applied), applied.shapes.get('contacts')]).toEqual([{ id: '1', name: 'm' }, place('7_0', 7n)])
})

test('R6: old rows stay until the swap, which takes away what is gone and keeps what is pending', () => {
  const before = after(
    came({ name: 'old' }),
    came({ name: 'other' }, '2'),
    wrote({ id: '3', name: 'mine' }, 'insert', '3'),
  )
  const staged = (
    [
      { type: 'begin_staging', table: 'contacts' },
      { type: 'stage', table: 'contacts', rows: [{ id: '1', name: 'new' }] },
    ] as const
  ).reduce<Overlay>(overlay, before)
  expect(row(staged)).toMatchObject({ name: 'old' })
  expect(staged.shapes.has('contacts')).toBe(false)
  const swapped = overlay(staged, { type: 'swap', table: 'contacts', place: place('0_inf'), ack: undefined })
  expect([...swapped.rows.keys()].sort()).toEqual(['contacts/1', 'contacts/3'])
  expect(row(swapped)).toMatchObject({ name: 'new' })
  expect(swapped.staging.size).toBe(0)
})
