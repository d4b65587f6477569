/**
 * An agent's work through the whole system: a real server, a gateway process, its dispatcher and the demo model. What the gateway writes the server must
 * take, and what both derive must be there once.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type GatewayProcess, startGatewayProcess } from '@hq/gateway-node/testing/process.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { insert, startWorkspace, update, type Workspace, type Writer } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

type Row = Record<string, unknown>

let workspace: Workspace
let folder: string
let gateway: GatewayProcess
let gatewayId: string
let writer: Writer

beforeAll(async () => {
  workspace = await startWorkspace()
  folder = await mkdtemp(join(tmpdir(), 'hq-agent-work-'))
  const made = await workspace.request(workspace.owner, '/v1/gateways/tokens', {
    method: 'POST',
    body: JSON.stringify({ label: 'work' }),
  })
  const { token } = (await made.json()) as { token: string }
  gateway = startGatewayProcess({
    PATH: process.env['PATH'] ?? '',
    HQ_GATEWAY_HOME: join(folder, 'home'),
    HQ_SERVER_URL: workspace.url,
    HQ_REGISTRATION_TOKEN: token,
    HQ_GATEWAY_SLUG: 'work',
  })
  gatewayId = String((await gateway.ready())['gateway'])
  writer = workspace.writer(workspace.owner)
})
afterAll(async () => {
  await gateway.end('SIGKILL')
  await workspace.stop()
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

async function when(
  what: string,
  sql: string,
  params: readonly unknown[],
  is: (rows: Row[]) => boolean = (rows) => rows.length > 0,
  ms = 60_000,
): Promise<Row[]> {
  const end = Date.now() + ms
  for (;;) {
    const rows = await workspace.rows<Row>(sql, [...params])
    if (is(rows)) return rows
    if (Date.now() > end) throw new Error(`it never came: ${what}\n${JSON.stringify(rows)}\n${gateway.text()}`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

async function provision(slug: string): Promise<string> {
  const [agent, command] = [newId(), newId()]
  const { tenantId: tenant_id } = workspace
  await writer.apply([
    insert('agents', { tenant_id, gateway_id: gatewayId, name: slug, slug, meta: { template: 'writer' } }, agent),
    insert('agent_commands', { tenant_id, gateway_id: gatewayId, agent_id: agent, action: 'provision' }, command),
  ])
  await when('the agent is ready', `select 1 from agents where id = $1 and status = 'ready'`, [agent])
  return agent
}

async function assign(agent: string, title: string): Promise<string> {
  const task = newId()
  await writer.apply([
    insert(
      'tasks',
      {
        tenant_id: workspace.tenantId,
        title,
        description: 'Say why.',
        assignee_type: 'agent',
        assignee_agent_id: agent,
        created_by_type: 'human',
        created_by_id: workspace.owner.principal.person_id,
      },
      task,
    ),
  ])
  return task
}

const deliverable = (task: string): Promise<Row[]> =>
  when('a deliverable', `select * from entity_links where owner_id = $1 and review_status = 'submitted'`, [task])
const review = (link: Row, set: Row): Promise<void> =>
  writer.apply([
    update(
      'entity_links',
      String(link['id']),
      { review_status: link['review_status'] },
      { ...set, reviewed_by: workspace.owner.principal.person_id },
    ),
  ])

/** P3, P7: the server took everything, and has nothing twice. */
async function expectClean(): Promise<void> {
  expect(await workspace.rows(`select code, message, detail from mutation_results where outcome = 'rejected'`)).toEqual(
    [],
  )
  expect(
    await workspace.rows('select dedup_key from agent_inbox_items group by dedup_key having count(*) > 1'),
  ).toEqual([])
  expect(
    await workspace.rows(
      'select type, entity_id, title from notifications group by type, entity_id, title, body having count(*) > 1',
    ),
  ).toEqual([])
}

test('assigned, delivered, sent back, delivered again, approved, done', async () => {
  const agent = await provision('wanda')
  const task = await assign(agent, 'Launch note')
  const [first] = await deliverable(task)
  if (!first) throw new Error('no deliverable')
  expect(first).toMatchObject({ submitted_by_agent_id: agent, supersedes_id: null })
  const [run] = await when('the run has ended', `select * from agent_runs where agent_id = $1 and status = 'done'`, [
    agent,
  ])
  expect(run).toMatchObject({ demo: true, task_id: task, error_message: null })
  const events = await workspace.rows<Row>('select seq, kind from agent_run_events where run_id = $1 order by seq', [
    run?.['id'],
  ])
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index))
  await when('the gate says that there is nothing to do', `select 1 from agents where id = $1 and gate = 'no_work'`, [
    agent,
  ])

  await review(first, { review_status: 'revision_requested', review_note: 'Shorter.' })
  const [second] = await when('a second version', 'select * from entity_links where supersedes_id = $1', [first['id']])
  if (!second) throw new Error('no second version')
  expect(second['body']).toContain('> Shorter.')
  await review(second, { review_status: 'approved' })
  await when('the task is done', `select 1 from tasks where id = $1 and status = 'done'`, [task])

  await writer.apply([
    insert('comments', {
      tenant_id: workspace.tenantId,
      entity_type: 'task',
      entity_id: task,
      body: 'Thank you!',
      actor_type: 'human',
      actor_person_id: workspace.owner.principal.person_id,
    }),
  ])
  await when(
    'an answer',
    `select 1 from comments where entity_id = $1 and actor_type = 'agent' and body like '%Thank you!%'`,
    [task],
  )
  await when(
    'all items are done',
    `select status from agent_inbox_items where agent_id = $1`,
    [agent],
    (rows) => rows.length === 3 && rows.every(({ status }) => status === 'done'),
  )
  await expectClean()
  const audit = await workspace.rows<Row>(
    `select actor_id, run_id from audit_log where entity_id = $1 and actor_type = 'agent'`,
    [first['id']],
  )
  expect(audit).toMatchObject([{ actor_id: agent, run_id: first['run_id'] }])
})

test('the server goes away while an agent works: the work is finished here, and reported once it is back', async () => {
  const agent = await provision('olga')
  const blocked = newId()
  const task = newId()
  const { tenantId: tenant_id } = workspace
  await writer.apply([
    insert(
      'tasks',
      { tenant_id, title: 'Second', assignee_type: 'agent', assignee_agent_id: agent, status: 'blocked' },
      blocked,
    ),
    insert(
      'tasks',
      { tenant_id, title: 'First', assignee_type: 'agent', assignee_agent_id: agent, priority: 'urgent' },
      task,
    ),
    insert('task_relations', { tenant_id, source_task_id: task, target_task_id: blocked, relation_type: 'blocks' }),
  ])
  await when('the agent has begun', `select 1 from agent_inbox_items where task_id = $1 and status = 'leased'`, [task])
  await workspace.restart()
  const links = await deliverable(task)
  expect(links).toHaveLength(1)
  if (links[0]) await review(links[0], { review_status: 'approved' })
  await deliverable(blocked)
  await when('nothing is open', `select status from agent_inbox_items where agent_id = $1`, [agent], (rows) =>
    rows.every(({ status }) => status === 'done'),
  )
  await expectClean()
})

test('A→B→A wakes A again, and a paused agent is left alone', async () => {
  const [a, b] = [await provision('anna'), await provision('berta')]
  await writer.apply([
    update('agents', b, { pause_requested_at: null }, { pause_requested_at: new Date().toISOString() }),
  ])
  await when(
    'B says that it is paused',
    `select 1 from agents where id = $1 and gate = 'paused' and status = 'paused'`,
    [b],
  )
  const task = await assign(a, 'Ping-pong')
  await when('A is done', `select 1 from agent_runs where agent_id = $1 and status = 'done'`, [a])
  await writer.apply([update('tasks', task, { assignee_agent_id: a }, { assignee_agent_id: b })])
  await when('B has an item', `select 1 from agent_inbox_items where agent_id = $1 and status = 'pending'`, [b])
  await writer.apply([update('tasks', task, { assignee_agent_id: b }, { assignee_agent_id: a })])
  await when(
    'A was woken twice',
    `select 1 from agent_runs where agent_id = $1 and status = 'done'`,
    [a],
    (rows) => rows.length === 2,
  )
  await when('B’s item has ended', `select 1 from agent_inbox_items where agent_id = $1 and status = 'cancelled'`, [b])
  expect(await workspace.rows('select 1 from agent_runs where agent_id = $1', [b])).toEqual([])
  await expectClean()
})
