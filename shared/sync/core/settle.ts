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
 * E4 A shape that holds up an acknowledged mutation for more than 50 ms is asked to say where it stands.
 * E5 Numbers mean something only together with the replica id that they were given under: what was begun under a former one ends without effect.
 * E6 When the acknowledgements are fetched anew, nothing that was known of acknowledgements, answers and positions counts any more.
 * E7 An acknowledgement counts only while its own shape stands at or past it, in the log that the other shapes are in: one that was stored, or heard before
 *    some shape began anew, may be of a log that a restored server no longer has.
 */
import { type Step, step } from './step.ts'

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

export interface SettleState {
  /** Numbers belong to an identity (E5). */
  readonly replicaId: string
  /** In order of `seq`. */
  readonly unsettled: readonly Unsettled[]
  /** In order of `seq` and of `lsn`. */
  readonly acks: readonly Acknowledgement[]
  /** Of the shapes of this replica; a table without shape holds nothing up. */
  readonly positions: ReadonlyMap<string, bigint>
  /** A `settle` is under way. */
  readonly settling: boolean
  /** A `watch` is under way. */
  readonly watching: boolean
}

export type SettleEvent =
  | { readonly type: 'wrote'; readonly seq: number; readonly tables: readonly string[] }
  /** The answer to a push: these were applied; nothing more is taken from answers. */
  | { readonly type: 'applied'; readonly seqs: ReadonlySet<number> }
  | { readonly type: 'acknowledged'; readonly ack: Acknowledgement }
  /** The shape of acknowledgements was fetched anew: the server may have been restored, and its log have begun anew (E6). */
  | { readonly type: 'forgot' }
  | { readonly type: 'reached'; readonly table: string; readonly position: bigint }
  /** The table's stream begins anew: where it stood no longer counts. */
  | { readonly type: 'started_over'; readonly table: string }
  | { readonly type: 'settled'; readonly replicaId: string; readonly upto: number }
  | { readonly type: 'settle_failed' }
  /** What the database says, at opening and after the outbox was numbered anew. */
  | {
      readonly type: 'loaded'
      readonly replicaId: string
      readonly unsettled: readonly Unsettled[]
      readonly acks: readonly Acknowledgement[]
    }
  /** The time of a `watch` is over. */
  | { readonly type: 'looked' }

export type SettleEffect =
  /** End all mutations up to this one, if we still are `replicaId`. */
  | { readonly type: 'settle'; readonly replicaId: string; readonly upto: number }
  /** Look again after this time. */
  | { readonly type: 'watch'; readonly afterMs: number }
  | { readonly type: 'refresh'; readonly table: string }

export const LAGGING_MS = 50
/** A shape that still lags is asked again after this long. */
export const LAGGING_AGAIN_MS = 1_000

/** Where refusals arrive. */
export const RESULTS_TABLE = 'mutation_results'
const PROGRESS_TABLE = 'client_progress'

export const newSettle = (replicaId: string, tables: readonly string[]): SettleState => ({
  replicaId,
  unsettled: [],
  acks: [],
  positions: new Map(tables.map((table) => [table, 0n])),
  settling: false,
  watching: false,
})

export function settle(state: SettleState, event: SettleEvent): Step<SettleState, SettleEffect> {
  const { unsettled, acks, positions } = state
  switch (event.type) {
    case 'wrote': {
      // A write by plain SQL is heard of after its commit, perhaps later than the write behind it.
      const { seq, tables } = event
      const others = unsettled.filter((other) => other.seq !== seq)
      const at = others.findIndex((other) => other.seq > seq)
      const index = at < 0 ? others.length : at
      return check({ ...state, unsettled: [...others.slice(0, index), { seq, tables }, ...others.slice(index)] })
    }
    case 'applied':
      return check({
        ...state,
        unsettled: unsettled.map((mutation) =>
          event.seqs.has(mutation.seq) ? { ...mutation, applied: true } : mutation,
        ),
      })
    case 'acknowledged':
      return check({ ...state, acks: addAck(acks, event.ack, unsettled[0]?.seq ?? event.ack.seq) })
    case 'forgot':
      return step({
        ...state,
        unsettled: unsettled.map(({ seq, tables }) => ({ seq, tables })),
        acks: [],
        positions: zeroed(positions),
      })
    case 'reached':
      return check({
        ...state,
        positions: new Map(positions).set(event.table, event.position),
        acks: event.table === PROGRESS_TABLE ? placeAcks(acks, event.position) : acks,
      })
    case 'started_over':
      // Perhaps the log itself has begun anew: then the acknowledgements are fetched anew too, and until we know, none counts (E7).
      return step({ ...state, positions: new Map(positions).set(event.table, 0n).set(PROGRESS_TABLE, 0n) })
    case 'settled':
      if (event.replicaId !== state.replicaId) return check({ ...state, settling: false })
      return check({ ...state, settling: false, unsettled: unsettled.filter(({ seq }) => seq > event.upto) })
    case 'settle_failed':
      // The next event tries again; at once would be in vain.
      return step({ ...state, settling: false })
    case 'loaded':
      return check({
        ...state,
        replicaId: event.replicaId,
        unsettled: event.unsettled,
        acks: event.acks,
        // A new identity may be the answer to a restored server, whose log has begun anew.
        positions: event.replicaId === state.replicaId ? positions : zeroed(positions),
      })
    case 'looked': {
      const { lagging } = settleable(state)
      const watching = { ...state, watching: lagging.length > 0 }
      return step(
        watching,
        ...lagging.map((table): SettleEffect => ({ type: 'refresh', table })),
        ...(lagging.length > 0 ? [{ type: 'watch', afterMs: LAGGING_AGAIN_MS } as const] : []),
      )
    }
  }
}

const zeroed = (positions: ReadonlyMap<string, bigint>): ReadonlyMap<string, bigint> =>
  new Map([...positions.keys()].map((table) => [table, 0n]))

function check(state: SettleState): Step<SettleState, SettleEffect> {
  if (state.settling || state.unsettled.length === 0 || state.acks.length === 0) return step(state)
  const { upto, lagging } = settleable(state)
  const settling = upto > 0
  const watch = lagging.length > 0 && !state.watching
  return step(
    { ...state, settling, watching: state.watching || watch },
    ...(settling ? [{ type: 'settle', replicaId: state.replicaId, upto } as const] : []),
    ...(watch ? [{ type: 'watch', afterMs: LAGGING_MS } as const] : []),
  )
}

export interface Verdict {
  /** All mutations up to this one can be settled; 0: none. */
  readonly upto: number
  /** Shapes that hold up the next one although the server has acknowledged it. */
  readonly lagging: readonly string[]
}

export function settleable({
  unsettled,
  acks,
  positions,
}: Pick<SettleState, 'unsettled' | 'acks' | 'positions'>): Verdict {
  let upto = 0
  let next = 0
  for (const { seq, tables, applied } of unsettled) {
    while (next < acks.length && (acks[next]?.seq ?? 0) < seq) next++
    const ack = acks[next]
    if (ack === undefined) return { upto, lagging: [] }
    const { lsn } = ack
    if (lsn === undefined) return { upto, lagging: [PROGRESS_TABLE] }
    const needed = [...tables, PROGRESS_TABLE, ...(applied ? [] : [RESULTS_TABLE])]
    const lagging = needed.filter((table) => {
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
export const placeAcks = (acks: readonly Acknowledgement[], lsn: bigint): readonly Acknowledgement[] =>
  acks.some((ack) => ack.lsn === undefined) ? acks.map((ack) => (ack.lsn === undefined ? { ...ack, lsn } : ack)) : acks
