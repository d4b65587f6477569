/** The whole loop with the demo model: dispatcher, builtin runtime, tools and rows. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createRuntimes } from '../runtime/registry.ts'
import { createDispatcher, type Dispatcher } from './dispatcher.ts'
import { openTestGateway, type TestGateway, until } from './testing.ts'

let gateway: TestGateway
let dispatcher: Dispatcher

beforeEach(async () => {
  gateway = await openTestGateway()
  dispatcher = createDispatcher(gateway.context, { runtimes: createRuntimes(gateway.context, { demoPaceMs: 0 }) })
  await dispatcher.start()
})

afterEach(async () => {
  await dispatcher.stop()
  await gateway.close()
})

const itemIs = (id: string, status: string) => async () =>
  (await gateway.one<{ status: string }>('select status from agent_inbox_items where id = $1', [id])).status === status

test('an assignment becomes a submitted deliverable, a revision, and an answer to a comment', async () => {
  const agent = await gateway.agent('Writer', { description: 'Writes newsletters' })
  const task = await gateway.task('Launch note', agent, {
    description: 'We launch on Friday.\n- Say why\n- Say for whom',
  })
  const item = await gateway.item(agent, task)
  await until('the first item is done', itemIs(item, 'done'))

  const first = await gateway.one<{ id: string; body: string; label: string; run_id: string }>(
    `select * from entity_links where owner_id = $1 and review_status = 'submitted'`,
    [task],
  )
  expect(first.body).toContain('Written by the demo model')
  expect(first.body).toContain('- [ ] Say why')
  expect(await gateway.one('select status from tasks where id = $1', [task])).toEqual({ status: 'in_progress' })
  const run = await gateway.one<{ id: string }>('select * from agent_runs where inbox_item_id = $1', [item])
  expect(run).toMatchObject({
    id: first.run_id,
    demo: true,
    status: 'done',
    provider: 'demo',
    task_id: task,
    turns: 5,
    tool_calls: 4,
  })
  const kinds = await gateway.replica.query<{ kind: string; seq: number }>(
    'select kind, seq from agent_run_events where run_id = $1 order by seq',
    [run.id],
  )
  expect(kinds.map(({ seq }) => seq)).toEqual(kinds.map((_, index) => index))
  expect(kinds.filter(({ kind }) => kind === 'tool_call')).toHaveLength(4)
  expect(kinds.filter(({ kind }) => kind === 'tool_result')).toHaveLength(4)
  expect(
    await gateway.one(`select count(*)::int as n from comments where entity_id = $1 and actor_agent_id = $2`, [
      task,
      agent,
    ]),
  ).toEqual({ n: 1 })

  await gateway.replica.write((tx) =>
    tx.query(
      `update entity_links set review_status = 'revision_requested', review_note = 'Shorter, please. Name the price.' where id = $1`,
      [first.id],
    ),
  )
  const review = await gateway.item(agent, task, {
    event_type: 'deliverable_review',
    dedup_key: `deliverable_review:${first.id}:1:revision_requested`,
    link_id: first.id,
    context: { actor_type: 'human', review_note: 'Shorter, please. Name the price.' },
  })
  await until('the review is answered', itemIs(review, 'done'))
  const second = await gateway.one<{ body: string; label: string }>(
    'select * from entity_links where supersedes_id = $1',
    [first.id],
  )
  expect(second).toMatchObject({ review_status: 'submitted', label: first.label })
  expect(second.body).toContain('> Shorter, please. Name the price.')

  const comment = await gateway.insert('comments', {
    entity_type: 'task',
    entity_id: task,
    body: 'When is it ready?',
    actor_type: 'human',
  })
  const asked = await gateway.item(agent, task, {
    event_type: 'task_comment',
    dedup_key: `task_comment:${comment}:${agent}`,
    comment_id: comment,
  })
  await until('the comment is answered', itemIs(asked, 'done'))
  const answer = await gateway.one<{ body: string }>(
    `select body from comments where entity_id = $1 and actor_type = 'agent' order by created_at desc, id desc limit 1`,
    [task],
  )
  expect(answer.body).toContain('> When is it ready?')
  expect(gateway.logged.filter((line) => line.startsWith('error'))).toEqual([])
}, 30_000)
