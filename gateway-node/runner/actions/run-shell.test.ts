import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createTestGateway, noModels, type TestGateway } from '../../testing/context.ts'
import { createRunner } from '../runner.ts'

async function gatewayWith(env: Record<string, string>): Promise<TestGateway & { stop(): Promise<void> }> {
  const gateway = await createTestGateway()
  const runner = createRunner({ ...gateway.context, env }, noModels, { sweepMs: 3_600_000 })
  onTestFinished(() => runner.stop())
  await runner.start()
  return { ...gateway, stop: () => runner.stop() }
}
const ON = {
  HQ_RUN_SHELL: 'on',
  PATH: process.env['PATH'] ?? '',
  ANTHROPIC_API_KEY: 'sk-secret',
  DOCKER_HOST: 'unix:///x',
}

const send = (gateway: TestGateway, command: string, more: object = {}): Promise<string> =>
  gateway.addCommand('run_shell', null, { payload: JSON.stringify({ command, ...more }) })
const outputOf = async (gateway: TestGateway, id: string): Promise<string> =>
  (
    await gateway.replica.query<{ text: string }>(
      'select text from command_output where command_id = $1 order by seq',
      [id],
    )
  )
    .map(({ text }) => text)
    .join('')
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false // the answer to what was asked
  }
}
async function when(what: string, is: () => Promise<boolean> | boolean): Promise<void> {
  const end = Date.now() + 20_000
  while (!(await is())) {
    if (Date.now() > end) throw new Error(`never: ${what}`)
    await new Promise((later) => setTimeout(later, 20))
  }
}

it('is refused where the owner has not switched it on (S1)', async () => {
  const gateway = await gatewayWith({ HQ_RUN_SHELL: 'yes' })
  const row = await gateway.command(await send(gateway, `touch ${join(gateway.context.home, 'ran')}`))
  expect(row).toMatchObject({ status: 'failed', error_message: expect.stringContaining('HQ_RUN_SHELL=on') })
  expect(existsSync(join(gateway.context.home, 'ran'))).toBe(false)
})

it('runs with nothing inherited, and tells output and exit code (S2, S5)', async () => {
  const gateway = await gatewayWith(ON)
  const good = await gateway.command(await send(gateway, 'env; echo oops >&2; pwd'))
  expect(good).toMatchObject({ status: 'done', result: { exit_code: 0 } })
  const said = await outputOf(gateway, String(good['id']))
  expect(said).toContain('oops')
  expect(said).not.toContain('sk-secret')
  expect(said).not.toContain('DOCKER_HOST')
  expect(said).not.toContain('ANTHROPIC')
  const bad = await gateway.command(await send(gateway, 'exit 7'))
  expect(bad).toMatchObject({ status: 'failed', error_message: 'It ended with exit code 7.' })
  const slow = await gateway.command(await send(gateway, 'sleep 60', { timeout_s: 1 }))
  expect(slow).toMatchObject({ status: 'failed', error_message: expect.stringContaining('1 seconds') })
  const endless = await gateway.command(await send(gateway, 'yes | head -c 2000000'))
  expect(endless['status']).toBe('done')
  expect(Buffer.byteLength(await outputOf(gateway, String(endless['id'])))).toBeLessThan(300 * 1024)
})

it('tells while it runs, and a cancel ends everything that it started (S3, S5)', async () => {
  const gateway = await gatewayWith(ON)
  const id = await send(gateway, 'sleep 300 & echo $! > child; echo begun; wait')
  await when('its output comes while it runs', async () => (await outputOf(gateway, id)).includes('begun'))
  const child = Number(await readFile(join(gateway.context.home, 'shell/child'), 'utf8'))
  expect(isAlive(child)).toBe(true)
  await gateway.replica.write((tx) =>
    tx.query('update agent_commands set cancel_requested_at = now() where id = $1', [id]),
  )
  expect(await gateway.command(id)).toMatchObject({ status: 'cancelled' })
  await when('its child is gone', () => !isAlive(child))
})

it('is not run again after the gateway was stopped in its middle (S4)', async () => {
  const gateway = await gatewayWith(ON)
  const id = await send(gateway, 'echo x >> ran; echo begun; sleep 300')
  await when('it runs', async () => (await outputOf(gateway, id)).includes('begun'))
  await gateway.stop()
  const again = createRunner({ ...(await gateway.restarted()), env: ON }, noModels, { sweepMs: 3_600_000 })
  onTestFinished(() => again.stop())
  await again.start()
  expect(await gateway.command(id)).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('not run again by itself'),
  })
  expect(await readFile(join(gateway.context.home, 'shell/ran'), 'utf8')).toBe('x\n')
})
