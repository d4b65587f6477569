/**
 * Whether an inbox item can be worked on now, must wait, or has lost its purpose. Pure.
 *
 *  C1 A deleted, archived or cancelled task ends every item on it; a finished one ends work, but not conversation (comments, mentions).
 *  C2 Work is for the assignee only: when the task is somebody else's, the item ends. A newer assignment ends the older one (A→B→A leaves one).
 *  C3 Rows of different tables arrive in any order. An item that is newer than the task row as it stands here waits, it is never ended for it.
 *  C4 Work on a task with an open blocker waits until the last one is done.
 */
import { isWorkEvent } from '@hq/shared/domain/runs.ts'
import type { Row } from '@hq/shared/schema/tables.ts'

export type ItemState =
  | { readonly state: 'ready' }
  /** `at`: milliseconds since 1970, when only time must pass. */
  | { readonly state: 'waits'; readonly why: string; readonly at?: number }
  | { readonly state: 'over'; readonly why: string }

export type ItemTask = Pick<
  Row<'tasks'>,
  'title' | 'status' | 'deleted_at' | 'archived_at' | 'assignee_type' | 'assignee_agent_id' | 'assignment_generation'
>

type Item = Pick<
  Row<'agent_inbox_items'>,
  'agent_id' | 'event_type' | 'task_id' | 'context' | 'dedup_key' | 'not_before'
>

export function itemState(item: Item, task: ItemTask | undefined, blockers: readonly string[], now: number): ItemState {
  if (item.not_before !== null && Date.parse(item.not_before) > now) {
    return { state: 'waits', why: 'Scheduled for later.', at: Date.parse(item.not_before) }
  }
  if (item.task_id === null) return { state: 'ready' }
  if (!task) return { state: 'waits', why: 'Its task has not arrived on this gateway yet.' }
  if (task.deleted_at !== null) return over('The task was deleted.')
  if (task.archived_at !== null) return over('The task was archived.')
  const generation = generationOf(item)
  if (generation !== undefined && generation > task.assignment_generation) {
    return { state: 'waits', why: `The newest state of “${task.title}” has not arrived on this gateway yet.` }
  }
  if (task.status === 'cancelled') return over('The task was cancelled.')
  if (!isWorkEvent(item.event_type)) return { state: 'ready' }
  if (task.status === 'done') return over('The task is done already.')
  if (item.event_type === 'escalation') return { state: 'ready' }
  if (task.assignee_type !== 'agent' || task.assignee_agent_id !== item.agent_id)
    return over('The task is no longer assigned to this agent.')
  if (generation !== undefined && generation < task.assignment_generation)
    return over('A newer assignment of the same task replaced this one.')
  if (blockers.length > 0)
    return { state: 'waits', why: `“${task.title}” waits for ${blockers.map((title) => `“${title}”`).join(', ')}.` }
  if (task.status === 'blocked' && item.event_type !== 'blocker_resolved' && item.event_type !== 'deliverable_review') {
    return { state: 'waits', why: `“${task.title}” is marked as blocked.` }
  }
  return { state: 'ready' }
}

/** The assignment that an item is about: the last part of its dedup key (`task_assignment:<task>:<agent>:<generation>`), or its context. */
function generationOf(item: Item): number | undefined {
  if (item.event_type !== 'task_assignment' && item.event_type !== 'task_reassignment') return undefined
  const named = item.context['assignment_generation'] ?? item.context['generation']
  if (typeof named === 'number') return named
  const last = item.dedup_key.split(':').at(-1) ?? ''
  return /^\d{1,9}$/.test(last) ? Number(last) : undefined
}

const over = (why: string): ItemState => ({ state: 'over', why })
