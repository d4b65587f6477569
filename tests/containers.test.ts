/**
 * A gateway's containers on a real Docker engine: only those with its label are seen, read, started, stopped; and without Docker it is said what is missing.
 * With `npm run test:docker`.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createRunner } from '@hq/gateway-node/runner/runner.ts'
import { createTestGateway, noModels, type TestGateway } from '@hq/gateway-node/testing/context.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from './support/browser.ts'
import { startDocker } from './support/docker.ts'

const exec = promisify(execFile)
const BUSYBOX = ['/bin/busybox', '/usr/bin/busybox'].find((path) => existsSync(path))
const started = BUSYBOX
  ? await startDocker({ bare: true })
  : { reason: 'not installed: busybox (Debian: busybox-static)' }
const reason = 'reason' in started ? started.reason : undefined
if (reason) {
  const message = `A gateway's containers are not tested: ${reason}.`
  if (process.env['HQ_REQUIRE_DOCKER']) throw new Error(message)
  console.warn(message)
}

async function gatewayWith(env: Record<string, string>): Promise<TestGateway> {
  const gateway = await createTestGateway()
  const runner = createRunner({ ...gateway.context, env }, noModels, { sweepMs: 3_600_000 })
  onTestFinished(() => runner.stop())
  await runner.start()
  return gateway
}
async function command(gateway: TestGateway, action: string, payload: object = {}): Promise<Record<string, unknown>> {
  return gateway.command(await gateway.addCommand(action, null, { payload: JSON.stringify(payload) }))
}
const outputOf = async (gateway: TestGateway, { id }: Record<string, unknown>): Promise<string> =>
  (
    await gateway.replica.query<{ text: string }>(
      'select text from command_output where command_id = $1 order by seq',
      [String(id)],
    )
  )
    .map(({ text }) => text)
    .join('')

describe.skipIf(reason)('with Docker', () => {
  const docker = started as Exclude<typeof started, { reason: string }>
  beforeAll(async () => {
    const work = await mkdtemp(join(tmpdir(), 'hq-busybox-'))
    try {
      await mkdir(join(work, 'root/bin'), { recursive: true })
      await cp(String(BUSYBOX), join(work, 'root/bin/busybox'))
      for (const name of ['sh', 'echo', 'sleep', 'cat', 'seq']) await symlink('busybox', join(work, 'root/bin', name))
      await exec('tar', ['-C', join(work, 'root'), '-cf', join(work, 'root.tar'), '.'])
      await docker.run(['import', join(work, 'root.tar'), 'hq-busybox'])
    } finally {
      await rm(work, { recursive: true, force: true })
    }
  })
  afterAll(() => docker.stop())

  const run = (name: string, label: string | undefined, script: string, more: string[] = []): Promise<string> =>
    docker.run([
      ...['run', '--detach', '--network', 'none', '--init=false', '--name', name, ...more],
      ...(label ? ['--label', `hq.managed=${label}`] : []),
      ...['hq-busybox', '/bin/sh', '-c', script],
    ])
  const stateOf = (name: string): Promise<string> => docker.run(['inspect', '--format', '{{.State.Status}}', name])

  test('only those with this gateway’s label are there: listed with use and limits, read, stopped, started, restarted', async () => {
    const gateway = await gatewayWith({ DOCKER_HOST: docker.host })
    const { gatewayId } = gateway.context
    const mine = await run(
      'mine',
      gatewayId,
      'trap "exit 0" TERM; echo out; echo err >&2; seq 1 5000; while :; do sleep 1; done',
      ['--memory', '64m'],
    )
    const others = await run('others', 'another-gateway', 'while :; do sleep 1; done')
    const nobodys = await run('nobodys', undefined, 'while :; do sleep 1; done')

    const listed = await command(gateway, 'container_list')
    expect(listed).toMatchObject({ status: 'done', error_message: null })
    const { containers } = listed['result'] as { containers: Record<string, unknown>[] }
    expect(containers).toHaveLength(1)
    expect(containers[0]).toMatchObject({
      id: mine,
      name: 'mine',
      image: 'hq-busybox',
      state: 'running',
      memory_limit_mb: 64,
    })

    await eventually('it has written', async () => (await docker.run(['logs', '--tail', '1', 'mine'])) === '5000')
    const logs = await command(gateway, 'container_logs', { id: mine, lines: 2_000 })
    const text = await outputOf(gateway, logs)
    expect(text).toContain(' 5000\n')
    // Bounded: the first lines are not among the last two thousand.
    expect(text).not.toContain(' out\n')
    expect(Buffer.byteLength(text)).toBeLessThan(256 * 1024)

    for (const id of [others, nobodys, 'others', '../containers/others', 'f'.repeat(64)]) {
      for (const [action, payload] of [
        ['container_logs', { id }],
        ['container_action', { id, action: 'stop' }],
      ] as const) {
        const refused = await command(gateway, action, payload)
        expect(refused).toMatchObject({
          status: 'failed',
          error_message: expect.stringContaining('no such container of HQ'),
        })
      }
    }
    expect([await stateOf('others'), await stateOf('nobodys')]).toEqual(['running', 'running'])

    const act = async (action: string): Promise<unknown> => {
      const done = await command(gateway, 'container_action', { id: mine, action })
      expect(done).toMatchObject({ status: 'done', error_message: null })
      return (done['result'] as { container: { state: string } }).container.state
    }
    expect(await act('stop')).toBe('exited')
    expect(await act('stop')).toBe('exited')
    expect(await stateOf('mine')).toBe('exited')
    expect(await act('start')).toBe('running')
    expect(await act('restart')).toBe('running')
    expect(await stateOf('mine')).toBe('running')
  })
})

test('without Docker it is said what is missing, and everything else works', async () => {
  const gateway = await gatewayWith({ DOCKER_HOST: 'unix:///nowhere/docker.sock' })
  expect(await command(gateway, 'container_list')).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('Docker does not answer at /nowhere/docker.sock'),
  })
  expect(await command(gateway, 'list_models')).toMatchObject({ status: 'done' })
  const odd = await gatewayWith({ DOCKER_HOST: 'ssh://me@there' })
  expect(await command(odd, 'container_list')).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('no address that HQ understands'),
  })
})
