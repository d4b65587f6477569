/** Two copies of one replica, same id and same numbers: the server takes neither for the other's repeat. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '../database/ids.ts'
import { insert, type Person, startWorkspace, type Workspace, type Writer } from '../testing/workspace.ts'

let workspace: Workspace
let member: Person

beforeAll(async () => {
  workspace = await startWorkspace()
  member = await workspace.join('member')
})
afterAll(() => workspace?.stop())

const task = (title: string, id = newId()) => insert('tasks', { title }, id)
const titles = async (...ids: string[]) =>
  (await workspace.rows<{ title: string }>('select title from tasks where id = any($1) order by title', [ids])).map(
    ({ title }) => title,
  )
const copyOf = (original: Writer): Writer => {
  const copy = workspace.writer(original.caller, original.replicaId)
  copy.seq = original.seq
  return copy
}
const progress = async ({ replicaId }: Writer) =>
  (await workspace.rows('select last_seq, last_mutation_id from client_progress where id = $1', [replicaId]))[0]

test('the same number with another mutation is a copy’s: 409 identity_taken, and nothing of its batch is done', async () => {
  const original = workspace.writer(member)
  await original.apply([task('before the copy')])
  const copy = copyOf(original)
  const [mine, other, more] = [newId(), newId(), newId()]
  await original.apply([task('mine', mine)])
  const before = await progress(original)
  const { status, body } = await copy.send([
    copy.mutation({ patches: [task('other', other)] }),
    copy.mutation({ patches: [task('more', more)] }),
  ])
  expect([status, body.code, body.detail]).toEqual([409, 'identity_taken', { seq: 2 }])
  expect(body.message).toMatch(/copy of this replica.*number 2/)
  expect(body.expected_seq).toBeUndefined()
  expect(await titles(mine, other, more)).toEqual(['mine'])
  expect(await progress(original)).toEqual(before)
  // Under a name of its own it all goes through.
  const renewed = workspace.writer(member)
  await renewed.apply([task('other', other)], [task('more', more)])
  expect(await titles(mine, other, more)).toEqual(['mine', 'more', 'other'])
})

test('a batch that begins with honest repeats and goes on with a copy’s is refused whole', async () => {
  const original = workspace.writer(member)
  const shared = original.mutation({ patches: [task('shared')] })
  const copy = copyOf(original)
  await original.send([shared, original.mutation({ patches: [task('mine')] })])
  const [second, third] = [newId(), newId()]
  const { status, body } = await copy.send([
    shared,
    copy.mutation({ patches: [task('second', second)] }),
    copy.mutation({ patches: [task('third', third)] }),
  ])
  expect([status, body.code, body.detail]).toEqual([409, 'identity_taken', { seq: 2 }])
  expect(await titles(second, third)).toEqual([])
  expect((await original.send([shared])).status).toBe(200)
})

test('the copy that comes first is the one that is kept; both at once: exactly one', async () => {
  for (const batch of [1, 20]) {
    const one = workspace.writer(member)
    const two = copyOf(one)
    const [idsOfOne, idsOfTwo] = [one, two].map(() => Array.from({ length: batch }, () => newId())) as [
      string[],
      string[],
    ]
    const answers = await Promise.all([
      one.send(idsOfOne.map((id) => one.mutation({ patches: [task('one', id)] }))),
      two.send(idsOfTwo.map((id) => two.mutation({ patches: [task('two', id)] }))),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    const winner = answers[0]?.status === 200 ? 'one' : 'two'
    expect(await titles(...idsOfOne, ...idsOfTwo)).toEqual(Array<string>(batch).fill(winner))
  }
})

test('acknowledgement names the mutation, on the read path too', async () => {
  const writer = workspace.writer(member)
  const [first, second] = [writer.mutation({ patches: [task('a')] }), writer.mutation({ patches: [task('b')] })]
  await writer.send([first])
  expect(await progress(writer)).toEqual({ last_seq: '1', last_mutation_id: first['mutation_id'] })
  // A repeat acknowledges nothing new.
  await writer.send([first, second])
  await writer.send([first])
  expect(await progress(writer)).toEqual({ last_seq: '2', last_mutation_id: second['mutation_id'] })
  const shape = await workspace.request(
    member,
    `/v1/shape?table=client_progress&offset=-1&replica_id=${writer.replicaId}`,
  )
  const rows = ((await shape.json()) as { value?: Record<string, string> }[]).flatMap(({ value }) =>
    value ? [value] : [],
  )
  expect(rows).toMatchObject([{ last_seq: '2', last_mutation_id: second['mutation_id'] }])
})

test('letters of an id may be large or small', async () => {
  const writer = workspace.writer(member)
  const mutation = writer.mutation({ patches: [task('a')] })
  await writer.send([mutation])
  const loud = { ...mutation, mutation_id: String(mutation['mutation_id']).toUpperCase() }
  expect((await writer.send([loud])).status).toBe(200)
})

test('an entry whose id can’t be read is still known again, and is told from a readable one', async () => {
  const writer = workspace.writer(member)
  const copy = copyOf(writer)
  const nonsense = { seq: 1, mutation_id: 'what', patches: 'none' }
  const first = await writer.send([nonsense])
  expect(first.body.results).toMatchObject([{ seq: 1, outcome: 'rejected', code: 'malformed' }])
  expect(await writer.send([nonsense])).toEqual(first)
  const answer = await copy.send([copy.mutation({ patches: [task('readable')] })])
  expect([answer.status, answer.body.code]).toEqual([409, 'identity_taken'])
  // And the other way round.
  writer.seq = 1
  await writer.apply([task('fine')])
  const other = await copy.send([nonsense, { seq: 2, nonsense: true }])
  expect([other.status, other.body.code, other.body.detail]).toEqual([409, 'identity_taken', { seq: 2 }])
})

test('a refused mutation is remembered as well: its repeat has its result, a copy’s is told', async () => {
  const writer = workspace.writer(member)
  const copy = copyOf(writer)
  const bad = writer.mutation({ patches: [task('  ')] })
  const first = await writer.send([bad])
  expect(first.body.results).toMatchObject([{ outcome: 'rejected' }])
  expect(await writer.send([bad])).toEqual(first)
  const answer = await copy.send([copy.mutation({ patches: [task('  ')] })])
  expect(answer.body.code).toBe('identity_taken')
})

test('the newest 2,000 are remembered; what is older can be no honest repeat', async () => {
  const writer = workspace.writer(member)
  const kept: Record<string, unknown>[] = []
  for (let batch = 0; batch < 11; batch++) {
    const mutations = Array.from({ length: 200 }, () => ({ seq: ++writer.seq, mutation_id: randomUUID() }))
    kept.push(...mutations)
    await writer.send(mutations)
  }
  const [count] = await workspace.rows(
    'select count(*)::int as n, min(seq)::int as first from taken_mutations where replica_id = $1',
    [writer.replicaId],
  )
  expect(count).toEqual({ n: 2000, first: 201 })
  expect((await writer.send(kept.slice(200, 400))).status).toBe(200)
  expect((await writer.send(kept.slice(-200))).status).toBe(200)
  const old = await writer.send(kept.slice(190, 210))
  expect([old.status, old.body.code, old.body.detail]).toEqual([409, 'identity_taken', { seq: 191 }])
  // It goes on all the same.
  await writer.apply([task('next')])
})

test('a mutation that a copy sends again under its new identity has no second effect', async () => {
  const original = workspace.writer(member)
  const id = newId()
  const made = original.mutation({ patches: [task('once', id)] })
  const changed = original.mutation({
    patches: [{ table: 'tasks', id, op: 'update', set: { title: 'twice' }, base: { title: 'once' } }],
  })
  await original.send([made, changed])
  await workspace
    .writer(member)
    .apply([{ table: 'tasks', id, op: 'update', set: { title: 'later' }, base: { title: 'twice' } }])
  const renewed = workspace.writer(member)
  const again = [made, changed].map((mutation, index) => ({ ...mutation, seq: index + 1 }))
  const { status, body } = await renewed.send(again)
  expect([status, body.last_seq]).toEqual([200, 2])
  expect(await titles(id)).toEqual(['later'])
  expect(await workspace.rows('select from conflicts where row_id = $1', [id])).toHaveLength(0)
  // Somebody else's mutation ids mean nothing here.
  const stranger = workspace.writer(await workspace.join('member'))
  const other = newId()
  const claimed = stranger.mutation({ patches: [task('mine all the same', other)] })
  const sent = await stranger.send([{ ...claimed, mutation_id: made.mutation_id }])
  expect(sent.status).toBe(200)
  expect(await titles(other)).toEqual(['mine all the same'])
})
