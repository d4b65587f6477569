/** The watch over the OpenClaw process, with small processes in its place (supervisor.ts, V1–V5). */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createSupervisor, type SupervisorOptions } from './supervisor.ts'

/** Behaves as the words of `behave` (a file) say at each start. */
const PROCESS = `
import { createServer } from 'node:http'
import { appendFileSync, readFileSync } from 'node:fs'
const [, , ...words] = process.argv
appendFileSync('starts', words.join(' ') + '\\n')
const how = readFileSync('behave', 'utf8').trim()
if (words[0] === 'doctor') process.exit(0)
if (how === 'dies') { console.error('it hurts'); process.exit(3) }
if (how === 'config') process.exit(78)
if (how === 'stubborn') process.on('SIGTERM', () => undefined)
if (how !== 'silent') createServer((_, response) => response.end(JSON.stringify({ ready: true }))).listen(Number(process.env.PORT), '127.0.0.1')
setInterval(() => undefined, 1000)
`

async function begin(how: string, more: Partial<SupervisorOptions> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'hq-supervisor-'))
  const script = join(folder, 'process.mjs')
  await writeFile(script, PROCESS)
  const behave = (next: string): Promise<void> => writeFile(join(folder, 'behave'), next)
  await behave(how)
  const problems: (string | null)[] = []
  const exits: string[] = []
  const supervisor = createSupervisor({
    folder,
    log: () => undefined,
    now: Date.now,
    prepare: async () => {
      const port = await freePort()
      return { script, port, env: { PORT: String(port), PATH: process.env['PATH'] ?? '' } }
    },
    onProblem: (message) => void problems.push(message),
    onExit: (words) => void exits.push(words),
    graceMs: 300,
    ...more,
  })
  onTestFinished(async () => {
    await supervisor.stop()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  const starts = async (): Promise<string[]> =>
    (await readFile(join(folder, 'starts'), 'utf8').catch(() => '')).split('\n').filter(Boolean)
  return {
    supervisor,
    folder,
    problems,
    exits,
    behave,
    starts,
    ready: () => supervisor.ready(AbortSignal.timeout(30_000)),
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function until(what: string, is: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 30_000
  while (!(await is())) {
    if (Date.now() > end) throw new Error(`it never came: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('started once for all who want it, ended for good (V2, V5)', async () => {
  const { supervisor, starts, ready } = await begin('well')
  const [one, two] = await Promise.all([ready(), ready()])
  expect(one).toBe(two)
  expect(supervisor.state()).toBe('ready')
  const pid = supervisor.pid() ?? 0
  await supervisor.stop()
  expect(isAlive(pid)).toBe(false)
  expect(supervisor.state()).toBe('stopped')
  expect(await starts()).toEqual(['gateway run'])
})

test('an exit that nobody asked for: told, and started anew (V3)', async () => {
  const { supervisor, exits, problems, ready } = await begin('well')
  await ready()
  const first = supervisor.pid() ?? 0
  process.kill(first, 'SIGKILL')
  await until('the exit', () => exits.length > 0)
  await until('another process is ready', () => supervisor.state() === 'ready' && supervisor.pid() !== first)
  expect(problems.some((message) => message?.includes('ended by itself (SIGKILL)'))).toBe(true)
  expect(problems.at(-1)).toBe(null)
})

test('one that dies at its start is a sentence with its last words, and is tried again', async () => {
  const { supervisor, behave, problems, ready } = await begin('dies')
  await expect(ready()).rejects.toThrow(/ended while it was starting \(exit 3\).*it hurts/)
  await behave('well')
  await until('it is well', () => supervisor.state() === 'ready')
  expect(problems.at(-1)).toBe(null)
})

test('a configuration it does not take: its own repair once (V4)', async () => {
  const { starts, problems, ready } = await begin('config')
  await expect(ready()).rejects.toThrow('exit 78')
  await until('two starts', async () => (await starts()).filter((line) => line.startsWith('gateway')).length >= 2)
  await until('said', () => problems.some((message) => message?.includes('does not take its configuration')))
  expect((await starts()).slice(0, 3)).toEqual(['gateway run', 'doctor --fix --yes --non-interactive', 'gateway run'])
})

test('one that is never ready is killed', async () => {
  const { supervisor, ready } = await begin('silent', { readyMs: 400 })
  await expect(ready()).rejects.toThrow('did not become ready')
  await until('it is gone', () => supervisor.state() !== 'starting')
})

test('one that does not listen to SIGTERM is killed (V5)', async () => {
  const { supervisor, ready } = await begin('stubborn')
  await ready()
  const pid = supervisor.pid() ?? 0
  await supervisor.stop()
  expect(isAlive(pid)).toBe(false)
})

test('what a killed gateway left behind is ended first; a pid that is somebody else’s is left alone (V1)', async () => {
  const { folder, ready } = await begin('well')
  const left = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
  const bystander = spawn('sleep', ['600'], { stdio: 'ignore' })
  onTestFinished(() => void bystander.kill('SIGKILL'))
  const gone = new Promise((resolve) => left.once('exit', resolve))
  const stat = await readFile(`/proc/${left.pid}/stat`, 'utf8')
  await writeFile(join(folder, 'pid'), `${left.pid} ${stat.replace(/^.*\)/s, '').trim().split(' ')[19]}`)
  await ready()
  await gone
  const other = await begin('well')
  await writeFile(join(other.folder, 'pid'), `${bystander.pid} 1`)
  await other.ready()
  expect(isAlive(bystander.pid ?? 0)).toBe(true)
})
