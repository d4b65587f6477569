/**
 * The one sentence that says how the work of an agent on a task stands, or why it does not go on. Pure: everything comes from rows.
 *
 * W1 A closed task needs no reason. An open blocker is nearer than anything about the agent, a given-up wake nearer than its gates.
 * W2 Assigned is not started: 'queued' until the gateway says that a run began.
 */
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Meaning } from '../../ui/cx.ts'
import type { Shape } from '../../ui/status.tsx'
import type { AgentState } from '../agents/agent-state.ts'
import type { TaskStatus } from './model.ts'

export interface WhyFacts {
  readonly status: TaskStatus
  readonly agent: { readonly name: string; readonly state: AgentState }
  /** Titles of open tasks that block this one. */
  readonly blockers: readonly string[]
  /** The newest wake for this task. */
  readonly wake:
    | Pick<Row<'agent_inbox_items'>, 'status' | 'attempt_count' | 'max_attempts' | 'error_message'>
    | undefined
  /** A run on this very task is going on. */
  readonly running: boolean
  /** Deliverables that wait for a person. */
  readonly reviews: number
}

export interface Why {
  readonly meaning: Meaning
  readonly shape: Shape
  readonly label: string
  readonly detail: string | undefined
}

export function whyOf({ status, agent, blockers, wake, running, reviews }: WhyFacts): Why | undefined {
  if (status === 'done' || status === 'cancelled') return undefined
  const { name, state } = agent
  const [first, ...more] = blockers
  if (first !== undefined) {
    const others = more.length > 0 ? ` and ${more.length} more` : ''
    return { meaning: 'warning', shape: 'bar', label: 'Blocked', detail: `by “${first}”${others}` }
  }
  if (running && state.key !== 'silent') {
    return { meaning: 'busy', shape: 'arc', label: 'Working', detail: `${name} is on it` }
  }
  if (reviews > 0) {
    return {
      meaning: 'waiting',
      shape: 'three-quarter',
      label: 'Waits for you',
      detail: 'A deliverable is to be reviewed',
    }
  }
  if (wake?.status === 'dead_letter') {
    const why = wake.error_message ? `: ${wake.error_message}` : ''
    return {
      meaning: 'danger',
      shape: 'cross',
      label: 'Gave up',
      detail: `after ${wake.attempt_count} tries${why}. Comment, or assign it again, to try once more`,
    }
  }
  if (state.key === 'working') {
    return {
      meaning: 'waiting',
      shape: 'clock',
      label: 'Queued',
      detail: state.detail ? `${name} first works on “${state.detail}”` : `${name} works on something else first`,
    }
  }
  if (state.key !== 'ready')
    return { meaning: state.meaning, shape: state.shape, label: state.label, detail: state.detail }
  if (wake?.status === 'failed') {
    const why = wake.error_message ? `: ${wake.error_message}` : ''
    return {
      meaning: 'waiting',
      shape: 'clock',
      label: 'Tries again',
      detail: `try ${wake.attempt_count} of ${wake.max_attempts} failed${why}`,
    }
  }
  if (wake === undefined) {
    return status === 'blocked'
      ? { meaning: 'warning', shape: 'bar', label: 'Blocked', detail: 'Answer in a comment to let it go on' }
      : { meaning: 'waiting', shape: 'clock', label: 'Queued', detail: `${name} has not been woken yet` }
  }
  if (wake.status === 'pending' || wake.status === 'leased') {
    return { meaning: 'waiting', shape: 'clock', label: 'Queued', detail: `${name} is about to start` }
  }
  return status === 'blocked'
    ? { meaning: 'warning', shape: 'bar', label: 'Blocked', detail: 'Answer in a comment to let it go on' }
    : { meaning: 'neutral', shape: 'ring', label: 'Idle', detail: `${name} has stopped here; a comment wakes it` }
}
