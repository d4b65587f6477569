import { describe, expect, it } from 'vitest'
import { between, type Ordered, place } from './order.ts'

const list = (...orders: number[]): Ordered[] => orders.map((sort_order, i) => ({ id: `t${i}`, sort_order }))
const moved: Ordered = { id: 'm', sort_order: 99 }

function after(others: Ordered[], index: number): { ids: string[]; changes: number } {
  const changes = place(moved, others, index)
  const set = new Map(changes.map((change) => [change.id, change.sort_order]))
  const wanted = [...others.slice(0, index), moved, ...others.slice(index)]
  const sorted = wanted
    .map((task, i) => ({ id: task.id, order: set.get(task.id) ?? task.sort_order, i }))
    .sort((a, b) => a.order - b.order || a.i - b.i)
  return { ids: sorted.map((task) => task.id), changes: changes.length }
}

describe('manual order', () => {
  it('a number between, before the first, after the last', () => {
    expect(between(1, 2)).toBe(1.5)
    expect(between(undefined, 2)).toBe(1)
    expect(between(2, undefined)).toBe(3)
    expect(between(undefined, undefined)).toBe(0)
    expect(between(2, 2)).toBeUndefined()
    expect(between(1, 1 + Number.EPSILON)).toBeUndefined()
  })

  it('O2 one write where there is room', () => {
    expect(place(moved, list(1, 2, 3), 1)).toEqual([{ id: 'm', sort_order: 1.5 }])
    expect(place(moved, [], 0)).toEqual([{ id: 'm', sort_order: 0 }])
  })

  it('O1 every position of a list, with gaps, ties and exhausted fractions', () => {
    const e = Number.EPSILON
    for (const orders of [
      [0, 1, 2, 3],
      [0, 0, 0, 0],
      [0, 0, 1, 1],
      [1, 1 + e, 1 + 2 * e, 5],
      [-3, -3, 7],
    ]) {
      const others = list(...orders)
      for (let index = 0; index <= others.length; index++) {
        const expected = others.map((task) => task.id)
        expected.splice(index, 0, 'm')
        expect(after(others, index).ids, `${orders} at ${index}`).toEqual(expected)
      }
    }
  })

  it('O2 among 10,000 equal numbers, moving near the top writes only what stands above', () => {
    const others = Array.from({ length: 10_000 }, (_, i) => ({ id: `t${i}`, sort_order: 0 }))
    expect(after(others, 3)).toMatchObject({ changes: 4 })
    expect(after(others, 9_998)).toMatchObject({ changes: 3 })
  })

  it('a thousand moves into the same place stay in order', () => {
    let others = list(0, 1)
    for (let i = 0; i < 1000; i++) {
      const changes = new Map(
        place({ id: `n${i}`, sort_order: 0 }, others, 1).map((change) => [change.id, change.sort_order]),
      )
      const next = [others[0] as Ordered, { id: `n${i}`, sort_order: 0 }, ...others.slice(1)]
      others = next.map((task) => ({ id: task.id, sort_order: changes.get(task.id) ?? task.sort_order }))
      const sorted = others.every((task, j) => j === 0 || task.sort_order > (others[j - 1] as Ordered).sort_order)
      expect(sorted, `after move ${i}`).toBe(true)
    }
  })
})
