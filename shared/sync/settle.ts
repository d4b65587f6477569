/**
 * When a mutation is over: pure.
 *
 * The server raises `client_progress.last_seq` in the transaction that holds a mutation's effects. That row comes back to us through its shape, at
 * some position (LSN) of the server's log. A shape that has passed this position has brought the effects that the mutation had on its table.
 *
 * E1 A mutation is settled when every shape that it touched stands at or past the position of its acknowledgement; so must the one with refusals,
 *    unless the answer to the push has already said that the mutation was applied.
 * E2 Mutations settle in order: a later one never before an earlier one, or the earlier one's patch would hide the later one's result.
 * E3 A mutation without any effect on the server settles in the same way.
 */
export interface Acknowledgement {
  /** All mutations up to this one are done. */
  readonly seq: number
  /** Where the log stood then; undefined: came with a snapshot, and the shape has not said yet where it stands. */
  readonly lsn: bigint | undefined
}

export interface Unsettled {
  readonly seq: number
  readonly tables: readonly string[]
  /** The server said so; undefined: its answer did not reach us. */
  readonly applied?: boolean
}

export interface Verdict {
  /** All mutations up to this one can be settled; 0: none. */
  readonly upto: number
  /** Shapes that hold up the next one although the server has acknowledged it. */
  readonly lagging: readonly string[]
}

/** Where refusals arrive. */
export const RESULTS_TABLE = 'mutation_results'

/**
 * @param acks in order of `seq` and of `lsn`
 * @param positions of the shapes of this replica; a table without shape holds nothing up
 */
export function settleable(
  unsettled: readonly Unsettled[],
  acks: readonly Acknowledgement[],
  positions: ReadonlyMap<string, bigint>,
): Verdict {
  let upto = 0
  let next = 0
  for (const { seq, tables, applied } of unsettled) {
    while (next < acks.length && (acks[next]?.seq ?? 0) < seq) next++
    const ack = acks[next]
    if (ack === undefined) return { upto, lagging: [] }
    const { lsn } = ack
    if (lsn === undefined) return { upto, lagging: ['client_progress'] }
    const lagging = [...tables, ...(applied ? [] : [RESULTS_TABLE])].filter((table) => {
      const position = positions.get(table)
      return position !== undefined && position < lsn
    })
    if (lagging.length > 0) return { upto, lagging }
    upto = seq
  }
  return { upto, lagging: [] }
}

/**
 * The acknowledgements with a new one. Those that nothing waits for any more are dropped; of two for one `seq` the one that was placed first
 * stays, because it is the earlier position.
 */
export function addAck(
  acks: readonly Acknowledgement[],
  ack: Acknowledgement,
  oldestUnsettled: number,
): Acknowledgement[] {
  const needed = acks.filter(({ seq }) => seq >= oldestUnsettled)
  if (needed.some(({ seq, lsn }) => seq >= ack.seq && lsn !== undefined)) return needed
  return [...needed.filter(({ seq }) => seq < ack.seq), ack]
}

/** Acknowledgements that came with a snapshot get the position that their shape then reports. */
export const placeAcks = (acks: readonly Acknowledgement[], lsn: bigint): Acknowledgement[] =>
  acks.map((ack) => (ack.lsn === undefined ? { ...ack, lsn } : ack))
