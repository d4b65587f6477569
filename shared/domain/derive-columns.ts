/** Columns that server and gateway compute alike before they derive anything (D2, D5 of derive.ts, V3 of review.ts). Pure. */
import type { TableName } from '../schema/tables.ts'
import type { Values } from './derive-world.ts'
import { nextRound } from './review.ts'

/**
 * Columns that both sides compute, whatever a patch says: `tasks.assignment_generation` (D2), `tasks.completed_at` unless `given` sets it,
 * `entity_links.review_round`. Returns only what differs from `after`.
 */
export function computedColumns(
  table: TableName,
  before: Values | undefined,
  after: Values,
  at: string,
  given: Values,
): Values {
  const set: Record<string, unknown> = {}
  if (table === 'tasks') {
    const generation = Number(before?.['assignment_generation'] ?? 0)
    const raised =
      before && (assigneeOf(before) !== assigneeOf(after) || reopened(before, after)) ? generation + 1 : generation
    if (Number(after['assignment_generation'] ?? 0) !== raised) set['assignment_generation'] = raised
    const done = after['status'] === 'done'
    if (before?.['status'] !== after['status'] && given['completed_at'] === undefined) {
      if (done && !after['completed_at']) set['completed_at'] = at
      if (!done && after['completed_at']) set['completed_at'] = null
    }
  }
  if (table === 'entity_links') {
    const round = Number(before?.['review_round'] ?? 1)
    // A new version says itself which round it begins: the one after the version that it supersedes.
    const next = before
      ? nextRound(before['review_status'], after['review_status'], round)
      : Math.max(1, Math.trunc(Number(after['review_round'] ?? 1)) || 1)
    if (Number(after['review_round'] ?? 1) !== next) set['review_round'] = next
  }
  return set
}

export const assigneeOf = (task: Values): string =>
  `${task['assignee_agent_id'] ?? ''}/${task['assignee_person_id'] ?? ''}`
export const isClosed = (task: Values | undefined): boolean =>
  !task || task['status'] === 'done' || task['status'] === 'cancelled' || Boolean(task['deleted_at'])
export const reopened = (before: Values, after: Values): boolean => isClosed(before) && !isClosed(after)
