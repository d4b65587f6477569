/**
 * What the audit log says, as people say it, and the conversation that it is part of. Pure.
 *
 * A1 One entry of the log is at most one line; what only programs care about is none.
 * A2 Lines of one actor within five minutes that change the same thing become one, from the first value to the last.
 */
import type { Row } from '@hq/shared/schema/tables.ts'

export type AuditRow = Pick<
  Row<'audit_log'>,
  'id' | 'actor_type' | 'actor_id' | 'entity_type' | 'entity_id' | 'action' | 'summary' | 'changes' | 'occurred_at'
>

/** Names of what ids stand for; undefined: unknown. */
export interface Names {
  readonly agent: (id: string) => string | undefined
  readonly person: (id: string) => string | undefined
  readonly stream: (id: string) => string | undefined
  readonly status: (status: string) => string
  readonly priority: (priority: string) => string
  readonly review: (status: string) => string
  readonly day: (due: string) => string
}

type Change = readonly [before: unknown, after: unknown]
const changeOf = (row: AuditRow, column: string): Change | undefined => {
  const change: unknown = row.changes[column]
  return Array.isArray(change) && change.length === 2 ? [change[0], change[1]] : undefined
}
const str = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/** A sentence that follows the actor's name ("moved it to Done"), or undefined when it is not worth a line (A1). */
export function sentence(row: AuditRow, names: Names): string | undefined {
  const what = row.summary ? ` “${row.summary}”` : ''
  if (row.entity_type === 'deliverable') return deliverableSentence(row, what, names)
  switch (row.action) {
    case 'created':
      return row.entity_type === 'task' && row.summary === null ? 'added a relation' : 'created the task'
    case 'deleted':
      return 'deleted the task'
    case 'restored':
      return 'brought the task back'
    case 'archived':
      return 'archived the task'
    case 'commented':
      return undefined
    default: {
      const parts = Object.keys(row.changes)
        .map((column) => changed(row, column, names))
        .filter((part) => part !== undefined)
      return parts.length > 0 ? list(parts) : undefined
    }
  }
}

function deliverableSentence(row: AuditRow, what: string, names: Names): string | undefined {
  const review = changeOf(row, 'review_status')
  if (row.action === 'attached') return `added${what || ' a deliverable'}`
  if (review) {
    const after = str(review[1])
    if (after === 'approved') return `approved${what}`
    if (after === 'revision_requested') return `asked for a revision of${what || ' a deliverable'}`
    if (after === 'rejected') return `rejected${what}`
    if (after === 'submitted') return `submitted${what}`
    return after ? `set${what} to ${names.review(after)}` : undefined
  }
  return row.action === 'deleted' ? `removed${what}` : undefined
}

function changed(row: AuditRow, column: string, names: Names): string | undefined {
  const change = changeOf(row, column)
  if (!change) return undefined
  const after = str(change[1])
  switch (column) {
    case 'status':
      return after && `moved it to ${names.status(after)}`
    case 'priority':
      return after && `set the priority to ${names.priority(after)}`
    case 'title':
      return after && `renamed it to “${after}”`
    case 'description':
      return after ? 'edited the description' : 'removed the description'
    case 'assignee_agent_id':
      return after ? `gave it to ${names.agent(after) ?? 'an agent'}` : nobody(row, 'assignee_person_id')
    case 'assignee_person_id':
      return after ? `gave it to ${names.person(after) ?? 'somebody'}` : nobody(row, 'assignee_agent_id')
    case 'due_date':
      return after ? `set the due date to ${names.day(after)}` : 'removed the due date'
    case 'stream_id':
      return after ? `moved it to the stream ${names.stream(after) ?? 'that is gone'}` : 'took it out of its stream'
    case 'tags':
      return 'changed the labels'
    case 'parent_id':
      return after ? 'made it a subtask' : 'made it a task of its own'
    case 'model_override':
    case 'thinking_override':
      return 'changed how the agent works on it'
    default:
      return undefined
  }
}

/** "took it from everybody", said once for the two columns of an assignee. */
function nobody(row: AuditRow, other: string): string | undefined {
  if (str(changeOf(row, other)?.[1])) return undefined
  return 'gave it to nobody'
}

const list = (parts: readonly string[]): string => {
  const unique = [...new Set(parts)]
  return unique.length < 2 ? (unique[0] ?? '') : `${unique.slice(0, -1).join(', ')} and ${unique.at(-1)}`
}

const TOGETHER_MS = 5 * 60_000

/** A2, on rows from old to new. */
export function joined(rows: readonly AuditRow[]): AuditRow[] {
  const result: AuditRow[] = []
  for (const row of rows) {
    const last = result.at(-1)
    if (last && mergeable(last, row)) {
      const changes = { ...last.changes }
      for (const column of Object.keys(row.changes)) {
        const first = changeOf(last, column)
        const next = changeOf(row, column)
        if (next) changes[column] = [(first ?? next)[0] as never, next[1] as never]
      }
      result[result.length - 1] = { ...row, changes }
    } else result.push(row)
  }
  return result
}

const sameColumns = (a: AuditRow, b: AuditRow): boolean =>
  Object.keys(b.changes)
    .filter((c) => c !== 'completed_at')
    .every((column) => column in a.changes)

function mergeable(a: AuditRow, b: AuditRow): boolean {
  return (
    a.entity_id === b.entity_id &&
    a.actor_id === b.actor_id &&
    a.actor_type === b.actor_type &&
    a.action === b.action &&
    (a.action === 'updated' || a.action === 'status_changed' || a.action === 'assigned') &&
    sameColumns(a, b) &&
    Date.parse(b.occurred_at) - Date.parse(a.occurred_at) < TOGETHER_MS
  )
}
