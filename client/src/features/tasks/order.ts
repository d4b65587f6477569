/**
 * Manual order. `sort_order` is a fraction: a moved task gets a number between its new neighbours', and nobody else is written.
 *
 * O1 After the returned changes, the list sorted by `sort_order` (ties: as it was) is the list that was asked for.
 * O2 One change when there is room between the neighbours; otherwise as few as make room (equal numbers, exhausted fractions).
 */
export interface Ordered {
  readonly id: string
  readonly sort_order: number
}

export interface OrderChange {
  readonly id: string
  readonly sort_order: number
}

/** A number strictly between two (undefined: no neighbour there), or undefined when there is no room. */
export function between(before: number | undefined, after: number | undefined): number | undefined {
  if (before === undefined && after === undefined) return 0
  if (before === undefined) return (after as number) - 1
  if (after === undefined) return before + 1
  if (!(after > before)) return undefined
  const middle = before + (after - before) / 2
  return middle > before && middle < after ? middle : undefined
}

/**
 * What to write so that `moved` stands at `index` of `others`, which are in their present order and do not contain it (O1, O2).
 */
export function place(moved: Ordered, others: readonly Ordered[], index: number): OrderChange[] {
  const at = Math.max(0, Math.min(others.length, index))
  const direct = between(others[at - 1]?.sort_order, others[at]?.sort_order)
  if (direct !== undefined) return [{ id: moved.id, sort_order: direct }]
  // Makes room on the nearer side: renumbers neighbours there until a gap is wide enough.
  for (let size = 1; ; size++) {
    const down = Math.min(others.length, at + size)
    const up = Math.max(0, at - size)
    const changes = renumber(moved, others, at, at, down) ?? renumber(moved, others, at, up, at)
    if (changes) return changes
    if (down === others.length && up === 0) return renumberAll(moved, others, at)
  }
}

/** New numbers for `moved` and `others[from..to)`, if they fit between what stands around them. */
function renumber(moved: Ordered, others: readonly Ordered[], at: number, from: number, to: number) {
  const low = others[from - 1]?.sort_order
  const high = others[to]?.sort_order
  const count = to - from + 1
  let start: number
  let step = 1
  if (low !== undefined && high !== undefined) {
    step = (high - low) / (count + 1)
    start = low + step
    // Neighbouring numbers must stay different where the floating-point grid is widest.
    const grid = Math.max(Math.abs(low), Math.abs(high)) * Number.EPSILON
    if (!(step > 2 * grid)) return undefined
  } else if (low !== undefined) start = low + 1
  else start = (high ?? 0) - count
  const run = [...others.slice(from, at), moved, ...others.slice(at, to)]
  return run.map(({ id }, i) => ({ id, sort_order: start + step * i }))
}

const renumberAll = (moved: Ordered, others: readonly Ordered[], at: number): OrderChange[] =>
  [...others.slice(0, at), moved, ...others.slice(at)].map(({ id }, sort_order) => ({ id, sort_order }))
