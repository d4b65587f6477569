/** The derivations of shared/domain/derive.ts as the server runs them: in the transaction of the mutation that is their cause. */

import { derivedId } from '@hq/shared/domain/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '../database/ids.ts'
import { type Gateway, insert, startWorkspace, update, type Workspace, type Writer } from '../testing/workspace.ts'

let workspace: Workspace
let gateway: Gateway
let other: Gateway
let owner: Writer
let ada: string
let ben: string

beforeAll(async () => {
  workspace = await startWorkspace()
  gateway = await workspace.gateway('one')
  other = await workspace.gateway('two')
  owner = workspace.writer(workspace.owner)
  ada = newId()
  ben = newId()
  await owner.apply(
    [insert('agents', { name: 'Ada', slug: 'ada', gateway_id: gateway.principal.gateway_id }, ada)],
    [insert('agents', { name: 'Ben', slug: 'ben', gateway_id: other.principal.gateway_id }, ben)],
  )
})
afterAll(() => workspace?.stop())

const itemsOf = (taskId: string) =>
  workspace.rows<{ event_type: string; agent_id: string; gateway_id: string; status: string; dedup_key: string }>(
    'select event_type, agent_id, gateway_id, status, dedup_key from agent_inbox_items where task_id = $1 order by created_at, id',
    [taskId],
  )
const one = async (table: string, id: string) =>
  (await workspace.rows(`select * from ${table} where id = $1`, [id]))[0] ?? {}
const assign = (id: string, from: string | null, to: string) =>
  owner.apply([update('tasks', id, { assignee_agent_id: from }, { assignee_agent_id: to, assignee_type: 'agent' })])

test('A to B to A wakes A, B, and A again, each on its own gateway', async () => {
  const id = newId()
  await owner.apply([insert('tasks', { title: 'Move about', assignee_agent_id: ada }, id)])
  await assign(id, ada, ben)
  await assign(id, ben, ada)
  const items = await itemsOf(id)
  expect(items.map(({ agent_id, gateway_id }) => [agent_id, gateway_id])).toEqual([
    [ada, gateway.principal.gateway_id],
    [ben, other.principal.gateway_id],
    [ada, gateway.principal.gateway_id],
  ])
  expect(await one('tasks', id)).toMatchObject({ assignment_generation: 2, status: 'todo' })
})

test('what a gateway derived offline is the row that the server derives, and its progress counts', async () => {
  const id = newId()
  const key = `task_assignment:${id}:${ada}:0`
  const item = derivedId('inbox', workspace.tenantId, key)
  await owner.apply([insert('tasks', { title: 'Both sides', assignee_agent_id: ada }, id)])
  await workspace.writer(gateway).apply(
    [
      insert(
        'agent_inbox_items',
        {
          agent_id: ada,
          event_type: 'task_assignment',
          dedup_key: key,
          task_id: id,
          status: 'pending',
          context: { other: 1 },
        },
        item,
      ),
    ],
    [update('agent_inbox_items', item, { status: 'pending' }, { status: 'done', summary: 'Finished offline' })],
  )
  expect(await itemsOf(id)).toHaveLength(1)
  expect(await one('agent_inbox_items', item)).toMatchObject({
    status: 'done',
    gateway_id: gateway.principal.gateway_id,
  })
})

test('a gateway cannot make items for agents of another', async () => {
  const key = `task_assignment:${newId()}:${ben}:0`
  const { results } = await workspace
    .writer(gateway)
    .push([
      insert(
        'agent_inbox_items',
        { agent_id: ben, event_type: 'task_assignment', dedup_key: key },
        derivedId('inbox', workspace.tenantId, key),
      ),
    ])
  expect(results[0]?.code).toBe('forbidden')
})

test('two revisions the same day wake twice; v2 approved completes while v1 was sent back', async () => {
  const [id, v1, v2] = [newId(), newId(), newId()]
  await owner.apply([insert('tasks', { title: 'Report', assignee_agent_id: ada, status: 'in_progress' }, id)])
  const agent = workspace.writer(gateway)
  const asAda = { actor: { type: 'agent', id: ada } } as const
  const link = {
    owner_type: 'task',
    owner_id: id,
    target_type: 'text',
    body: '…',
    is_deliverable: true,
    review_status: 'submitted',
    submitted_by_agent_id: ada,
  }
  const verdict = (on: string, from: string, to: string) =>
    owner.apply([
      update(
        'entity_links',
        on,
        { review_status: from },
        { review_status: to, reviewed_by: workspace.owner.principal.person_id },
      ),
    ])
  await agent.apply({ ...asAda, patches: [insert('entity_links', link, v1)] })
  await verdict(v1, 'submitted', 'revision_requested')
  await agent.apply({
    ...asAda,
    patches: [update('entity_links', v1, { review_status: 'revision_requested' }, { review_status: 'submitted' })],
  })
  await verdict(v1, 'submitted', 'revision_requested')
  expect((await itemsOf(id)).filter(({ event_type }) => event_type === 'deliverable_review')).toHaveLength(2)
  expect(await one('entity_links', v1)).toMatchObject({ review_round: 2 })

  await agent.apply({ ...asAda, patches: [insert('entity_links', { ...link, supersedes_id: v1 }, v2)] })
  const forged = await agent.push({
    ...asAda,
    patches: [update('entity_links', v2, { review_status: 'submitted' }, { review_status: 'approved' })],
  })
  expect(forged.results[0]?.code).toBe('forbidden')
  await verdict(v2, 'submitted', 'approved')
  const task = await one('tasks', id)
  expect(task).toMatchObject({ status: 'done' })
  expect(task['completed_at']).not.toBeNull()
  const notes = await workspace.rows<{ type: string }>(
    'select type from notifications where entity_id = any($1) order by created_at',
    [[id, v1, v2]],
  )
  expect(notes.map(({ type }) => type).sort()).toEqual([
    'deliverable_submitted',
    'deliverable_submitted',
    'deliverable_submitted',
    'task_completed',
  ])
})

test('the last blocker, not the one before, releases and wakes', async () => {
  const [a, b, target] = [newId(), newId(), newId()]
  await owner.apply(
    [
      insert('tasks', { title: 'A' }, a),
      insert('tasks', { title: 'B' }, b),
      insert('tasks', { title: 'Target', status: 'blocked', assignee_agent_id: ben }, target),
    ],
    [
      insert('task_relations', { source_task_id: a, target_task_id: target, relation_type: 'blocks' }),
      insert('task_relations', { source_task_id: b, target_task_id: target, relation_type: 'blocks' }),
    ],
  )
  const resolved = async () =>
    (await itemsOf(target)).filter(({ event_type }) => event_type === 'blocker_resolved').length
  await owner.apply([update('tasks', a, { status: 'todo' }, { status: 'done' })])
  expect([await resolved(), (await one('tasks', target))['status']]).toEqual([0, 'blocked'])
  await owner.apply([update('tasks', b, { status: 'todo' }, { status: 'cancelled' })])
  expect([await resolved(), (await one('tasks', target))['status']]).toEqual([1, 'todo'])
})

test('a plain comment of a person wakes the assignee; chains of agents end', async () => {
  const id = newId()
  const person = workspace.owner.principal.person_id
  await owner.apply([insert('tasks', { title: 'Talk', assignee_agent_id: ada }, id)])
  const comment = { entity_type: 'task', entity_id: id, body: 'How far are you?' }
  await owner.apply([insert('comments', { ...comment, actor_type: 'human', actor_person_id: person })])
  expect((await itemsOf(id)).map(({ event_type }) => event_type)).toEqual(['task_assignment', 'task_comment'])

  // A run that was itself caused by a long chain mentions the next agent: nobody is woken any more.
  const [item, run] = [newId(), newId()]
  await workspace.server.pool.query(
    `insert into agent_inbox_items (id, tenant_id, gateway_id, agent_id, event_type, dedup_key, context) values ($1, $2, $3, $4, 'task_comment_mention', $5, '{"depth": 6}')`,
    [item, workspace.tenantId, gateway.principal.gateway_id, ada, `test:${item}`],
  )
  const writer = workspace.writer(gateway)
  await writer.apply([
    insert(
      'agent_runs',
      { gateway_id: gateway.principal.gateway_id, agent_id: ada, inbox_item_id: item, runtime: 'builtin' },
      run,
    ),
  ])
  const mention = { ...comment, body: '@ben', mentions: ['ben'], actor_type: 'agent', actor_agent_id: ada }
  const asAda = { type: 'agent', id: ada } as const
  await writer.apply({ actor: asAda, runId: run, patches: [insert('comments', mention)] })
  expect((await itemsOf(id)).filter(({ agent_id }) => agent_id === ben)).toEqual([])
  await writer.apply({ actor: asAda, patches: [insert('comments', mention)] })
  expect((await itemsOf(id)).filter(({ agent_id }) => agent_id === ben)).toHaveLength(1)
})

test('an agent that moves takes its open work along and begins a new epoch', async () => {
  const [agent, id] = [newId(), newId()]
  const from = gateway.principal.gateway_id
  const to = other.principal.gateway_id
  await owner.apply(
    [insert('agents', { name: 'Mover', slug: 'mover', gateway_id: from }, agent)],
    [insert('tasks', { title: 'Open', assignee_agent_id: agent }, id)],
  )
  await owner.apply([update('agents', agent, { gateway_id: from }, { gateway_id: to })])
  expect(await one('agents', agent)).toMatchObject({ epoch: 2, gateway_id: to })
  expect((await itemsOf(id)).map(({ gateway_id }) => gateway_id)).toEqual([to])
  const late = await workspace
    .writer(gateway)
    .push({ actor: { type: 'agent', id: agent }, patches: [insert('tasks', { title: 'From the old place' })] })
  expect(late.results[0]?.code).toBe('forbidden')
})
