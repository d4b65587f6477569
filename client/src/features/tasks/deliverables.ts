/**
 * Deliverables of a task: which version counts, and what may be decided. Pure.
 *
 * V1 A newer version names the one it replaces; what is replaced is history and waits for nobody.
 * V2 What may be decided is the domain's rule (`reviewRefusal`); beyond it, a revision needs a note, because the agent works from it.
 */
import { reviewRefusal } from '@hq/shared/domain/review.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Meaning } from '../../ui/cx.ts'
import type { Shape } from '../../ui/status.tsx'

export type Link = Row<'entity_links'>
export type ReviewStatus = NonNullable<Link['review_status']>
export type Decision = 'approved' | 'revision_requested' | 'rejected'

export const REVIEW: Record<
  ReviewStatus,
  { readonly label: string; readonly shape: Shape; readonly meaning: Meaning }
> = {
  draft: { label: 'Draft', shape: 'dotted', meaning: 'neutral' },
  submitted: { label: 'Waits for review', shape: 'three-quarter', meaning: 'waiting' },
  approved: { label: 'Approved', shape: 'check', meaning: 'good' },
  revision_requested: { label: 'Revision requested', shape: 'clock', meaning: 'warning' },
  rejected: { label: 'Rejected', shape: 'cross', meaning: 'danger' },
}

export interface Deliverable {
  /** The version that counts. */
  readonly current: Link
  /** Those that it replaced, newest first. */
  readonly older: readonly Link[]
}

const byTime = (a: Link, b: Link): number =>
  a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : a.id < b.id ? -1 : 1

/** V1. Waiting ones first, then newest first. A chain that lost a link (a deleted version) still holds together at its ends. */
export function deliverablesOf(links: readonly Link[]): Deliverable[] {
  const all = links.filter((link) => link.is_deliverable && link.deleted_at === null).sort(byTime)
  const byId = new Map(all.map((link) => [link.id, link]))
  const replaced = new Set(all.map((link) => link.supersedes_id))
  const claimed = new Set<string>()
  return all
    .filter((link) => !replaced.has(link.id))
    .map((current) => {
      const older: Link[] = []
      // A cycle cannot come from the product, but must not hang the page.
      for (let id = current.supersedes_id; id !== null && !claimed.has(id); ) {
        const link = byId.get(id)
        if (!link || link === current) break
        claimed.add(id)
        older.push(link)
        id = link.supersedes_id
      }
      return { current, older }
    })
    .sort((a, b) => rank(a.current) - rank(b.current) || byTime(b.current, a.current))
}

const rank = (link: Link): number => (link.review_status === 'submitted' ? 0 : 1)

/** V2: why this decision cannot be made, or undefined. */
export function decisionProblem(
  link: Pick<Link, 'review_status'>,
  decision: Decision,
  note: string,
): string | undefined {
  const refused = reviewRefusal(link.review_status, decision, true)
  if (refused) return refused
  if (link.review_status === decision) return 'That is decided already.'
  if (decision === 'revision_requested' && note.trim() === '')
    return 'Say what should change: the agent works from this note.'
  return undefined
}

/** "Deliverable", its label, or the last part of its address. */
export function deliverableName(link: Pick<Link, 'label' | 'url' | 'body'>): string {
  if (link.label?.trim()) return link.label.trim()
  const heading = /^#{1,6}\s+(.+)$/m.exec(link.body ?? '')?.[1]
  if (heading) return heading.trim()
  const last = link.url?.split(/[?#]/)[0]?.split('/').filter(Boolean).at(-1)
  return last ?? 'Deliverable'
}
