/** `npm run gateway:register` as a process: what it says and how it ends. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGatewayProcess } from '@hq/gateway-node/testing/process.ts'
import { startWorkspace, type Workspace } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { eventually } from './support/browser.ts'

const STEP = join(import.meta.dirname, '../gateway-node/register.ts')

let workspace: Workspace
beforeAll(async () => {
  workspace = await startWorkspace()
})
afterAll(() => workspace?.stop())

async function newHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'hq-register-'))
  onTestFinished(() => rm(home, { recursive: true, force: true, maxRetries: 5 }))
  return home
}

async function newToken(label: string): Promise<string> {
  const init = { method: 'POST', body: JSON.stringify({ label }) }
  const made = await workspace.request(workspace.owner, '/v1/gateways/tokens', init)
  return ((await made.json()) as { token: string }).token
}

function register(home: string, env: Record<string, string>) {
  const child = spawn(process.execPath, [STEP], {
    env: { PATH: process.env['PATH'], HOME: home, HQ_GATEWAY_HOME: home, HQ_GATEWAY_SLUG: 'cellar', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
  const ended = once(child, 'close').then(([code]) => code as number | null)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return { text: () => text, ended, kill: (signal: NodeJS.Signals) => child.kill(signal) }
}

test('registers once; another time it is what it was, and the second token is not spent', async () => {
  const home = await newHome()
  const [first, second] = [await newToken('Cellar'), await newToken('Spare')]
  const step = register(home, { HQ_SERVER_URL: workspace.url, HQ_REGISTRATION_TOKEN: first })
  expect([await step.ended, step.text()]).toEqual([
    0,
    `This machine is the gateway “cellar” of ${workspace.url}. It runs with: npm run gateway\n`,
  ])
  expect(await readdir(home)).toEqual(['credentials.json'])
  const again = register(home, { HQ_SERVER_URL: workspace.url, HQ_REGISTRATION_TOKEN: second })
  expect(await again.ended).toBe(0)
  expect(again.text()).toContain('and was before: no token was used')
  expect(
    await workspace.rows(`select label, consumed_at is null as unused from gateway_registration_tokens
      where label in ('Cellar', 'Spare') order by label`),
  ).toEqual([
    { label: 'Cellar', unused: false },
    { label: 'Spare', unused: true },
  ])

  const gateway = startGatewayProcess({ HQ_GATEWAY_HOME: home, PATH: process.env['PATH'] ?? '' })
  onTestFinished(async () => void (await gateway.end('SIGKILL')))
  await gateway.ready()
  const meanwhile = register(home, { HQ_SERVER_URL: workspace.url, HQ_REGISTRATION_TOKEN: second })
  expect(await meanwhile.ended).toBe(3)
  expect(meanwhile.text()).toContain(`process ${gateway.pid}`)
})

test.each([
  ['no token', {}, /run the command that “Add a gateway” in the app shows/],
  ['no address', { HQ_REGISTRATION_TOKEN: 'hqreg_guess' }, /Give the address of the HQ server/],
  ['a token that never was', { HQ_REGISTRATION_TOKEN: 'hqreg_guess', HQ_SERVER_URL: 'here' }, /is not valid/],
])('with %s it ends, and says what to do', async (_what, env, message) => {
  const url = 'HQ_SERVER_URL' in env ? { HQ_SERVER_URL: workspace.url } : {}
  const step = register(await newHome(), { ...env, ...url })
  expect(await step.ended).toBe(2)
  expect(step.text()).toMatch(message)
  expect(step.text()).not.toContain('hqreg_guess')
})

test('while the server is away it waits, says for what and why, and can be stopped; the token is still good', async () => {
  const home = await newHome()
  const token = await newToken('Patient')
  const nobody = createServer().listen(0, '127.0.0.1')
  await once(nobody, 'listening')
  const url = `http://127.0.0.1:${(nobody.address() as AddressInfo).port}`
  nobody.close()
  await once(nobody, 'close')
  const step = register(home, { HQ_SERVER_URL: url, HQ_REGISTRATION_TOKEN: token })
  await eventually(
    'it says that it waits',
    async () => step.text().includes(`trying again: ${url}: connect ECONNREFUSED`),
    60_000,
  )
  step.kill('SIGINT')
  expect(await step.ended).toBe(2)
  expect(step.text()).toContain('the token is still good')
  expect(await readdir(home)).toEqual(['registering.json'])
  const next = register(home, { HQ_SERVER_URL: workspace.url, HQ_REGISTRATION_TOKEN: token })
  expect(await next.ended).toBe(0)
})
