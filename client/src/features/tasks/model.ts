/** What tasks look like on screen: names, shapes and order of statuses and priorities, and the rows that the queries give. */
import { ENUMS, type Enum } from '@hq/shared/schema/enums.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import { type Hue, hueOf, type Meaning } from '../../ui/cx.ts'
import type { Shape } from '../../ui/status.tsx'

export type TaskStatus = Enum<'task_status'>
export type TaskPriority = Enum<'task_priority'>
export type Task = Row<'tasks'>

export interface Look {
  readonly label: string
  readonly shape: Shape
  readonly meaning: Meaning
}

export const STATUS: Record<TaskStatus, Look> = {
  todo: { label: 'To do', shape: 'ring', meaning: 'neutral' },
  in_progress: { label: 'In progress', shape: 'half', meaning: 'busy' },
  blocked: { label: 'Blocked', shape: 'bar', meaning: 'warning' },
  done: { label: 'Done', shape: 'check', meaning: 'good' },
  cancelled: { label: 'Cancelled', shape: 'slash', meaning: 'neutral' },
}
export const STATUSES: readonly TaskStatus[] = ENUMS.task_status

export const PRIORITY: Record<TaskPriority, { readonly label: string; readonly bars: 0 | 1 | 2 | 3 }> = {
  urgent: { label: 'Urgent', bars: 3 },
  high: { label: 'High', bars: 3 },
  medium: { label: 'Medium', bars: 2 },
  low: { label: 'Low', bars: 1 },
}
/** Highest first, as people read it. */
export const PRIORITIES: readonly TaskPriority[] = [...ENUMS.task_priority].reverse()

/** A task in a list or on the board: what a row shows and no more. */
export interface TaskRow {
  readonly id: string
  readonly title: string
  readonly status: TaskStatus
  readonly priority: TaskPriority
  readonly stream_id: string | null
  readonly parent_id: string | null
  readonly parent_title: string | null
  readonly assignee_type: Enum<'actor_type'> | null
  readonly assignee_agent_id: string | null
  readonly assignee_person_id: string | null
  readonly due_date: string | null
  readonly tags: readonly string[]
  readonly sort_order: number
  readonly updated_at: string
  readonly subtasks: number
  readonly subtasks_done: number
  /** Open tasks that block it. */
  readonly blockers: number
  /** An agent works on it right now. */
  readonly running: boolean
  /** Deliverables that wait for a decision. */
  readonly reviews: number
  /** It lost a value to a concurrent change that nobody has looked at. */
  readonly conflicted: boolean
}

export interface StreamLike {
  readonly id: string
  readonly color: string | null
}

/** A stream's hue: the one that was chosen ("1" … "8"), else one that stays the same. */
export function streamHue(stream: StreamLike): Hue {
  const chosen = Number(stream.color)
  return Number.isInteger(chosen) && chosen >= 1 && chosen <= 8 ? (chosen as Hue) : hueOf(stream.color ?? stream.id)
}

/** Whom a task is given to. */
export type Assignee =
  | { readonly type: 'agent'; readonly id: string }
  | { readonly type: 'human'; readonly id: string }
  | null

export function assigneeOf(
  task: Pick<TaskRow, 'assignee_type' | 'assignee_agent_id' | 'assignee_person_id'>,
): Assignee {
  if (task.assignee_agent_id) return { type: 'agent', id: task.assignee_agent_id }
  if (task.assignee_person_id) return { type: 'human', id: task.assignee_person_id }
  return null
}

/** One title on one line, never empty. */
export const cleanTitle = (text: string): string => text.replace(/\s+/g, ' ').trim()

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`
