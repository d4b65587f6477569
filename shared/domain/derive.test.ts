import { describe, expect, test } from 'vitest'
import { type AgentFacts, type Change, computedColumns, derive, MAX_DEPTH, type Values, type World } from './derive.ts'
import { allApproved, type Deliverable, isVerdict, nextRound, reviewRefusal } from './review.ts'

const A = 'aaaaaaaa-0000-7000-8000-000000000001'
const B = 'bbbbbbbb-0000-7000-8000-000000000002'
const GONE = 'cccccccc-0000-7000-8000-000000000003'
const ANN = 'dddddddd-0000-7000-8000-000000000004'
const T1 = '11111111-0000-7000-8000-000000000001'
const T2 = '22222222-0000-7000-8000-000000000002'
const T3 = '33333333-0000-7000-8000-000000000003'
const human = { type: 'human', id: ANN } as const
const agentA = { type: 'agent', id: A } as const
const system = { type: 'system', id: null } as const

const agent = (id: string, slug: string, deleted_at: string | null = null): AgentFacts => ({
  id,
  slug,
  name: slug.toUpperCase(),
  gateway_id: `gateway-of-${slug}`,
  deleted_at,
})

interface Facts {
  tasks?: Values[]
  blocks?: [string, string][]
  links?: (Deliverable & Values)[]
  depth?: number
}

function world({ tasks = [], blocks = [], links = [], depth = 0 }: Facts = {}): World {
  const agents = [agent(A, 'ada'), agent(B, 'ben'), agent(GONE, 'gone', '2026-01-01')]
  return {
    tenantId: 'tenant',
    agent: (id) => agents.find((one) => one.id === id),
    agentBySlug: (slug) => agents.find((one) => one.slug === slug && !one.deleted_at),
    task: (id) => tasks.find((task) => task['id'] === id),
    blockersOf: (id) => blocks.filter(([, target]) => target === id).map(([source]) => source),
    blockedBy: (id) => blocks.filter(([source]) => source === id).map(([, target]) => target),
    deliverablesOf: () => links,
    depthOfRun: () => depth,
  }
}

const task = (id: string, more: Values = {}): Values => ({
  id,
  title: 'Title',
  status: 'todo',
  priority: 'high',
  assignment_generation: 0,
  ...more,
})

const change = (
  table: Change['table'],
  before: Values | undefined,
  after: Values,
  more: Partial<Change> = {},
): Change => ({
  table,
  id: String(after['id']),
  before,
  after,
  actor: human,
  runId: null,
  at: '2026-01-02T03:04:05.000Z',
  ...more,
})

const items = (changes: readonly Change[], facts: Facts = {}) =>
  derive(changes, world(facts))
    .inserts.filter(({ table }) => table === 'agent_inbox_items')
    .map(({ row }) => row)
const notes = (changes: readonly Change[], facts: Facts = {}) =>
  derive(changes, world(facts))
    .inserts.filter(({ table }) => table === 'notifications')
    .map(({ row }) => row)

/** As both sides do: computed columns first, then derivation. */
function step(before: Values, set: Values, more: Partial<Change> = {}): Change {
  const merged = { ...before, ...set }
  return change(
    'tasks',
    before,
    { ...merged, ...computedColumns('tasks', before, merged, '2026-01-02T03:04:05.000Z', set) },
    more,
  )
}

describe('assignment (D2, D3, D4)', () => {
  test('A, then B, then A again: three wakes, two of them A’s', () => {
    const first = change('tasks', undefined, task(T1, { assignee_agent_id: A }))
    const second = step({ ...first.after }, { assignee_agent_id: B })
    const third = step({ ...second.after }, { assignee_agent_id: A })
    const all = [first, second, third].flatMap((one) => items([one]))
    expect(all.map((item) => [item['agent_id'], item['event_type']])).toEqual([
      [A, 'task_assignment'],
      [B, 'task_reassignment'],
      [A, 'task_reassignment'],
    ])
    expect(new Set(all.map((item) => item['id'])).size).toBe(3)
    expect(all[0]).toMatchObject({ gateway_id: 'gateway-of-ada', priority: 'high', task_id: T1, tenant_id: 'tenant' })
  })

  test('the same cause gives the same id, wherever it is derived (D1)', () => {
    const once = change('tasks', undefined, task(T1, { assignee_agent_id: A }))
    const elsewhere = { ...once, at: '2030-01-01T00:00:00.000Z' }
    expect(items([once])[0]?.['id']).toBe(items([elsewhere])[0]?.['id'])
  })

  test('nobody is woken by an unrelated edit, by a claim, for a deleted agent, or for a finished task', () => {
    const before = task(T1, { assignee_agent_id: A })
    expect(items([step(before, { title: 'Other' })])).toEqual([])
    expect(items([step(task(T1), { assignee_agent_id: A }, { actor: agentA })])).toEqual([])
    expect(items([step(task(T1), { assignee_agent_id: GONE })])).toEqual([])
    expect(items([step(task(T1, { status: 'done' }), { assignee_agent_id: A })])).toEqual([])
  })

  test('reopening wakes again', () => {
    const done = task(T1, { assignee_agent_id: A, status: 'done', completed_at: '2026-01-01' })
    const reopened = step(done, { status: 'todo' })
    expect(reopened.after).toMatchObject({ assignment_generation: 1, completed_at: null })
    expect(items([reopened])).toHaveLength(1)
  })

  test('a chain of agents ends', () => {
    const assigned = step(task(T1), { assignee_agent_id: B }, { actor: agentA, runId: 'run' })
    expect(items([assigned], { depth: 2 })[0]?.['context']).toMatchObject({ depth: 3 })
    expect(items([assigned], { depth: MAX_DEPTH })).toEqual([])
  })

  test('a person who is assigned by somebody else is told', () => {
    const other = { actor: system }
    expect(notes([step(task(T1), { assignee_person_id: ANN }, other)])).toMatchObject([
      { type: 'task_assigned', person_id: ANN },
    ])
    expect(notes([step(task(T1), { assignee_person_id: ANN })])).toEqual([])
  })
})

describe('comments', () => {
  const comment = (more: Values): Values => ({
    id: 'comment',
    entity_type: 'task',
    entity_id: T1,
    body: 'Hello',
    mentions: [],
    ...more,
  })
  const facts = { tasks: [task(T1, { assignee_agent_id: A, created_by_type: 'human', created_by_id: ANN })] }

  test('a person’s plain comment wakes the assignee; with a mention, the mentioned and not twice', () => {
    expect(
      items([change('comments', undefined, comment({}))], facts).map((item) => [item['event_type'], item['agent_id']]),
    ).toEqual([['task_comment', A]])
    const both = items(
      [change('comments', undefined, comment({ mentions: ['ben', 'ada', 'ada', 'gone', 'nobody'] }))],
      facts,
    )
    expect(both.map((item) => [item['event_type'], item['agent_id']])).toEqual([
      ['task_comment_mention', B],
      ['task_comment_mention', A],
    ])
  })

  test('an agent’s own comment never wakes it, and tells the task’s author', () => {
    const own = change('comments', undefined, comment({ mentions: ['ada'] }), { actor: agentA })
    expect(items([own], facts)).toEqual([])
    expect(notes([own], facts)).toMatchObject([{ type: 'agent_comment', person_id: ANN, actor_agent_id: A }])
  })

  test('a person who is mentioned is told', () => {
    const mentioned = change('comments', undefined, comment({ mentions: [ANN] }), { actor: agentA })
    expect(notes([mentioned], facts).map((note) => note['type'])).toContain('mention')
  })
})

describe('reviews', () => {
  const link = (more: Values = {}): Deliverable & Values => ({
    id: 'link-1',
    owner_type: 'task',
    owner_id: T1,
    is_deliverable: true,
    review_status: 'submitted',
    review_round: 1,
    supersedes_id: null,
    deleted_at: null,
    submitted_by_agent_id: A,
    label: 'Report',
    ...more,
  })
  const verdict = (before: Values, status: string): Change => {
    const after = { ...before, review_status: status }
    return change('entity_links', before, { ...after, ...computedColumns('entity_links', before, after, '', {}) })
  }
  const facts = { tasks: [task(T1, { assignee_agent_id: B, status: 'in_progress' })] }

  test('two revisions on one day wake twice', () => {
    const first = verdict(link(), 'revision_requested')
    const again = verdict({ ...first.after }, 'submitted')
    const second = verdict({ ...again.after }, 'revision_requested')
    expect([first, again, second].map(({ after }) => after['review_round'])).toEqual([1, 2, 2])
    const wakes = [first, second].flatMap((one) => items([one], facts))
    expect(wakes.map((item) => [item['event_type'], item['agent_id']])).toEqual(
      Array(2).fill(['deliverable_review', A]),
    )
    expect(new Set(wakes.map((item) => item['id'])).size).toBe(2)
  })

  test('approving v2 completes the task although v1 was sent back; not while another one counts', () => {
    const v1 = link({ review_status: 'revision_requested' })
    const v2 = link({ id: 'link-2', supersedes_id: 'link-1' })
    const approved = verdict(v2, 'approved')
    const done = derive([approved], world({ ...facts, links: [v1, v2] }))
    expect(done.updates).toMatchObject([{ table: 'tasks', id: T1, set: { status: 'done', completed_at: approved.at } }])
    const other = link({ id: 'link-3' })
    expect(derive([approved], world({ ...facts, links: [v1, v2, other] })).updates).toEqual([])
  })

  test('completion by approval releases what the task blocked, in the same derivation (D5)', () => {
    const chain: Facts = {
      tasks: [...facts.tasks, task(T2, { status: 'blocked', assignee_agent_id: B })],
      blocks: [[T1, T2]],
      links: [],
    }
    const { inserts, updates } = derive([verdict(link(), 'approved')], world(chain))
    expect(updates.map(({ id, set }) => [id, set['status']])).toEqual([
      [T1, 'done'],
      [T2, 'todo'],
    ])
    expect(inserts.map(({ row }) => row['event_type'] ?? row['type'])).toEqual(['blocker_resolved', 'task_completed'])
  })

  test('a submission tells people', () => {
    const submitted = change('entity_links', undefined, link(), { actor: agentA })
    expect(notes([submitted], facts)).toMatchObject([{ type: 'deliverable_submitted', entity_type: 'deliverable' }])
  })

  test('the state machine (V1, V2, V3, V4)', () => {
    expect(reviewRefusal('submitted', 'approved', true)).toBeUndefined()
    expect(reviewRefusal('submitted', 'approved', false)).toMatch(/Only a person/)
    expect(reviewRefusal('draft', 'approved', true)).toMatch(/can't become/)
    expect(reviewRefusal(undefined, 'submitted', false)).toBeUndefined()
    expect(reviewRefusal(undefined, 'approved', true)).toMatch(/begins/)
    expect(nextRound('submitted', 'approved', 3)).toBe(3)
    expect(nextRound('approved', 'revision_requested', 3)).toBe(4)
    expect(isVerdict('submitted')).toBe(false)
    expect(allApproved([])).toBe(false)
  })
})

describe('blockers', () => {
  const facts = (third: string): Facts => ({
    tasks: [
      task(T1, { status: 'in_progress' }),
      task(T2, { status: 'blocked', assignee_agent_id: B }),
      task(T3, { status: third }),
    ],
    blocks: [
      [T1, T2],
      [T3, T2],
    ],
  })
  const finished = (status = 'done') => step(task(T1, { status: 'in_progress' }), { status })

  test('only the last blocker wakes, done or cancelled', () => {
    expect(items([finished()], facts('todo'))).toEqual([])
    for (const status of ['done', 'cancelled']) {
      expect(items([finished(status)], facts('done'))).toMatchObject([
        { event_type: 'blocker_resolved', agent_id: B, task_id: T2 },
      ])
    }
  })

  test('two blockers that end in one mutation wake once', () => {
    const both = [finished(), step(task(T3, { status: 'todo' }), { status: 'done' })]
    const { inserts, updates } = derive(both, world(facts('todo')))
    expect(inserts.filter(({ row }) => row['event_type'] === 'blocker_resolved')).toHaveLength(1)
    expect(updates).toHaveLength(1)
  })

  test('removing the relation releases as well', () => {
    const relation = {
      id: 'relation',
      source_task_id: T1,
      target_task_id: T2,
      relation_type: 'blocks',
      deleted_at: null,
    }
    const removed = change('task_relations', relation, { ...relation, deleted_at: '2026-01-01' })
    expect(items([removed], { ...facts('done'), blocks: [[T3, T2]] })).toMatchObject([
      { event_type: 'blocker_resolved' },
    ])
  })
})

test('a question to people is told once, when it is asked', () => {
  const question = { id: T1, agent_id: A, status: 'pending', title: 'Run “git push”' }
  const asked = (row: Values) => notes([change('approvals', undefined, row, { actor: system })])
  expect(asked(question)).toMatchObject([
    { type: 'approval_requested', title: 'ADA asks: Run “git push”', entity_type: 'approval', person_id: null },
  ])
  expect(asked({ ...question, agent_id: null })).toMatchObject([{ title: 'A gateway asks: Run “git push”' }])
  expect(notes([change('approvals', question, { ...question, status: 'allowed' })])).toEqual([])
})

test('what failed or was given up is told', () => {
  const command = { id: 'c', action: 'provision', status: 'running', attempt_count: 1 }
  expect(
    notes([
      change('agent_commands', command, { ...command, status: 'failed', error_message: 'No disk' }, { actor: system }),
    ]),
  ).toMatchObject([{ type: 'command_failed', body: 'No disk', entity_type: 'command' }])
  const item = { id: 'i', agent_id: A, status: 'leased', attempt_count: 3, task_id: null }
  expect(
    notes([change('agent_inbox_items', item, { ...item, status: 'dead_letter' }, { actor: system })]),
  ).toMatchObject([{ type: 'dead_letter' }])
  const blocked = step(task(T1, { status: 'in_progress' }), { status: 'blocked' }, { actor: agentA, runId: 'r' })
  expect(notes([blocked])).toMatchObject([{ type: 'task_blocked' }])
})
