/**
 * A shell command whose output is told while it runs.
 *
 *  G1 It ends with its time, with `signal`, and with this process, also when that is killed: a guard in its group waits at a pipe that this process holds open.
 *  G2 What it has started in its process group ends with it. Never rejects.
 */
import { type ChildProcess, spawn } from 'node:child_process'

export interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly why: 'itself' | 'timeout' | 'stopped'
  readonly error?: string
}

export interface Options {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** Between asking it to end and ending it, and for pipes that nobody closes. */
  readonly graceMs?: number
  readonly onText: (text: string, stream: 'stdout' | 'stderr') => void
}

const GRACE_MS = 2_000
/** (G1) The command's own shell takes the place of this one, so that its `wait` knows nothing of the guard. */
const GUARDED = '(read -r _; kill -KILL 0) <&3 >/dev/null 2>&1 & exec /bin/sh -c "$1" sh 3<&-'

export async function runStreaming(command: string, options: Options): Promise<Ended> {
  const { cwd, env, signal, timeoutMs, graceMs = GRACE_MS, onText } = options
  if (signal.aborted) return { code: null, signal: null, why: 'stopped' }
  const child = spawn('/bin/sh', ['-c', GUARDED, 'sh', command], {
    cwd,
    env: { ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  let why: Ended['why'] = 'itself'
  let error: string | undefined
  let killing: NodeJS.Timeout | undefined
  const end = (reason: 'timeout' | 'stopped'): void => {
    if (why !== 'itself') return
    why = reason
    killGroup(child, 'SIGTERM')
    killing = setTimeout(() => killGroup(child, 'SIGKILL'), graceMs)
  }
  const timer = setTimeout(() => end('timeout'), timeoutMs)
  const onAbort = (): void => end('stopped')
  signal.addEventListener('abort', onAbort, { once: true })
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => onText(text, name))
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const exited = await new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once('error', (problem) => {
      error = problem.message
      resolve({ code: null, signal: null })
    })
    child.once('exit', (code, name) => resolve({ code, signal: name }))
  })
  clearTimeout(timer)
  clearTimeout(killing)
  signal.removeEventListener('abort', onAbort)
  killGroup(child, 'SIGKILL')
  // What has left the group may still hold the pipes: that is not waited for.
  let late: NodeJS.Timeout | undefined
  await Promise.race([closed, new Promise<void>((resolve) => (late = setTimeout(resolve, graceMs)))])
  clearTimeout(late)
  for (const stream of child.stdio) stream?.destroy()
  return { ...exited, why, ...(error === undefined ? {} : { error }) }
}

function killGroup(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch (error) {
    // ESRCH: nobody is in the group any more.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
