import { expect, onTestFinished, test, vi } from 'vitest'
import { type Answer, approvalsOf } from '../../approvals/approvals.ts'
import { createTestGateway, newId, noModels } from '../../testing/context.ts'
import { createRunner } from '../runner.ts'

async function bench() {
  const gateway = await createTestGateway()
  const { context } = gateway
  const person = newId()
  const runner = createRunner(context, noModels, { sweepMs: 3_600_000 })
  onTestFinished(() => runner.stop())
  await runner.start()
  const approvals = approvalsOf(context)
  onTestFinished(() => approvals.stop())
  /** As `runtime/openclaw/pairing.ts` asks. */
  const ask = async (request: string, kind: 'pairing' | 'exec' = 'pairing') => {
    const answer: Promise<Answer> = approvals.ask(
      {
        agentId: null,
        runId: null,
        taskId: null,
        kind,
        subject: 'Phone',
        title: 'Phone wants to pair with OpenClaw on this gateway',
        detail: { request },
        expiresAt: null,
      },
      context.signal,
    )
    const id = await vi.waitFor(async () => {
      const [row] = await gateway.replica.query<{ id: string }>(
        `select id from approvals where detail ->> 'request' = $1 and status = 'pending'`,
        [request],
      )
      if (!row) throw new Error('not asked yet')
      return row.id
    })
    return { id, answer }
  }
  const send = async (payload: object, by: string | null = person) =>
    gateway.command(
      await gateway.addCommand('approve_pairing', null, { payload: JSON.stringify(payload), requested_by: by }),
    )
  return { gateway, person, ask, send }
}

test.each([
  ['allow', 'allowed'],
  ['deny', 'denied'],
] as const)(
  '%s: whoever asked has the answer, in the name of the person; a second one is told',
  async (decision, verdict) => {
    const { gateway, person, ask, send } = await bench()
    const { id, answer } = await ask('req-1')
    expect(await send({ approval_id: id, decision })).toMatchObject({
      status: 'done',
      result: { approval_id: id, decision },
    })
    expect(await answer).toMatchObject({ verdict })
    expect(await gateway.row('approvals', id)).toMatchObject({
      status: verdict,
      decided_by: person,
      decided_at: expect.anything(),
      applied_at: expect.anything(),
    })
    expect(await send({ approval_id: id, decision: 'allow' })).toMatchObject({
      status: 'failed',
      error_message: expect.stringContaining('answered already'),
    })
  },
)

test('by OpenClaw’s own name of the request; unknown ones, other kinds, nobody’s commands and wrong payloads are refused', async () => {
  const { ask, send } = await bench()
  const { answer } = await ask('req-2')
  expect(await send({ request_id: 'req-2', decision: 'allow' }, null)).toMatchObject({ status: 'failed' })
  expect(await send({ request_id: 'req-3', decision: 'allow' })).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('No device asks'),
  })
  const exec = await ask('req-4', 'exec')
  expect(await send({ approval_id: exec.id, decision: 'allow' })).toMatchObject({ status: 'failed' })
  for (const payload of [
    { decision: 'allow' },
    { request_id: 'req-2' },
    { approval_id: newId(), request_id: 'req-2', decision: 'allow' },
  ])
    expect(await send(payload)).toMatchObject({ status: 'failed' })
  expect(await send({ request_id: 'req-2', decision: 'allow' })).toMatchObject({ status: 'done' })
  expect(await answer).toMatchObject({ verdict: 'allowed' })
})
