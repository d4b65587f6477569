import { tables } from '@hq/shared/schema/tables.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Clock, type MergeInput, mergeUpdate, type Values } from './merge.ts'
import { sameValue, unstorable } from './values.ts'

const clock = (n: number, who = 'r'): Clock => ({
  h: `${n.toString(16).padStart(12, '0')}-0000-${who}`,
  t: 'human',
  i: who,
})
const merge = (input: Partial<MergeInput> & { present: Values; set: Values }) =>
  mergeUpdate({ table: tables.tasks, clocks: {}, base: {}, clock: clock(5), isOwner: false, ...input })

describe('merge', () => {
  test('M2: whatever the order of arrival, the same value wins', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.record({ at: fc.integer({ min: 2, max: 9_999 }), title: fc.string({ minLength: 1 }) }), {
          minLength: 2,
          maxLength: 6,
          selector: ({ at }) => at,
        }),
        fc.infiniteStream(fc.nat()),
        (edits, chance) => {
          const run = (order: typeof edits): unknown => {
            let present: Values = { title: 'base' }
            let clocks = { '*': clock(1) }
            for (const { at, title } of order) {
              const merged = merge({ present, clocks, set: { title }, base: { title: 'base' }, clock: clock(at) })
              if (!merged.ok) throw new Error(merged.message)
              present = { ...present, ...merged.set }
              clocks = { ...clocks, ...merged.clocks }
            }
            return present['title']
          }
          const shuffled = [...edits]
            .map((edit) => [chance.next().value as number, edit] as const)
            .sort(([a], [b]) => a - b)
            .map(([, edit]) => edit)
          // All saw 'base'; an edit that sets just that is no edit.
          fc.pre(edits.every(({ title }) => title !== 'base'))
          const latest = [...edits].sort((a, b) => b.at - a.at)[0]?.title
          // The first to arrive saw the present value and is taken as it is (M1); from then on clocks decide.
          expect(run(shuffled)).toBe(latest)
        },
      ),
    )
  })

  test('M2: nothing is lost without a trace', () => {
    const late = merge({
      present: { title: 'theirs' },
      clocks: { title: clock(9, 'x') },
      set: { title: 'mine' },
      base: { title: 'old' },
    })
    expect(late).toMatchObject({
      ok: true,
      set: {},
      conflicts: [{ winner: 'theirs', loser: 'mine', incomingLost: true }],
    })
    const early = merge({
      present: { title: 'theirs' },
      clocks: { '*': clock(1, 'x') },
      set: { title: 'mine' },
      base: { title: 'old' },
    })
    expect(early).toMatchObject({ ok: true, set: { title: 'mine' }, conflicts: [{ winner: 'mine', loser: 'theirs' }] })
    expect(merge({ present: { title: 'same' }, set: { title: 'same' }, base: { title: 'old' } })).toMatchObject({
      set: {},
      conflicts: [],
    })
  })

  test('M5: a column that nobody has changed since has the clock of the insert; without that, any is later', () => {
    const input = { present: { title: 'theirs' }, set: { title: 'mine' }, base: { title: 'old' } }
    expect(merge({ ...input, clocks: { '*': clock(9), priority: clock(1) } })).toMatchObject({
      set: {},
      conflicts: [{ incomingLost: true, winnerClock: clock(9) }],
    })
    expect(merge({ ...input, clocks: { '*': clock(1), priority: clock(9) } })).toMatchObject({ set: { title: 'mine' } })
    expect(merge({ ...input, clocks: { '*': clock(1), title: clock(9) } })).toMatchObject({ set: {} })
    expect(merge(input)).toMatchObject({
      set: { title: 'mine' },
      conflicts: [{ loser: 'theirs', loserClock: undefined }],
    })
  })

  test('M3: strict, immutable, server, owner', () => {
    const link = (present: Values, set: Values, base: Values) =>
      merge({ table: tables.entity_links, present, set, base })
    expect(
      link({ review_status: 'submitted' }, { review_status: 'approved' }, { review_status: 'submitted' }),
    ).toMatchObject({ ok: true, set: { review_status: 'approved' } })
    expect(
      link({ review_status: 'rejected' }, { review_status: 'approved' }, { review_status: 'submitted' }),
    ).toMatchObject({ ok: false, code: 'stale' })
    expect(link({ owner_id: 'a' }, { owner_id: 'b' }, { owner_id: 'a' })).toMatchObject({
      ok: false,
      code: 'immutable',
    })
    expect(merge({ present: { updated_at: 'a' }, set: { updated_at: 'b' } })).toMatchObject({ ok: true, set: {} })
    const owned = {
      table: tables.agents,
      present: { status: 'ready' },
      set: { status: 'paused' },
      base: { status: 'whatever' },
    }
    expect(merge(owned)).toMatchObject({ ok: false, code: 'forbidden' })
    expect(merge({ ...owned, isOwner: true })).toMatchObject({ ok: true, set: { status: 'paused' } })
  })

  test('M4: deletes win, restoring takes having seen the delete', () => {
    const at = '2026-01-01T00:00:00+00:00'
    expect(merge({ present: { deleted_at: null }, set: { deleted_at: at } })).toMatchObject({ set: { deleted_at: at } })
    expect(merge({ present: { deleted_at: at }, set: { deleted_at: null }, base: { deleted_at: null } })).toMatchObject(
      { set: {} },
    )
    expect(
      merge({
        present: { deleted_at: at },
        set: { deleted_at: null },
        base: { deleted_at: '2026-01-01T01:00:00+01:00' },
      }),
    ).toMatchObject({ set: { deleted_at: null } })
  })
})

describe('values', () => {
  test('equal as Postgres sees it', () => {
    const same: [Parameters<typeof sameValue>[0], unknown, unknown, boolean][] = [
      ['numeric', '1.0', '1.00', true],
      ['numeric', '10', '1', false],
      ['numeric', '-0', '0', true],
      ['bigint', '9007199254740993', '9007199254740992', false],
      ['double precision', '1e2', '100', true],
      ['timestamptz', '2026-01-01T00:00:00.000001+00:00', '2026-01-01T00:00:00.000002+00:00', false],
      ['timestamptz', '2026-01-01 01:00:00+01:00', '2026-01-01T00:00:00Z', true],
      ['jsonb', { a: 1, b: [null, {}] }, { b: [null, {}], a: 1 }, true],
      ['jsonb', { a: 1 }, { b: 1 }, false],
      ['text[]', ['a'], ['a', 'b'], false],
      ['text', null, undefined, true],
      ['text', '', null, false],
    ]
    for (const [type, a, b, expected] of same)
      expect([type, a, b, sameValue(type, a, b)]).toEqual([type, a, b, expected])
  })

  test('what cannot be stored', () => {
    expect(unstorable({ a: ['fine', { b: 'ü😀' }] })).toBeUndefined()
    expect(unstorable({ a: ['x\0'] })).toMatch(/NUL/)
    expect(unstorable({ 'k\ud800': 1 })).toMatch(/surrogate/)
  })
})
