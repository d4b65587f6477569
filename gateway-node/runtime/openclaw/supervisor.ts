/**
 * The OpenClaw process: started when it is wanted, watched, started anew when it ends by itself.
 *
 *  V1 One process group per gateway home. One that a killed gateway left behind is ended before the next is started (`pid` file with its start time).
 *  V2 It is ready when it says so (`/readyz`), within `readyMs`; until then nobody is let through.
 *  V3 An exit that nobody asked for is followed by a new start, after 1 s, 2 s, 4 s … at most a minute; a good while of running resets that.
 *  V4 Exit 78 is a configuration it does not take: its own repair is tried once, then it is a problem that people see.
 *  V5 Stopping is SIGTERM, then SIGKILL to the whole group after `graceMs`. Whatever happens here never ends the gateway.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../service.ts'

export interface SupervisorOptions {
  /** Its folder; exists. */
  readonly folder: string
  readonly log: Log
  readonly now: () => number
  /** Writes the configuration for this port and says what to run. Throws a sentence when it can't be run. */
  prepare(): Promise<{ readonly script: string; readonly port: number; readonly env: Readonly<Record<string, string>> }>
  /** Null: all is well. */
  onProblem(message: string | null): void
  /** It ended, asked for or not: whatever worked in it is gone. */
  onExit(words: string): void
  readonly readyMs?: number
  readonly graceMs?: number
  /** ms of running after which an exit counts as the first. */
  readonly calmMs?: number
}

export interface Supervisor {
  /** Starts it if need be; its port when it is ready. Rejects with a sentence when it won't be. */
  ready(signal: AbortSignal): Promise<number>
  /** Ends it, and starts it anew with the next `ready`, or at once when it is wanted. */
  restart(): Promise<void>
  stop(): Promise<void>
  state(): 'stopped' | 'starting' | 'ready' | 'waiting'
  /** ms since 1970; undefined unless it runs. */
  since(): number | undefined
  pid(): number | undefined
}

const CONFIG_INVALID = 78

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { folder, log, now, readyMs = 120_000, graceMs = 8_000, calmMs = 300_000 } = options
  const pidFile = join(folder, 'pid')
  let child: ChildProcess | undefined
  let starting: Promise<number> | undefined
  let port: number | undefined
  let startedAt = 0
  let failures = 0
  let repaired = false
  let again: NodeJS.Timeout | undefined
  let stopped = true
  let tail = ''
  let swept = false

  /** The process is asked for: from now on it is kept alive. */
  function start(): Promise<number> {
    stopped = false
    clearTimeout(again)
    again = undefined
    starting ??= launch().finally(() => {
      starting = undefined
    })
    return starting
  }

  async function launch(): Promise<number> {
    if (!swept) await endLeftover(pidFile, log)
    swept = true
    const { script, port: wanted, env } = await options.prepare()
    if (stopped) throw new Error('OpenClaw was stopped.')
    tail = ''
    const running = spawn(process.execPath, [script, 'gateway', 'run'], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    child = running
    startedAt = now()
    const hear = (data: Buffer): void => {
      tail = (tail + data.toString()).slice(-4_000)
    }
    running.stdout?.on('data', hear)
    running.stderr?.on('data', hear)
    const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
      running.once('error', () => resolve({ code: null, signal: null }))
      running.once('exit', (code, signal) => resolve({ code, signal }))
    })
    void ended.then((how) => exited(running, how))
    if (running.pid) await writeFile(pidFile, `${running.pid} ${startTime(running.pid) ?? ''}`, { mode: 0o600 })
    await becomeReady(wanted, ended)
    port = wanted
    options.onProblem(null)
    log('info', 'OpenClaw is ready', { pid: running.pid, ms: now() - startedAt })
    return wanted
  }

  async function becomeReady(wanted: number, ended: Promise<{ code: number | null }>): Promise<void> {
    let over: { code: number | null } | undefined
    void ended.then((how) => {
      over = how
    })
    const end = now() + readyMs
    for (;;) {
      if (over)
        throw new Error(`OpenClaw ended while it was starting (exit ${over.code ?? 'by a signal'}). ${excerpt()}`)
      if (stopped) throw new Error('OpenClaw was stopped.')
      if (await isReady(wanted)) return
      if (now() > end) {
        kill('SIGKILL')
        throw new Error(`OpenClaw did not become ready within ${Math.round(readyMs / 1000)} s. ${excerpt()}`)
      }
      await pause(250)
    }
  }

  function exited(gone: ChildProcess, { code, signal }: { code: number | null; signal: string | null }): void {
    if (child !== gone) return
    killGroup(gone, 'SIGKILL')
    child = undefined
    port = undefined
    void rm(pidFile, { force: true }).catch(() => undefined)
    options.onExit(
      stopped ? 'OpenClaw was restarted; the work is begun again.' : 'OpenClaw ended in the middle of the work.',
    )
    if (stopped) return
    log('warn', 'OpenClaw ended', { code, signal, after_ms: now() - startedAt })
    if (now() - startedAt > calmMs) failures = 0
    const delay = Math.min(60_000, 1_000 * 2 ** failures)
    failures += 1
    const why =
      code === CONFIG_INVALID ? 'does not take its configuration' : `ended by itself (${signal ?? `exit ${code}`})`
    options.onProblem(`OpenClaw ${why}; it is started again in ${Math.round(delay / 1000)} s. ${excerpt()}`)
    const repair = code === CONFIG_INVALID && !repaired
    repaired ||= repair
    again = setTimeout(() => {
      void (repair ? doctor() : Promise.resolve()).then(() => start()).catch((error: unknown) => failed(error))
    }, delay)
  }

  /** `prepare` or the start itself did not work: said, and tried again only when somebody asks, or as an exit says. */
  function failed(error: unknown): void {
    if (stopped) return
    options.onProblem(error instanceof Error ? error.message : String(error))
  }

  async function doctor(): Promise<void> {
    const { script, env } = await options.prepare()
    log('info', 'OpenClaw’s own repair is tried (V4)')
    await new Promise<void>((resolve) => {
      const run = spawn(process.execPath, [script, 'doctor', '--fix', '--yes', '--non-interactive'], {
        cwd: folder,
        env,
        stdio: 'ignore',
        timeout: 120_000,
        killSignal: 'SIGKILL',
      })
      run.once('error', () => resolve())
      run.once('exit', () => resolve())
    })
  }

  function kill(signal: NodeJS.Signals): void {
    if (child) killGroup(child, signal)
  }

  async function end(): Promise<void> {
    clearTimeout(again)
    again = undefined
    const ending = child
    if (!ending) return
    const gone = new Promise<void>((resolve) => {
      if (ending.exitCode !== null || ending.signalCode !== null) resolve()
      else ending.once('exit', () => resolve())
    })
    // The process alone: it ends what it started in its own way first.
    ending.kill('SIGTERM')
    const hard = setTimeout(() => killGroup(ending, 'SIGKILL'), graceMs)
    await gone
    clearTimeout(hard)
    killGroup(ending, 'SIGKILL')
    await rm(pidFile, { force: true })
  }

  function excerpt(): string {
    const lines = tail.trim().split('\n').slice(-4).join(' ').slice(-400)
    return lines === '' ? '' : `It last said: ${lines}`
  }

  return {
    async ready(signal) {
      if (port !== undefined && child) return port
      let stop: (() => void) | undefined
      const given = new Promise<never>((_, reject) => {
        stop = () => reject(new Error('aborted'))
        signal.addEventListener('abort', stop, { once: true })
      })
      try {
        signal.throwIfAborted()
        return await Promise.race([start(), given])
      } finally {
        if (stop) signal.removeEventListener('abort', stop)
      }
    },
    async restart() {
      const wanted = !stopped
      stopped = true
      await end()
      await starting?.catch(() => undefined)
      failures = 0
      repaired = false
      stopped = !wanted
    },
    async stop() {
      stopped = true
      await end()
      await starting?.catch(() => undefined)
    },
    state: () => (port !== undefined ? 'ready' : starting ? 'starting' : again ? 'waiting' : 'stopped'),
    since: () => (child ? startedAt : undefined),
    pid: () => child?.pid,
  }
}

async function isReady(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(2_000) })
    const body: unknown = await response.json()
    return typeof body === 'object' && body !== null && 'ready' in body && body.ready === true
  } catch {
    return false // not listening yet
  }
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // The group is gone.
  }
}

/** Field 22 of /proc/<pid>/stat: a pid that was given to somebody else has another one. Undefined where there is no /proc. */
function startTime(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/s, '').trim().split(' ')[19]
  } catch {
    return undefined
  }
}

/** V1 */
async function endLeftover(pidFile: string, log: Log): Promise<void> {
  const text = await readFile(pidFile, 'utf8').catch(() => '')
  const [pid, started] = text.split(' ')
  const number = Number(pid)
  if (!Number.isInteger(number) || number <= 1 || !started || startTime(number) !== started) return
  log('info', 'An OpenClaw of an earlier gateway process is ended', { pid: number })
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    try {
      process.kill(signal === 'SIGTERM' ? number : -number, signal)
    } catch {
      break // It has ended.
    }
    for (let n = 0; n < 40 && startTime(number) === started; n++) await pause(100)
  }
  await rm(pidFile, { force: true })
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
