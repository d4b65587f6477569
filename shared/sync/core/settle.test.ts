import { expect, test } from 'vitest'
import {
  type Acknowledgement,
  addAck,
  newSettle,
  placeAcks,
  type SettleEvent,
  settle,
  type Unsettled,
  settleable as verdict,
} from './settle.ts'

const positions = (entries: Record<string, number>) =>
  new Map(Object.entries(entries).map(([table, at]) => [table, BigInt(at)]))
const settleable = (unsettled: Unsettled[], acks: readonly Acknowledgement[], at: ReadonlyMap<string, bigint>) =>
  verdict({ unsettled, acks, positions: at })
const all = { tasks: 100, comments: 100, mutation_results: 100, client_progress: 1000 }

test('E1: a mutation waits for every shape that it touched', () => {
  const unsettled = [{ seq: 1, tables: ['tasks', 'comments'] }]
  const acks = [{ seq: 1, lsn: 50n }]
  expect(settleable(unsettled, acks, positions({ ...all, comments: 49 }))).toEqual({ upto: 0, lagging: ['comments'] })
  expect(settleable(unsettled, acks, positions({ ...all, comments: 50 }))).toEqual({ upto: 1, lagging: [] })
})

test('E1: without the answer of the push it also waits for the shape with refusals', () => {
  const acks = [{ seq: 1, lsn: 50n }]
  const at = positions({ ...all, mutation_results: 49 })
  expect(settleable([{ seq: 1, tables: ['tasks'] }], acks, at).lagging).toEqual(['mutation_results'])
  expect(settleable([{ seq: 1, tables: ['tasks'], applied: true }], acks, at).upto).toBe(1)
})

test('E1: a table that this replica does not sync holds nothing up', () => {
  expect(settleable([{ seq: 1, tables: ['audit_log'] }], [{ seq: 1, lsn: 50n }], positions(all)).upto).toBe(1)
})

test('E2: a later mutation does not settle before an earlier one', () => {
  const unsettled = [
    { seq: 1, tables: ['comments'] },
    { seq: 2, tables: ['tasks'] },
  ]
  const verdict = settleable(unsettled, [{ seq: 2, lsn: 50n }], positions({ ...all, comments: 10 }))
  expect(verdict).toEqual({ upto: 0, lagging: ['comments'] })
})

test('E1: the smallest acknowledgement that covers a mutation decides, so that a busy writer is not held up by its newest one', () => {
  const unsettled = [
    { seq: 1, tables: ['tasks'] },
    { seq: 2, tables: ['tasks'] },
  ]
  const acks = [
    { seq: 1, lsn: 90n },
    { seq: 2, lsn: 200n },
  ]
  expect(settleable(unsettled, acks, positions(all))).toEqual({ upto: 1, lagging: ['tasks', 'mutation_results'] })
})

test('an acknowledgement out of a snapshot counts once its shape has said where it stands', () => {
  const acks = addAck([], { seq: 3, lsn: undefined }, 1)
  expect(settleable([{ seq: 3, tables: [] }], acks, positions(all)).lagging).toEqual(['client_progress'])
  expect(settleable([{ seq: 3, tables: [] }], placeAcks(acks, 80n), positions(all)).upto).toBe(3)
})

test('acknowledgements nobody waits for are dropped; of two for one seq the earlier position stays', () => {
  const acks = addAck(
    [
      { seq: 1, lsn: 10n },
      { seq: 2, lsn: 20n },
    ],
    { seq: 3, lsn: 30n },
    2,
  )
  expect(acks.map(({ seq }) => seq)).toEqual([2, 3])
  expect(addAck(acks, { seq: 3, lsn: 99n }, 2)).toEqual(acks)
})

const run = (events: readonly SettleEvent[]) => {
  let state = newSettle('r1', ['tasks', 'client_progress', 'mutation_results'])
  const effects = []
  for (const event of events) {
    const next = settle(state, event)
    state = next.state
    effects.push(...next.effects)
  }
  return { state, effects }
}
const wrote: SettleEvent = { type: 'wrote', seq: 1, tables: ['tasks'] }
const acknowledged: SettleEvent = { type: 'acknowledged', ack: { seq: 1, lsn: 50n } }
const reached = (table: string, at: bigint): SettleEvent => ({ type: 'reached', table, position: at })

test('E4: a shape that lags behind an acknowledgement is watched, then asked', () => {
  const { effects, state } = run([wrote, acknowledged])
  expect(effects).toEqual([{ type: 'watch', afterMs: 50 }])
  expect(settle(state, { type: 'looked' }).effects).toEqual([
    { type: 'refresh', table: 'tasks' },
    { type: 'refresh', table: 'client_progress' },
    { type: 'refresh', table: 'mutation_results' },
    { type: 'watch', afterMs: 1000 },
  ])
})

test('E5: a settling that was begun under a former identity ends nothing of the new one', () => {
  const everywhere = ['tasks', 'mutation_results', 'client_progress'].map((table) => reached(table, 60n))
  const { state, effects } = run([wrote, ...everywhere, acknowledged])
  expect(effects).toEqual([{ type: 'settle', replicaId: 'r1', upto: 1 }])
  const renewed = settle(state, {
    type: 'loaded',
    replicaId: 'r2',
    unsettled: [{ seq: 1, tables: ['tasks'] }],
    acks: [],
  })
  const late = settle(renewed.state, { type: 'settled', replicaId: 'r1', upto: 1 })
  expect(late.state.unsettled).toEqual([{ seq: 1, tables: ['tasks'] }])
})

test('E6: what was acknowledged before a restore does not settle anything after it', () => {
  const { effects } = run([
    wrote,
    { type: 'applied', seqs: new Set([1]) },
    acknowledged,
    { type: 'forgot' },
    reached('tasks', 90n),
    reached('client_progress', 90n),
  ])
  expect(effects.filter(({ type }) => type === 'settle')).toEqual([])
})

test('E7: an acknowledgement of before does not settle while its own shape has not spoken in the log that the others are in', () => {
  const before = run([wrote, acknowledged, reached('client_progress', 60n)]).state
  const anew = settle(settle(before, { type: 'started_over', table: 'tasks' }).state, reached('tasks', 900n))
  const results = settle(anew.state, reached('mutation_results', 900n))
  expect(results.effects.filter(({ type }) => type === 'settle')).toEqual([])
  expect(settle(results.state, reached('client_progress', 900n)).effects).toContainEqual({
    type: 'settle',
    replicaId: 'r1',
    upto: 1,
  })
})
