/**
 * Which mutations of a push are new, which are repeats, and which can't be what they say: pure.
 *
 * S1 Numbers of a replica have no gaps: the first new one follows the last one taken, each of a batch follows the one before it.
 * S2 A number at or below the last one taken is a repeat, if it is the mutation that was taken under it; any other mutation under that number comes
 *    from a copy of the replica, and nothing of its batch is taken.
 */
export type Sequenced<Item> =
  | { readonly type: 'in_order'; readonly repeats: readonly Item[]; readonly fresh: readonly Item[] }
  | { readonly type: 'out_of_order'; readonly expected: number; readonly found: number }

/**
 * @param items in the order of the batch; those without a readable number have got the one that their place says
 * @param last number that was taken before
 */
export function sequence<Item extends { readonly seq: number }>(items: readonly Item[], last: number): Sequenced<Item> {
  let previous: number | undefined
  for (const { seq } of items) {
    const expected = previous === undefined ? (seq <= last ? seq : last + 1) : previous + 1
    if (seq !== expected || seq < 1) return { type: 'out_of_order', expected: last + 1, found: seq }
    previous = seq
  }
  return {
    type: 'in_order',
    repeats: items.filter(({ seq }) => seq <= last),
    fresh: items.filter(({ seq }) => seq > last),
  }
}

/** The first repeat that is another mutation than the one taken under its number (S2). */
export const otherMutation = <Item extends { readonly seq: number; readonly mutationId: string }>(
  repeats: readonly Item[],
  taken: ReadonlyMap<number, string>,
): Item | undefined => repeats.find(({ seq, mutationId }) => taken.get(seq) !== mutationId)
