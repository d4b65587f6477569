import { describe, expect, it } from 'vitest'
import { type AuditRow, joined, type Names, sentence } from './activity.ts'

const names: Names = {
  agent: (id) => (id === 'a1' ? 'Ada' : undefined),
  person: () => 'Ana',
  stream: () => 'Marketing',
  status: (status) => (status === 'done' ? 'Done' : status),
  priority: (priority) => priority,
  review: (review) => review,
  day: () => '12 Dec',
}
let n = 0
const row = (more: Partial<AuditRow>): AuditRow => ({
  id: String(n++),
  actor_type: 'human',
  actor_id: 'p1',
  entity_type: 'task',
  entity_id: 't1',
  action: 'updated',
  summary: 'Plan',
  changes: {},
  occurred_at: '2026-11-30T12:00:00Z',
  ...more,
})
const say = (more: Partial<AuditRow>) => sentence(row(more), names)

describe('activity', () => {
  it('says what changed', () => {
    expect(say({ action: 'status_changed', changes: { status: ['todo', 'done'], completed_at: [null, 'x'] } })).toBe(
      'moved it to Done',
    )
    expect(
      say({
        action: 'assigned',
        changes: {
          assignee_agent_id: [null, 'a1'],
          assignee_person_id: ['p1', null],
          assignee_type: ['human', 'agent'],
        },
      }),
    ).toBe('gave it to Ada')
    expect(say({ action: 'assigned', changes: { assignee_agent_id: ['a1', null] } })).toBe('gave it to nobody')
    expect(say({ changes: { priority: ['low', 'high'], due_date: [null, 'x'] } })).toBe(
      'set the priority to high and set the due date to 12 Dec',
    )
    expect(
      say({ entity_type: 'deliverable', action: 'reviewed', changes: { review_status: ['submitted', 'approved'] } }),
    ).toBe('approved “Plan”')
  })

  it('A1 nothing for what only programs care about', () => {
    expect(say({ changes: { assignment_generation: [1, 2] } })).toBeUndefined()
    expect(say({ action: 'commented' })).toBeUndefined()
  })

  it('A2 a burst of edits is one line, from first to last; others stand between', () => {
    const edit = (from: string, to: string, minute: number, actor_id = 'p1') =>
      row({ actor_id, changes: { title: [from, to] }, occurred_at: `2026-11-30T12:${minute}:00Z` })
    const rows = joined([
      edit('a', 'b', 10),
      edit('b', 'c', 11),
      edit('c', 'd', 12, 'p2'),
      edit('d', 'e', 13),
      edit('e', 'f', 30),
    ])
    expect(rows.map((each) => each.changes['title'])).toEqual([
      ['a', 'c'],
      ['c', 'd'],
      ['d', 'e'],
      ['e', 'f'],
    ])
  })
})
