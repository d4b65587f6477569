import { afterEach, beforeEach, expect, test } from 'vitest'
import { openTestGateway, type TestGateway, until } from '../dispatcher/testing.ts'
import { type Answer, createApprovals, type Question, TEXT_CHARS } from './approvals.ts'

let gateway: TestGateway
let agentId: string

beforeEach(async () => {
  gateway = await openTestGateway()
  agentId = await gateway.agent('Ada')
})
afterEach(() => gateway.close())

const question = (extra: Partial<Question> = {}): Question => ({
  agentId,
  runId: null,
  taskId: null,
  kind: 'tool',
  subject: 'web_fetch',
  title: 'Read https://example.org',
  detail: { url: 'https://example.org' },
  expiresAt: null,
  ...extra,
})

interface Stored {
  id: string
  status: string
  title: string
  detail: Record<string, unknown>
  applied_at: string | null
  error_message: string | null
}
const rows = () => gateway.replica.query<Stored>('select * from approvals order by created_at, id')

async function pending(): Promise<string> {
  await until('a question', async () => (await rows()).some(({ status }) => status === 'pending'))
  return (await rows()).find(({ status }) => status === 'pending')?.id ?? ''
}

/** As it comes from the server: a person has answered. */
const answer = (id: string, status: 'allowed' | 'denied', note: string | null = null) =>
  gateway.replica.write((tx) =>
    tx.query('update approvals set status = $2, note = $3, decided_at = now() where id = $1', [id, status, note]),
  )

test.each(['allowed', 'denied'] as const)(
  'waits for the answer “%s”, takes it and says so (A1, A4)',
  async (status) => {
    const approvals = createApprovals(gateway.context)
    await approvals.start()
    let got: Answer | undefined
    const asked = approvals.ask(question(), new AbortController().signal).then((given) => {
      got = given
    })
    const id = await pending()
    expect(got).toBeUndefined()
    await answer(id, status, 'as discussed')
    await asked
    expect(got).toEqual({ verdict: status, note: 'as discussed' })
    expect(await rows()).toMatchObject([{ status, applied_at: expect.any(String), error_message: null }])
    await approvals.stop()
  },
)

test('several questions at once; each gets its own answer', async () => {
  const approvals = createApprovals(gateway.context)
  await approvals.start()
  const signal = new AbortController().signal
  const asked = ['one', 'two'].map((title) => approvals.ask(question({ title }), signal))
  await until('both', async () => (await rows()).length === 2)
  for (const { id, title } of await rows()) await answer(id, title === 'one' ? 'allowed' : 'denied')
  expect((await Promise.all(asked)).map(({ verdict }) => verdict)).toEqual(['allowed', 'denied'])
  await approvals.stop()
})

test('nobody answers in time: expired; an answer afterwards does nothing, and says so (A3)', async () => {
  const approvals = createApprovals(gateway.context)
  await approvals.start()
  const expiresAt = new Date(gateway.context.now() + 30).toISOString()
  const { verdict } = await approvals.ask(question({ expiresAt }), new AbortController().signal)
  expect(verdict).toBe('expired')
  expect(await rows()).toMatchObject([{ status: 'expired', applied_at: null }])
  // The server had accepted a person's answer before ours came: the row folds back to that.
  const [row] = await rows()
  await gateway.replica.write((tx) =>
    tx.query(`update approvals set status = 'allowed', error_message = null where id = $1`, [row?.id ?? '']),
  )
  await until('a word', async () => (await rows())[0]?.error_message?.includes('nothing was done') ?? false)
  expect((await rows())[0]?.applied_at).toBeNull()
  await approvals.stop()
})

test('whoever asked is stopped: cancelled, before and while it waits (A2)', async () => {
  const approvals = createApprovals(gateway.context)
  await approvals.start()
  const abort = new AbortController()
  const asked = approvals.ask(question(), abort.signal)
  await pending()
  abort.abort()
  expect((await asked).verdict).toBe('cancelled')
  expect(await rows()).toMatchObject([{ status: 'cancelled', applied_at: null }])
  expect((await approvals.ask(question(), abort.signal)).verdict).toBe('cancelled')
  expect(await rows()).toHaveLength(1)
  const last = approvals.ask(question(), new AbortController().signal)
  await pending()
  await approvals.stop()
  expect((await last).verdict).toBe('cancelled')
  expect((await rows()).map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
})

test('what a killed process asked is withdrawn by the next one, once the workspace is loaded; what is new stays (A3)', async () => {
  const dead = createApprovals(gateway.context)
  void dead.ask(question({ title: 'left behind' }), new AbortController().signal)
  const left = await pending()
  const loaded = gateway.notLoadedYet()
  const next = createApprovals(gateway.newProcess())
  await next.start()
  const asked = next.ask(question({ title: 'new' }), new AbortController().signal)
  await until('both', async () => (await rows()).length === 2)
  expect((await rows()).map(({ status }) => status)).toEqual(['pending', 'pending'])
  loaded()
  await until('withdrawn', async () => (await rows()).some(({ id, status }) => id === left && status === 'cancelled'))
  const id = await pending()
  expect((await rows()).find((row) => row.id === id)?.title).toBe('new')
  await answer(id, 'allowed')
  expect((await asked).verdict).toBe('allowed')
  await next.stop()
})

test('a question that the server refuses ends as cancelled', async () => {
  const approvals = createApprovals(gateway.context)
  const asked = approvals.ask(question(), new AbortController().signal)
  const id = await pending()
  await gateway.replica.write((tx) => tx.query('update approvals set deleted_at = now() where id = $1', [id]))
  expect((await asked).verdict).toBe('cancelled')
})

test('no secret is in title or detail; nothing else is left out without a word (A5)', async () => {
  const log = Object.assign(() => undefined, {
    maskText: (text: string) => text.replaceAll('hunter2-known', '[hidden]'),
  })
  const approvals = createApprovals({ ...gateway.context, log })
  const abort = new AbortController()
  const many = Array.from({ length: 300 }, (_, index) => `argument ${index}`)
  const asked = approvals.ask(
    question({
      title: 'Run\n echo hunter2-known',
      detail: {
        api_key: 'abc-plain',
        deep: { a: { b: { c: { d: { e: { password: 'abc-plain', f: 'seen' } } } } } },
        many,
        text: 'hunter2-known!',
        long: 'x'.repeat(TEXT_CHARS + 5),
      },
    }),
    abort.signal,
  )
  await pending()
  const [row] = await rows()
  expect(row?.title).toBe('Run echo [hidden]')
  expect(JSON.stringify(row)).not.toMatch(/abc-plain|hunter2/)
  expect(row?.detail).toMatchObject({
    api_key: '[hidden]',
    deep: { a: { b: { c: { d: { e: { f: 'seen' } } } } } },
    many,
    text: '[hidden]!',
  })
  expect(row?.detail['long']).toContain('5 more characters')
  abort.abort()
  await asked
})
