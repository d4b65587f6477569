/**
 * Merging one patch into the row that is there: pure.
 *
 * M1 A base equal to the present value is no conflict: the patch follows what it saw.
 * M2 `lww` with another base: the later clock wins; the loser, whichever it is, is kept as a conflict. Two sides setting the same value agree.
 *    `last` is the same without keeping the loser.
 * M3 `strict` with another base: the mutation is stale. `immutable`: unchanged or refused. `server`: ignored. `owner`: only by that gateway, who needs no base.
 * M4 Deletes win: an update of a deleted row sets its columns and leaves it deleted. Only a patch that saw this very delete (`deleted_at` null, base
 *    equal) restores. Of two deletes that did not see one another neither is undone by who saw only his own: they become a third.
 * M5 A column without a clock of its own has the clock of the insert (`*`); without that, any clock is later.
 * M6 `increment` and `add_remove` follow the difference from base to the new value, whatever is there by now: all sides stand, no clock is asked.
 */
import type { ColumnSpec, TableSpec } from '@hq/shared/schema/columns.ts'
import { addDifference, hasDifference, insertOver, isDifferenceRule } from '@hq/shared/schema/differences.ts'
import type { Actor, RejectionCode } from '@hq/shared/sync/protocol.ts'
import { laterTime, sameValue } from './values.ts'

export type Values = Record<string, unknown>

/** When and by whom a column got its value. */
export interface Clock {
  readonly h: string
  readonly t: Actor['type']
  readonly i: string | null
}
export type Clocks = Record<string, Clock>

export interface Conflict {
  readonly column: string
  readonly winner: unknown
  readonly loser: unknown
  readonly winnerClock: Clock | undefined
  readonly loserClock: Clock | undefined
  /** True when it is the incoming value that lost. */
  readonly incomingLost: boolean
}

export type Merged =
  | { readonly ok: true; readonly set: Values; readonly clocks: Clocks; readonly conflicts: Conflict[] }
  | { readonly ok: false; readonly code: RejectionCode; readonly message: string; readonly column: string }

export interface MergeInput {
  readonly table: TableSpec
  readonly present: Values
  readonly clocks: Clocks
  readonly set: Values
  readonly base: Values
  readonly clock: Clock
  /** The writer is the gateway that the row belongs to. */
  readonly isOwner: boolean
  /** An insert of a row that is already there: what can't change is left alone rather than refused. */
  readonly repeatedInsert?: boolean
}

export function mergeUpdate({
  table,
  present,
  clocks,
  set,
  base,
  clock,
  isOwner,
  repeatedInsert = false,
}: MergeInput): Merged {
  const merged: Values = {}
  const newClocks: Clocks = {}
  const conflicts: Conflict[] = []
  for (const [column, value] of Object.entries(set)) {
    const { spec } = table.columns[column] as { spec: ColumnSpec }
    if (spec.merge === 'server') continue
    const is = present[column] ?? null
    const same = sameValue(spec.type, is, value)
    const refused = (code: RejectionCode, message: string): Merged => ({ ok: false, code, message, column })

    if (spec.merge === 'delete') {
      // M4
      const sawIt = sameValue(spec.type, is, base[column] ?? null)
      let after: unknown
      if (value !== null && is === null) after = value
      else if (value === null && is !== null && sawIt && !repeatedInsert) after = null
      else if (value !== null && !same && !sawIt && !repeatedInsert) after = laterTime(String(is), String(value))
      if (after !== undefined) {
        merged[column] = after
        newClocks[column] = clock
      }
      continue
    }
    if (spec.merge === 'immutable') {
      if (!same && !repeatedInsert)
        return refused('immutable', `${words(column)} of ${table.name} can't be changed after the row was made.`)
      continue
    }
    if (spec.merge === 'owner') {
      if (!isOwner) {
        if (same || repeatedInsert) continue
        return refused(
          'forbidden',
          `${words(column)} of ${table.name} is written only by the gateway that the row belongs to.`,
        )
      }
      if (!same) {
        merged[column] = value
        newClocks[column] = clock
      }
      continue
    }
    const sawPresent = Object.hasOwn(base, column) && sameValue(spec.type, is, base[column])
    if (spec.merge === 'strict') {
      if (same) continue
      if (!sawPresent) {
        return refused(
          'stale',
          `${words(column)} is ${show(is)} by now, not ${show(base[column])}. Look at it again and decide anew.`,
        )
      }
      merged[column] = value
      newClocks[column] = clock
      continue
    }
    if (isDifferenceRule(spec.merge)) {
      // M6
      if (!hasDifference(spec.merge, value) || !hasDifference(spec.merge, base[column])) {
        return refused('invalid', `${words(column)} can't be changed from ${show(base[column])} to ${show(value)}.`)
      }
      const result = repeatedInsert
        ? insertOver(spec.merge, is, value)
        : addDifference(spec.merge, is, base[column], value)
      if (!sameValue(spec.type, is, result)) merged[column] = result
      continue
    }
    // `lww` and `last`
    const keep = (conflict: Conflict): void => {
      if (spec.merge !== 'last') conflicts.push(conflict)
    }
    if (same) {
      const was = clocks[column] ?? clocks['*']
      if (!was || clock.h > was.h) newClocks[column] = clock
      continue
    }
    if (sawPresent) {
      merged[column] = value
      newClocks[column] = clock
      continue
    }
    const was = clocks[column] ?? clocks['*'] // M5
    if (!was || clock.h > was.h) {
      merged[column] = value
      newClocks[column] = clock
      keep({ column, winner: value, loser: is, winnerClock: clock, loserClock: was, incomingLost: false })
    } else {
      keep({ column, winner: is, loser: value, winnerClock: was, loserClock: clock, incomingLost: true })
    }
  }
  return { ok: true, set: merged, clocks: newClocks, conflicts }
}

const words = (column: string): string => `The ${column.replaceAll('_', ' ')}`
const show = (value: unknown): string => {
  if (value === null || value === undefined) return 'empty'
  const text = typeof value === 'string' ? value.replaceAll('_', ' ') : JSON.stringify(value)
  return `'${text.slice(0, 60)}'`
}
