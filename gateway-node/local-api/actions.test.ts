import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../dispatcher/testing.ts'
import { type Actions, type Caller, TEXT_LIMITS } from './actions.ts'
import { gatewayActions } from './gateway-actions.ts'

let gateway: TestGateway
let actions: Actions
let ann: string
let task: string
let caller: Caller

beforeEach(async () => {
  gateway = await openTestGateway()
  actions = gatewayActions(gateway.context)
  ann = await gateway.agent('Ann')
  task = await gateway.task('Launch', ann)
  caller = { agent: { id: ann, slug: 'ann', name: 'Ann' }, runId: randomUUID(), itemId: randomUUID() }
})
afterEach(() => gateway.close())

const rows = (sql: string, params: string[] = []): Promise<Record<string, unknown>[]> =>
  gateway.replica.query(sql, params)
const review = (id: string, status: string): Promise<unknown> =>
  gateway.replica.write((tx) => tx.query('update entity_links set review_status = $2 where id = $1', [id, status]))

async function submit(text: string, label = 'Note'): Promise<string> {
  const result = await actions.submitDeliverable(caller, task, { label, text })
  if (!result.ok) throw new Error(result.message)
  return result.value.id
}

describe('deliverables', () => {
  test('up for review; the task stays in progress; people are told once (A3)', async () => {
    const id = await submit('Hello')
    expect(await rows('select status from tasks where id = $1', [task])).toEqual([{ status: 'in_progress' }])
    expect(await rows('select * from entity_links where id = $1', [id])).toMatchObject([
      {
        review_status: 'submitted',
        is_deliverable: true,
        submitted_by_agent_id: ann,
        run_id: caller.runId,
        body: 'Hello',
        supersedes_id: null,
      },
    ])
    expect(await rows(`select type, entity_id from notifications where type = 'deliverable_submitted'`)).toEqual([
      { type: 'deliverable_submitted', entity_id: id },
    ])
  })

  test('the same again is no second one, in this run or a later try (A4, A5)', async () => {
    const id = await submit('Hello')
    caller = { ...caller, runId: randomUUID() }
    expect(await actions.submitDeliverable(caller, task, { label: ' NOTE ', text: 'Hello' })).toMatchObject({
      ok: true,
      value: { id, already: true },
    })
    expect(await rows('select 1 from entity_links')).toHaveLength(1)
  })

  test('a new version names the one it replaces, whatever its review said; others stand beside it (A4)', async () => {
    const first = await submit('One')
    await review(first, 'revision_requested')
    const second = await submit('Two')
    const beside = await submit('Extra', 'Appendix')
    await review(second, 'approved')
    const third = await submit('Three')
    expect(await rows('select id, supersedes_id from entity_links order by created_at, body')).toEqual(
      expect.arrayContaining([
        { id: second, supersedes_id: first },
        { id: third, supersedes_id: second },
        { id: beside, supersedes_id: null },
      ]),
    )
  })

  test('a renamed revision still replaces what was sent back', async () => {
    const first = await submit('One')
    await review(first, 'revision_requested')
    const second = await submit('Two', 'A better name')
    expect(await rows('select supersedes_id from entity_links where id = $1', [second])).toEqual([
      { supersedes_id: first },
    ])
  })

  test.each([
    [{ label: '', text: 'x' }, /needs a label/],
    [{ label: 'x' }, /exactly one/],
    [{ label: 'x', text: 'a', url: 'https://a.b' }, /exactly one/],
    [{ label: 'x', text: '  ' }, /empty/],
    [{ label: 'x', text: 'a'.repeat(TEXT_LIMITS.deliverable + 1) }, /characters/],
    [{ label: 'x', url: 'javascript:alert(1)' }, /https/],
    [{ label: 'x', url: 'https://user:password@host' }, /user name/],
    [{ label: 'x', file: '../x' }, /leads out/],
  ])('%#: bad input is refused with a sentence and changes nothing (A6)', async (submission, sentence) => {
    expect(await actions.submitDeliverable(caller, task, submission)).toMatchObject({
      ok: false,
      message: expect.stringMatching(sentence),
    })
    expect(await rows('select 1 from entity_links')).toEqual([])
    expect(await rows('select status from tasks where id = $1', [task])).toEqual([{ status: 'todo' }])
  })
})

describe('completing', () => {
  test('refused while something waits for review or revision, and while blocked (A3)', async () => {
    const id = await submit('One')
    expect(await actions.complete(caller, task)).toMatchObject({ ok: false, code: 'awaits_review' })
    await review(id, 'revision_requested')
    expect(await actions.complete(caller, task)).toMatchObject({ ok: false, code: 'awaits_review' })
    await review(id, 'rejected')
    const blocker = await gateway.task('First', ann)
    await gateway.insert('task_relations', { source_task_id: blocker, target_task_id: task, relation_type: 'blocks' })
    expect(await actions.complete(caller, task)).toMatchObject({
      ok: false,
      code: 'blocked',
      message: '“Launch” waits for “First”.',
    })
    expect(await actions.claim(caller, task)).toMatchObject({ ok: false, code: 'blocked' })
  })

  test('releases what it blocked and wakes its agent here, without a server; the other gateway’s is the server’s', async () => {
    const bob = await gateway.agent('Bob')
    const far = await gateway.agent('Far', { gateway_id: randomUUID() })
    const next = await gateway.task('Next', bob, { status: 'blocked' })
    const away = await gateway.task('Away', far, { status: 'blocked' })
    for (const target of [next, away])
      await gateway.insert('task_relations', { source_task_id: task, target_task_id: target, relation_type: 'blocks' })
    expect(await actions.complete(caller, task, 'Made it.')).toEqual({ ok: true, value: { status: 'done' } })
    expect(await rows('select agent_id, event_type, status from agent_inbox_items')).toEqual([
      { agent_id: bob, event_type: 'blocker_resolved', status: 'pending' },
    ])
    expect(
      await rows('select status from tasks where id = any($1::uuid[])', [[next, away] as unknown as string]),
    ).toEqual([{ status: 'todo' }, { status: 'todo' }])
    expect(await rows(`select type from notifications order by type`)).toEqual([
      { type: 'agent_comment' },
      { type: 'task_completed' },
    ])
    expect(await actions.complete(caller, task)).toEqual({ ok: true, value: { status: 'done' } })
    expect(await rows('select body from comments')).toEqual([{ body: 'Made it.' }])
  })
})

describe('whose task it is (A2)', () => {
  test('another’s: shown, not changed; a comment only where the agent was asked', async () => {
    const bob = await gateway.agent('Bob')
    const theirs = await gateway.task('Theirs', bob)
    expect(await actions.showTask(caller, theirs)).toMatchObject({
      ok: true,
      value: { title: 'Theirs', assigned_to_me: false },
    })
    for (const refused of [
      await actions.claim(caller, theirs),
      await actions.comment(caller, theirs, 'hi'),
      await actions.submitDeliverable(caller, theirs, { label: 'x', text: 'y' }),
      await actions.complete(caller, theirs),
    ]) {
      expect(refused).toMatchObject({ ok: false, code: 'not_yours' })
    }
    await gateway.item(ann, theirs, { event_type: 'task_comment_mention', dedup_key: 'comment_mention:x' })
    expect(await actions.comment(caller, theirs, 'You called?')).toMatchObject({ ok: true })
  })

  test('deleted and unknown tasks, and what is no id', async () => {
    await gateway.replica.write((tx) => tx.query('update tasks set deleted_at = now() where id = $1', [task]))
    expect(await actions.claim(caller, task)).toMatchObject({ ok: false, code: 'not_found' })
    expect(await actions.showTask(caller, randomUUID())).toMatchObject({ ok: false, code: 'not_found' })
    expect(await actions.showTask(caller, "x' or 1=1")).toMatchObject({ ok: false, code: 'invalid' })
  })

  test('after the run was aborted nothing is written any more (A6)', async () => {
    const abort = new AbortController()
    const stopped = { ...caller, signal: abort.signal }
    abort.abort()
    expect(await actions.comment(stopped, task, 'late')).toMatchObject({ ok: false, code: 'stopped' })
    expect(await rows('select 1 from comments')).toEqual([])
  })
})

test('comments: said once per item, mentions found, and agents that mention one another come to an end', async () => {
  const bob = await gateway.agent('Bob')
  const person = await gateway.insert('people', { name: 'Ada Lovelace', email: 'a@b.c', role: 'owner' })
  const first = await actions.comment(caller, task, 'Ask @bob, @ada or @AdaLovelace. Mail x@bob.example.')
  expect(await actions.comment(caller, task, 'Ask @bob, @ada or @AdaLovelace. Mail x@bob.example.')).toEqual(first)
  expect(await rows('select mentions from comments')).toEqual([{ mentions: [person, 'bob'].sort() }])
  expect(await rows('select agent_id from agent_inbox_items')).toEqual([{ agent_id: bob }])

  let [from, to] = [bob, ann]
  for (let hop = 0; hop < 20; hop += 1) {
    const [item] = await gateway.replica.query<{ id: string; task_id: string }>(
      `select id, task_id from agent_inbox_items where agent_id = $1 and status = 'pending'`,
      [from],
    )
    if (!item) break
    const runId = await gateway.insert('agent_runs', {
      gateway_id: gateway.context.gatewayId,
      agent_id: from,
      inbox_item_id: item.id,
      runtime: 'builtin',
    })
    await gateway.replica.write((tx) =>
      tx.query(`update agent_inbox_items set status = 'done' where id = $1`, [item.id]),
    )
    const name = from === bob ? 'bob' : 'ann'
    await actions.comment(
      { agent: { id: from, slug: name, name }, runId, itemId: item.id },
      task,
      `@${name === 'bob' ? 'ann' : 'bob'} ${hop}`,
    )
    ;[from, to] = [to, from]
  }
  expect((await rows('select 1 from agent_inbox_items')).length).toBeLessThanOrEqual(7)
})

test('my tasks and search', async () => {
  const due = await gateway.task('Due soon', ann, {
    due_date: '2026-01-01T00:00:00Z',
    description: 'about 100% of _everything_',
  })
  await gateway.task('Done', ann, { status: 'done' })
  await gateway.task('Old', ann, { archived_at: '2026-01-01T00:00:00Z' })
  expect((await actions.myTasks(caller)).map(({ title }) => title)).toEqual(['Due soon', 'Launch'])
  expect((await actions.searchTasks(caller, { text: '100% _everything_' })).map(({ id }) => id)).toEqual([due])
  expect(await actions.searchTasks(caller, { text: "'; drop table tasks; --" })).toEqual([])
  expect((await actions.searchTasks(caller, { text: '', status: 'done' })).map(({ title }) => title)).toEqual(['Done'])
})
