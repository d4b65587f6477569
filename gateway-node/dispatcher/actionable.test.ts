import { expect, test } from 'vitest'
import { type ItemTask, itemState } from './actionable.ts'

const NOW = Date.parse('2026-03-10T12:00:00Z')
const task: ItemTask = {
  title: 'T',
  status: 'todo',
  deleted_at: null,
  archived_at: null,
  assignee_type: 'agent',
  assignee_agent_id: 'ann',
  assignment_generation: 2,
}
const item = {
  agent_id: 'ann',
  event_type: 'task_assignment',
  task_id: 't',
  context: {},
  dedup_key: 'task_assignment:t:ann:2',
  not_before: null,
} as const

type Events = Parameters<typeof itemState>[0]['event_type']

/** Change of item, change of task (null: it is not there), blockers, what becomes of the item, and why. */
const CASES: readonly [string, object, Partial<ItemTask> | null, string[], 'ready' | 'waits' | 'over', RegExp?][] = [
  ['as it should be', {}, {}, [], 'ready'],
  ['a wake without a task', { task_id: null }, null, [], 'ready'],
  ['scheduled for later', { not_before: '2026-03-10T12:00:01Z' }, {}, [], 'waits', /later/],
  ['scheduled, and due', { not_before: '2026-03-10T11:59:59Z' }, {}, [], 'ready'],
  ['C3: before its task', {}, null, [], 'waits', /not arrived/],
  [
    'C3: newer than the task row, which still names another agent',
    { dedup_key: 'task_assignment:t:ann:3' },
    { assignee_agent_id: 'bob' },
    [],
    'waits',
    /newest state/,
  ],
  [
    'C3: newer than the task row, which is still done',
    { dedup_key: 'task_assignment:t:ann:3' },
    { status: 'done' },
    [],
    'waits',
    /newest state/,
  ],
  [
    'C2: an older assignment to the same agent',
    { dedup_key: 'task_assignment:t:ann:0' },
    {},
    [],
    'over',
    /newer assignment/,
  ],
  ['C2: assigned to another', {}, { assignee_agent_id: 'bob' }, [], 'over', /no longer assigned/],
  [
    'C2: assigned to a person',
    {},
    { assignee_type: 'human', assignee_agent_id: null },
    [],
    'over',
    /no longer assigned/,
  ],
  ['C1: deleted', {}, { deleted_at: 'x' }, [], 'over', /deleted/],
  ['C1: archived', {}, { archived_at: 'x' }, [], 'over', /archived/],
  ['C1: cancelled', {}, { status: 'cancelled' }, [], 'over', /cancelled/],
  ['C1: done', {}, { status: 'done' }, [], 'over', /done/],
  ['C4: blocked by another task', {}, {}, ['A', 'B'], 'waits', /“T” waits for “A”, “B”/],
  ['marked as blocked by a person', {}, { status: 'blocked' }, [], 'waits', /marked as blocked/],
]

test.each(CASES)('%s', (_, itemChange, taskChange, blockers, state, why = /^/) => {
  const result = itemState(
    { ...item, ...itemChange },
    taskChange === null ? undefined : { ...task, ...taskChange },
    blockers,
    NOW,
  )
  expect(result.state).toBe(state)
  if ('why' in result) expect(result.why).toMatch(why)
})

test.each<[Events, Partial<ItemTask>, 'ready' | 'over' | 'waits']>([
  ['task_comment', { status: 'done' }, 'ready'],
  ['task_comment_mention', { assignee_agent_id: 'bob' }, 'ready'],
  ['task_comment_mention', { status: 'cancelled' }, 'over'],
  ['deliverable_review', { status: 'blocked' }, 'ready'],
  ['deliverable_review', { assignee_agent_id: 'bob' }, 'over'],
  ['blocker_resolved', { status: 'blocked' }, 'ready'],
  ['task_overdue', { status: 'blocked' }, 'waits'],
  ['escalation', { assignee_agent_id: 'bob' }, 'ready'],
  ['escalation', { assignee_agent_id: 'bob', status: 'done' }, 'over'],
  ['routine_event', { status: 'done' }, 'ready'],
])('%s on a task with %j: %s', (event_type, change, state) => {
  expect(itemState({ ...item, event_type, dedup_key: `${event_type}:t` }, { ...task, ...change }, [], NOW).state).toBe(
    state,
  )
})
