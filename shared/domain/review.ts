/**
 * The review of a deliverable: one state machine, rounds numbered. Pure.
 *
 * V1 `draft → submitted → approved | revision_requested | rejected`; after a verdict it may be submitted again or get another verdict.
 * V2 Only a person gives a verdict; an agent can't approve its own work or that of another.
 * V3 A new round begins whenever a verdict is left, so that every verdict has a (link, round) of its own.
 * V4 A deliverable that a newer one names in `supersedes_id` no longer counts. A task's work is approved when all that count are approved.
 */
import type { Enum } from '../schema/enums.ts'

export type ReviewStatus = Enum<'review_status'>

const NEXT: Readonly<Record<ReviewStatus, readonly ReviewStatus[]>> = {
  draft: ['submitted'],
  submitted: ['draft', 'approved', 'revision_requested', 'rejected'],
  approved: ['submitted', 'revision_requested', 'rejected'],
  revision_requested: ['submitted', 'approved', 'rejected'],
  rejected: ['submitted', 'approved', 'revision_requested'],
}

export const isVerdict = (status: unknown): boolean =>
  status === 'approved' || status === 'revision_requested' || status === 'rejected'

/** Why the review may not go from `before` (undefined: the deliverable is new) to `after`, or undefined if it may. */
export function reviewRefusal(before: unknown, after: unknown, byPerson: boolean): string | undefined {
  if (before === after && before !== undefined) return undefined
  if (isVerdict(after) && !byPerson) return 'Only a person can approve, reject or send back a deliverable.'
  if (before === undefined) {
    return after === null || after === 'draft' || after === 'submitted'
      ? undefined
      : 'A new deliverable begins as a draft or as submitted.'
  }
  if (before === null)
    return after === 'draft' || after === 'submitted' ? undefined : 'This was never submitted for review.'
  const allowed = NEXT[before as ReviewStatus]
  if (allowed?.includes(after as ReviewStatus)) return undefined
  return `A deliverable that is ${words(before)} can't become ${words(after)}.`
}

const words = (status: unknown): string => String(status ?? 'without review').replaceAll('_', ' ')

/** (V3) */
export const nextRound = (before: unknown, after: unknown, round: number): number =>
  isVerdict(before) && before !== after ? round + 1 : round

export interface Deliverable {
  readonly id: string
  readonly review_status: unknown
  readonly supersedes_id: unknown
  readonly is_deliverable: unknown
  readonly deleted_at: unknown
}

/** The deliverables that count (V4). */
export function countingDeliverables<T extends Deliverable>(links: readonly T[]): T[] {
  const live = links.filter((link) => link.is_deliverable === true && !link.deleted_at)
  const superseded = new Set(live.map((link) => link.supersedes_id))
  return live.filter((link) => !superseded.has(link.id))
}

/** (V4) False when there is none. */
export function allApproved(links: readonly Deliverable[]): boolean {
  const counting = countingDeliverables(links)
  return counting.length > 0 && counting.every((link) => link.review_status === 'approved')
}
