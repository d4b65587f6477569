/**
 * What a reader sees of a row that has pending changes: the server's version, then the live patches in order.
 *
 * The replica computes this in SQL (`sync.folded`); this is the same rule, pure, as the oracle of its tests and for previews.
 *
 * O1 Without patches it is the server's version.
 * O2 An insert makes the row; over a version that has already come (its own echo) it counts as an update.
 * O3 An update of a row that the server no longer has shows nothing.
 * O4 Removing a patch and folding again is the exact undo of that patch.
 */
export type RowImage = Record<string, unknown>

export interface FoldablePatch {
  readonly op: 'insert' | 'update' | 'delete'
  readonly set: RowImage
  /** Columns that only the server writes, as the writer saw them. */
  readonly local?: RowImage
}

export function fold(base: RowImage | undefined, patches: readonly FoldablePatch[]): RowImage | undefined {
  let seen = base
  for (const { op, set, local } of patches) {
    if (op === 'insert' || seen !== undefined) seen = { ...seen, ...set, ...local }
  }
  return seen
}
