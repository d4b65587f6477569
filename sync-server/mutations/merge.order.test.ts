/**
 * Merging in whatever order the mutations of several replicas arrive, each replica's own in its order. Nobody sees anything of the others before the end,
 * which is the worst case: what is seen is no conflict.
 */
import { c, table } from '@hq/shared/schema/columns.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Clock, type Clocks, type Conflict, mergeUpdate, type Values } from './merge.ts'

const things = table(
  'things',
  { group: 'core', visibility: { browser: 'tenant', gateway: 'none' }, write: { browser: 'member', gateway: 'none' } },
  {
    title: c.text(),
    place: c.int().merge('last'),
    tags: c.texts().merge('add_remove'),
    count: c.bigint().merge('increment'),
  },
)
const START: Values = { title: 'start', place: 0, tags: ['a', 'b', 'c'], count: '10', deleted_at: null }

interface Mutation {
  readonly replica: number
  readonly clock: Clock
  readonly set: Values
  readonly base: Values
}

/** What a replica does next. */
interface Act {
  readonly title: boolean
  readonly place: boolean
  readonly remove: string | undefined
  readonly add: string | undefined
  readonly count: number
  readonly deleted: 'no' | 'toggle'
  readonly wait: number
}
const acts = fc.array(
  fc.record({
    title: fc.boolean(),
    place: fc.boolean(),
    remove: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }),
    add: fc.option(fc.constantFrom('x', 'y', 'z'), { nil: undefined }),
    count: fc.integer({ min: -3, max: 3 }),
    deleted: fc.constantFrom('no' as const, 'no' as const, 'toggle' as const),
    wait: fc.integer({ min: 1, max: 9 }),
  }),
  { minLength: 1, maxLength: 4 },
)

/** A replica's mutations, each made on what it has itself. */
function mutationsOf(replica: number, todo: readonly Act[], mayDelete: boolean): Mutation[] {
  const seen: Values = { ...START }
  let at = 1
  return todo.map(({ title, place, remove, add, count, deleted, wait }, n) => {
    at += wait
    const tags = (seen['tags'] as string[]).filter((tag) => tag !== remove)
    const set: Values = {
      // No two alike: equal values agree, which is another matter.
      ...(title && { title: `title ${replica}.${n}` }),
      ...(place && { place: 10 * replica + n + 1 }),
      ...((remove || add) && { tags: add && !tags.includes(add) ? [...tags, add] : tags }),
      ...(count !== 0 && { count: String(Number(seen['count']) + count) }),
      ...(mayDelete &&
        deleted === 'toggle' && {
          deleted_at: seen['deleted_at'] === null ? new Date(1.7e12 + at * 1000 + replica).toISOString() : null,
        }),
    }
    const base = Object.fromEntries(Object.keys(set).map((column) => [column, seen[column]]))
    Object.assign(seen, set)
    const clock: Clock = { h: `${at.toString(16).padStart(12, '0')}-0000-${replica}`, t: 'human', i: String(replica) }
    return { replica, clock, set, base }
  })
}

interface Outcome {
  readonly row: Values
  readonly conflicts: readonly Conflict[]
}

function arrive(mutations: readonly Mutation[]): Outcome {
  let row = START
  let clocks: Clocks = { '*': { h: '000000000000-0000-0', t: 'human', i: null } }
  const conflicts: Conflict[] = []
  for (const { set, base, clock } of mutations) {
    const merged = mergeUpdate({ table: things, present: row, clocks, set, base, clock, isOwner: false })
    if (!merged.ok) throw new Error(merged.message)
    row = { ...row, ...merged.set }
    clocks = { ...clocks, ...merged.clocks }
    conflicts.push(...merged.conflicts)
  }
  return { row, conflicts }
}

/** All mutations in an order that the numbers choose. */
function interleaved(replicas: readonly (readonly Mutation[])[], choices: readonly number[]): Mutation[] {
  const left = replicas.map((list) => [...list])
  const order: Mutation[] = []
  for (let n = 0; left.some((list) => list.length > 0); n++) {
    const waiting = left.filter((list) => list.length > 0)
    const next = waiting[(choices[n % choices.length] ?? 0) % waiting.length]?.shift()
    if (next) order.push(next)
  }
  return order
}

const orders = fc.array(fc.nat(5), { minLength: 12, maxLength: 12 })
const scene = fc.record({ todo: fc.array(acts, { minLength: 2, maxLength: 3 }), one: orders, other: orders })
const later = (a: Mutation, b: Mutation): Mutation => (a.clock.h > b.clock.h ? a : b)
const latest = (mutations: readonly Mutation[], column: string): Mutation | undefined => {
  const all = mutations.filter(({ set }) => Object.hasOwn(set, column))
  return all.length > 0 ? all.reduce(later) : undefined
}

describe('whatever the order of arrival', () => {
  test('M2: the latest value stands, and what each other replica last said is kept; of `last` nothing is', () => {
    fc.assert(
      fc.property(scene, ({ todo, one }) => {
        const replicas = todo.map((list, n) => mutationsOf(n, list, false))
        const { row, conflicts } = arrive(interleaved(replicas, one))
        for (const column of ['title', 'place']) {
          const winner = latest(replicas.flat(), column)
          expect(row[column]).toBe(winner?.set[column] ?? START[column])
          const losers = replicas
            .map((list) => latest(list, column))
            .filter((mutation) => mutation && mutation.replica !== winner?.replica)
            .map((mutation) => mutation?.set[column])
          const kept = conflicts.filter((conflict) => conflict.column === column).map(({ loser }) => loser)
          if (column === 'place') expect(kept).toEqual([])
          else expect(kept).toEqual(expect.arrayContaining(losers))
        }
      }),
    )
  })

  test('M6: sets and sums come out the same, nobody’s change missing, and are no conflicts', () => {
    fc.assert(
      fc.property(scene, ({ todo, one, other }) => {
        const replicas = todo.map((list, n) => mutationsOf(n, list, false))
        const first = arrive(interleaved(replicas, one))
        const second = arrive(interleaved(replicas, other))
        const tags = ({ row }: Outcome): string[] => [...(row['tags'] as string[])].sort()
        const removed = new Set<string | undefined>(todo.flat().map(({ remove }) => remove))
        const added = todo.flat().flatMap(({ add }) => add ?? [])
        const expected = [...new Set([...['a', 'b', 'c'].filter((tag) => !removed.has(tag)), ...added])].sort()
        expect([tags(first), tags(second)]).toEqual([expected, expected])
        const total = todo.flat().reduce((sum, { count }) => sum + count, 10)
        expect([first.row['count'], second.row['count']]).toEqual([String(total), String(total)])
        const columns = [...first.conflicts, ...second.conflicts].map(({ column }) => column)
        expect(columns.filter((column) => column !== 'title')).toEqual([])
      }),
    )
  })

  test('M4: deletes win over everything that did not see them, an undo of another’s delete included', () => {
    fc.assert(
      fc.property(scene, ({ todo, one }) => {
        const replicas = todo.map((list, n) => mutationsOf(n, list, true))
        const { row } = arrive(interleaved(replicas, one))
        const ends = replicas.map((list) => list.findLast(({ set }) => Object.hasOwn(set, 'deleted_at')))
        if (ends.some((last) => last && last.set['deleted_at'] !== null)) expect(row['deleted_at']).not.toBeNull()
      }),
    )
  })

  test('M4: an undo restores, with all that was written meanwhile', () => {
    fc.assert(
      fc.property(scene, ({ todo, one }) => {
        const replicas = todo.map((list, n) => mutationsOf(n, list, n === 0))
        const { row } = arrive(interleaved(replicas, one))
        const last = replicas[0]?.findLast(({ set }) => Object.hasOwn(set, 'deleted_at'))
        expect(row['deleted_at']).toBe(last?.set['deleted_at'] ?? null)
        expect(row['title']).toBe(latest(replicas.flat(), 'title')?.set['title'] ?? 'start')
      }),
    )
  })
})

test('M4: who has seen both deletes undoes both', () => {
  const [early, late] = ['2026-01-01T10:00:00.000001+00:00', '2026-01-01T11:00:00.5+00:00']
  const clock: Clock = { h: '00000000000a-0000-1', t: 'human', i: '1' }
  const merge = (present: unknown, base: unknown, set: unknown) =>
    mergeUpdate({
      ...{ table: things, clocks: {}, clock, isOwner: false },
      ...{ present: { deleted_at: present }, base: { deleted_at: base }, set: { deleted_at: set } },
    })
  const both = '2026-01-01T11:00:00.500001Z'
  expect(merge(early, null, late)).toMatchObject({ set: { deleted_at: both } })
  expect(merge(late, null, early)).toMatchObject({ set: { deleted_at: both } })
  expect(merge(both, early, null)).toMatchObject({ set: {} })
  expect(merge(both, late, null)).toMatchObject({ set: {} })
  expect(merge(both, both, null)).toMatchObject({ set: { deleted_at: null } })
  expect(merge('infinity', null, late)).toMatchObject({ set: {} })
})

test('M6: what cannot be counted with is refused, not guessed', () => {
  const clock: Clock = { h: '00000000000a-0000-1', t: 'human', i: '1' }
  const merge = (base: Values, set: Values) =>
    mergeUpdate({ table: things, present: START, clocks: {}, base, set, clock, isOwner: false })
  expect(merge({ tags: ['a'] }, { tags: 'b' })).toMatchObject({ ok: false, code: 'invalid', column: 'tags' })
  expect(merge({ tags: { a: 1 } }, { tags: ['b'] })).toMatchObject({ ok: false, code: 'invalid' })
  expect(merge({ count: 'many' }, { count: 5 })).toMatchObject({ ok: false, code: 'invalid', column: 'count' })
  expect(merge({ count: '10' }, { count: 'NaN' })).toMatchObject({ ok: false, code: 'invalid' })
})

test('M6: a long list of strangers’ making takes no time to speak of', () => {
  const many = Array.from({ length: 200_000 }, (_, n) => `tag ${n}`)
  const clock: Clock = { h: '00000000000a-0000-1', t: 'human', i: '1' }
  const input = { table: things, clocks: {}, clock, isOwner: false, present: { tags: many } }
  const merged = mergeUpdate({ ...input, base: { tags: [...many].reverse() }, set: { tags: ['only'] } })
  expect(merged).toMatchObject({ ok: true, set: { tags: ['only'] } })
})
