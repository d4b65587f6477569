/** `npm start` with real processes: scripts/start.mjs and supervisor.ts, Postgres, server, gateway. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { freePort } from './shapes/testing/postgres.ts'

const root = dirname(import.meta.dirname)
const started: ChildProcess[] = []
const folders: string[] = []

afterEach(async () => {
  for (const child of started.splice(0))
    if (child.exitCode === null && child.signalCode === null) await end(child, 'SIGTERM')
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

interface Started {
  readonly child: ChildProcess
  readonly output: () => string
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>
}

function hq(env: Record<string, string>): Started {
  const child = spawn(process.execPath, [join(root, 'scripts/start.mjs')], {
    cwd: root,
    env: { ...process.env, HQ_SKIP_BUILD: '1', DATABASE_URL: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  started.push(child)
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (text += String(chunk)))
  const ended = new Promise<number | null>((done) => child.once('close', (code) => done(code)))
  return { child, output: () => text, ended }
}

async function until<T>(what: string, check: () => Promise<T | undefined> | T | undefined, ms = 120_000): Promise<T> {
  const deadline = Date.now() + ms
  while (Date.now() < deadline) {
    const value = await check()
    if (value !== undefined) return value
    await sleep(50)
  }
  throw new Error(`waited in vain for: ${what}`)
}

const running = ({ output }: Started) =>
  until(`HQ to run\n${output()}`, () => (output().includes('HQ runs at') ? true : undefined))

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const ended = new Promise((done) => child.once('close', done))
  child.kill(signal)
  await ended
}

async function home(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hq-test-home-'))
  folders.push(folder)
  // Postgres runs as another user when the tests run as root.
  const inside = join(folder, 'home')
  await mkdir(inside, { mode: 0o755 })
  await import('node:fs/promises').then(({ chmod }) => chmod(folder, 0o755))
  return inside
}

const health = async (port: number): Promise<{ pid: number; status: string } | undefined> => {
  try {
    return (await (await fetch(`http://127.0.0.1:${port}/v1/health`)).json()) as { pid: number; status: string }
  } catch {
    return undefined // not up
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false // no such process
  }
}

/** Processes whose command line or environment names the folder. */
async function processesOf(folder: string): Promise<number[]> {
  const { readdir } = await import('node:fs/promises')
  const found: number[] = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const text = `${await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')} ${await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')}`
    if (text.includes(folder)) found.push(Number(pid))
  }
  return found
}

test('starts, serves, refuses a second instance, and stops everything on Ctrl-C', async () => {
  const HQ_HOME = await home()
  const port = await freePort()
  const first = hq({ HQ_HOME, HQ_PORT: String(port) })
  await running(first)
  expect(await health(port)).toMatchObject({ status: 'active', service: 'hq' })
  const session = (await (await fetch(`http://127.0.0.1:${port}/v1/session`)).json()) as { setup_required: boolean }
  expect(session.setup_required).toBe(true)

  const second = hq({ HQ_HOME, HQ_PORT: String(await freePort()) })
  expect(await second.ended).toBe(1)
  expect(second.output()).toContain(`process ${(await health(port))?.pid}`)
  expect(second.output()).toContain(`http://127.0.0.1:${port}`)

  const third = hq({ HQ_HOME: await home(), HQ_PORT: String(port) })
  expect(await third.ended).toBe(1)
  expect(third.output()).toContain('Another HQ already answers')

  first.child.kill('SIGINT')
  expect(await first.ended).toBe(0)
  expect(first.output()).toContain('HQ has stopped')
  expect(await processesOf(HQ_HOME)).toEqual([])
})

test('a taken port is explained, before anything was started', async () => {
  const holder = createServer().listen(0, '127.0.0.1')
  try {
    const address = await until('a port', () => holder.address() ?? undefined)
    const port = typeof address === 'object' ? address.port : 0
    const HQ_HOME = await home()
    const blocked = hq({ HQ_HOME, HQ_PORT: String(port) })
    expect(await blocked.ended).toBe(1)
    expect(blocked.output()).toContain(`Port ${port} is already in use`)
    expect(blocked.output()).toContain(`process ${process.pid}`)
    expect(blocked.output()).toMatch(/HQ_PORT=\d+ npm start/)
    await expect(readFile(join(HQ_HOME, 'lock'))).rejects.toThrow()
  } finally {
    holder.close()
  }
})

test('a home that is a file, and a port that is none, are explained', async () => {
  const file = join(await home(), 'file')
  await writeFile(file, '')
  const inFile = hq({ HQ_HOME: join(file, 'hq'), HQ_PORT: String(await freePort()) })
  expect(await inFile.ended).toBe(1)
  expect(inFile.output()).toContain('a file is in the way')
  const noPort = hq({ HQ_HOME: await home(), HQ_PORT: 'ninety' })
  expect(await noPort.ended).toBe(1)
  expect(noPort.output()).toContain('HQ_PORT=ninety is not a port')
})

test('a killed child comes back; a killed supervisor leaves nothing running and nothing locked', async () => {
  const HQ_HOME = await home()
  const port = await freePort()
  const first = hq({ HQ_HOME, HQ_PORT: String(port) })
  await running(first)
  const pids = async (what: string): Promise<number[]> => {
    const all = await processesOf(HQ_HOME)
    const named = await Promise.all(
      all.map(async (pid) => [pid, await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')] as const),
    )
    return named.filter(([, command]) => command.includes(what)).map(([pid]) => pid)
  }

  const [server] = await pids('sync-server/main.ts')
  process.kill(server as number, 'SIGKILL')
  await until('the server to come back', async () =>
    (await pids('sync-server/main.ts'))[0] !== server && (await health(port)) ? true : undefined,
  )

  const postmaster = Number((await readFile(join(HQ_HOME, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0])
  process.kill(postmaster, 'SIGKILL')
  await until('Postgres to come back', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/session`).catch(() => undefined)
    return answer?.ok && !isAlive(postmaster) ? true : undefined
  })

  const [supervisor] = await pids('supervisor.ts')
  process.kill(supervisor as number, 'SIGKILL')
  await first.ended
  await until('server and gateway to notice', async () => ((await pids('main.ts')).length === 0 ? true : undefined))

  const again = hq({ HQ_HOME, HQ_PORT: String(port) })
  await running(again)
  again.child.kill('SIGTERM')
  expect(await again.ended).toBe(0)
  expect(await processesOf(HQ_HOME)).toEqual([])
})
