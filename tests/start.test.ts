/**
 * `npm start` as somebody who keeps their work in it: what was made is there after each way of stopping, stopping goes from the outside in, and what is
 * wrong with the machine is said. (Second instances, taken ports, killed children: sync-server/supervisor.pg.test.ts.)
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { newId } from '@hq/sync-server/database/ids.ts'
import { freePort } from '@hq/sync-server/shapes/testing/postgres.ts'
import { type Caller, createWriter, insert, type Person } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, OWNER, within } from './support/browser.ts'

const root = dirname(import.meta.dirname)
let folder: string
const children: ChildProcess[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hq-start-'))
  // As root, Postgres runs as another user and has to come through.
  await chmod(folder, 0o755)
})
afterAll(async () => {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    await gone
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

interface Hq {
  readonly child: ChildProcess
  readonly text: () => string
  /** Resolves with the exit code when all of it has ended, children and their output too. */
  readonly ended: Promise<unknown>
}

function start(env: Record<string, string>, options: { uid?: number; gid?: number } = {}): Hq {
  const child = spawn(process.execPath, [join(root, 'scripts/start.mjs')], {
    cwd: root,
    env: { ...process.env, HQ_SKIP_BUILD: '1', DATABASE_URL: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
  })
  children.push(child)
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (text += String(chunk)))
  return { child, text: () => text, ended: once(child, 'close').then(([code]) => code as unknown) }
}

const running = (hq: Hq, url: string): Promise<unknown> =>
  eventually(
    'HQ runs',
    async () => {
      if (hq.child.exitCode !== null) throw new Error(`it ended: ${hq.text()}`)
      return hq.text().includes(`HQ runs at ${url}`)
    },
    120_000,
  )

/** Processes that were started for this folder and still run. */
async function processesOf(home: string): Promise<string[]> {
  const found: string[] = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const read = (name: string): Promise<string> => readFile(`/proc/${pid}/${name}`, 'latin1').catch(() => '')
    const command = await read('cmdline')
    if (`${command} ${await read('environ')}`.includes(home)) found.push(`${pid} ${command.replaceAll('\0', ' ')}`)
  }
  return found
}

test('what was made is kept over Ctrl-C, a killed supervisor and a killed start; each stops all, in order', async () => {
  const home = join(folder, 'kept')
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const env = { HQ_HOME: home, HQ_PORT: String(port) }
  const request = (caller: Pick<Caller, 'headers'> | undefined, path: string, init: RequestInit = {}) =>
    fetch(url + path, {
      ...init,
      headers: { ...(init.body ? { 'content-type': 'application/json' } : {}), ...caller?.headers },
    })

  const first = start(env)
  await running(first, url)
  expect(await (await request(undefined, '/v1/health')).json()).toMatchObject({ status: 'active', service: 'hq' })
  const { workspace: workspace_name, ...who } = OWNER
  const made = await request(undefined, '/v1/setup', {
    method: 'POST',
    body: JSON.stringify({ ...who, workspace_name, timezone: 'UTC' }),
  })
  expect(made.status).toBe(201)
  const headers = {
    cookie: made.headers
      .getSetCookie()
      .map((line) => line.split(';')[0])
      .join('; '),
  }
  const { principal } = (await (await request({ headers }, '/v1/session')).json()) as Pick<Person, 'principal'>
  const owner = { headers, principal }
  const tasks: string[] = []
  const add = async (title: string): Promise<void> => {
    const row = {
      tenant_id: principal.tenant_id,
      title,
      created_by_type: 'human',
      created_by_id: principal.person_id,
    }
    await createWriter(owner, newId(), request).apply([insert('tasks', row)])
    tasks.push(title)
  }
  const titles = async (): Promise<unknown[]> => {
    const found: unknown[] = []
    for (let at = 'offset=-1'; ; ) {
      const response = await request(owner, `/v1/shape?table=tasks&replica=full&replica_id=${newId()}&${at}`)
      expect(response.status).toBe(200)
      for (const { value } of (await response.json()) as { value?: { title: string } }[])
        if (value) found.push(value.title)
      if (response.headers.has('electric-up-to-date')) return found.sort()
      at = `offset=${response.headers.get('electric-offset')}&handle=${response.headers.get('electric-handle')}`
    }
  }
  /** The gateway registers while people can already work. */
  const gatewayOf = (): Promise<unknown> =>
    eventually(
      'the gateway is registered',
      async () => JSON.parse(await readFile(join(home, 'gateway/credentials.json'), 'utf8')).gateway_id as unknown,
      60_000,
    )
  await add('before Ctrl-C')
  const gateway = await gatewayOf()

  first.child.kill('SIGINT')
  expect(await within(60_000, 'all has stopped', first.ended)).toBe(0)
  expect(first.text()).toContain('Nothing is lost')
  expect(await processesOf(home)).toEqual([])
  const endedAt = async (name: string): Promise<string> => {
    const lines = (await readFile(join(home, `logs/${name}.log`), 'utf8'))
      .split('\n')
      .filter((line) => line.includes('"ended"'))
    return (JSON.parse(lines.at(-1) ?? '{}') as { at: string }).at
  }
  expect((await endedAt('gateway')) <= (await endedAt('server'))).toBe(true)

  // The supervisor is killed: its children notice by themselves.
  const second = start(env)
  await running(second, url)
  expect(await titles()).toEqual(tasks)
  expect(await gatewayOf()).toBe(gateway)
  await add('before the supervisor was killed')
  const holder = JSON.parse(await readFile(join(home, 'lock'), 'utf8')) as { pid: number }
  process.kill(holder.pid, 'SIGKILL')
  await second.ended

  // At once again, on the same port, whatever of the former one is still ending.
  const third = start(env)
  await eventually(
    'it runs, or says who still has the port',
    async () => third.text().includes(`HQ runs at ${url}`) || third.child.exitCode !== null,
    120_000,
  )
  let now = third
  if (third.child.exitCode !== null) {
    expect(third.text()).toMatch(/already|still/)
    await eventually(
      'the orphans have ended',
      async () => (await processesOf(home)).every((line) => line.includes('postgres')),
      60_000,
    )
    now = start(env)
    await running(now, url)
  }
  expect(await titles()).toEqual([...tasks].sort())
  expect(await gatewayOf()).toBe(gateway)
  await add('before start was killed')

  // Only what npm started is killed; the supervisor hears of it and stops in order.
  now.child.kill('SIGKILL')
  await eventually('all has stopped', async () => (await processesOf(home)).length === 0, 60_000)
  const last = start(env)
  await running(last, url)
  expect(await titles()).toEqual([...tasks].sort())
  last.child.kill('SIGTERM')
  expect(await within(60_000, 'all has stopped', last.ended)).toBe(0)
  expect(await processesOf(home)).toEqual([])

  for (const name of await readdir(join(home, 'logs'))) {
    const log = await readFile(join(home, 'logs', name), 'utf8')
    for (const secret of [OWNER.password, headers.cookie.split('=')[1] ?? '-', 'hqreg_'])
      expect(log.includes(secret), `${name} holds ${secret.slice(0, 4)}…`).toBe(false)
  }
})

test('without git it says what is missing, and people can work', async () => {
  const bin = join(folder, 'bin')
  await mkdir(bin)
  for (const name of ['id', 'useradd', 'ps', 'sh', 'env']) await symlink(`/usr/bin/${name}`, join(bin, name))
  const [home, port] = [join(folder, 'no-git'), await freePort()]
  const hq = start({ HQ_HOME: home, HQ_PORT: String(port), PATH: bin })
  await running(hq, `http://127.0.0.1:${port}`)
  expect(hq.text()).toMatch(/git was not found.*install git/)
  expect((await fetch(`http://127.0.0.1:${port}/v1/health`)).status).toBe(200)
  hq.child.kill('SIGINT')
  expect(await within(60_000, 'all has stopped', hq.ended)).toBe(0)
})

test('a home that this user may not write is explained, and nothing was started', async () => {
  const closed = join(folder, 'closed')
  await mkdir(closed, { mode: 0o755 })
  await writeFile(join(closed, 'of-somebody-else'), '')
  await chmod(closed, 0o555)
  // Root may write everywhere, so then somebody else tries.
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const hq = start({ HQ_HOME: join(closed, 'home'), HQ_PORT: String(await freePort()) }, nobody)
  expect(await within(60_000, 'it ends', hq.ended)).toBe(1)
  expect(hq.text()).toContain(`HQ keeps its data in ${join(closed, 'home')}, and can't: this user may not write there`)
  expect(hq.text()).toContain('HQ_HOME=/path/to/folder npm start')
  expect(hq.text()).not.toMatch(/\n\s+at /)
})
