/** A real gateway process for tests, and a git that is slow where a test wants it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))

export interface LogLine {
  readonly level: string
  readonly message: string
  readonly [key: string]: unknown
}

export interface GatewayProcess {
  readonly pid: number
  readonly lines: LogLine[]
  /** All of stdout and stderr. */
  text(): string
  /** The first line, already printed or still to come, for which `is` holds. Rejects when the process ends before. */
  line(is: (line: LogLine) => boolean, what?: string): Promise<LogLine>
  ready(): Promise<LogLine>
  /** Ends it and waits. The exit code, or the signal's name. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | string>
  readonly ended: Promise<number | string>
}

/** `entry`: another program than the gateway's own, with the same lines. */
export function startGatewayProcess(env: Readonly<Record<string, string>>, entry = main): GatewayProcess {
  const child: ChildProcess = spawn(process.execPath, [entry], {
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: LogLine[] = []
  const lookers = new Set<() => void>()
  let text = ''
  let rest = ''
  let isEnded = false
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    rest += chunk
    const whole = rest.split('\n')
    rest = whole.pop() ?? ''
    for (const line of whole) lines.push(JSON.parse(line) as LogLine)
    for (const look of [...lookers]) look()
  })
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  const ended = once(child, 'close').then(([code, signal]) => {
    isEnded = true
    for (const look of [...lookers]) look()
    return (code ?? signal) as number | string
  })

  const line: GatewayProcess['line'] = (is, what = 'a line') =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => finish(() => reject(new Error(`${what} did not come:\n${text}`))), 120_000)
      const finish = (then: () => void): void => {
        clearTimeout(timer)
        lookers.delete(look)
        then()
      }
      const look = (): void => {
        const found = lines.find(is)
        if (found) finish(() => resolve(found))
        else if (isEnded) finish(() => reject(new Error(`the gateway ended before ${what} came:\n${text}`)))
      }
      lookers.add(look)
      look()
    })

  return {
    pid: child.pid ?? 0,
    lines,
    text: () => text,
    line,
    ready: () => line((entry) => entry['ready'] === true, 'the ready line'),
    ended,
    end: (signal) => {
      if (!isEnded) child.kill(signal)
      return ended
    },
  }
}

/**
 * A folder to put first in PATH, with a `git` that waits before `worktree add` as long as the file `hold` exists in the folder, and notes its process id in
 * `held`. Everything else is the real git's.
 */
export async function holdableGit(folder: string): Promise<{ path: string; hold: string; held: string }> {
  await mkdir(folder, { recursive: true })
  const hold = join(folder, 'hold')
  const held = join(folder, 'held')
  const script = `#!/bin/sh
case "$*" in *"worktree add"*)
  if [ -e "${hold}" ]; then echo $$ >> "${held}"; while [ -e "${hold}" ]; do sleep 0.05; done; fi;;
esac
PATH="\${PATH#*:}" exec git "$@"
`
  await writeFile(join(folder, 'git'), script)
  await chmod(join(folder, 'git'), 0o755)
  return { path: `${folder}${delimiter}${process.env['PATH'] ?? ''}`, hold, held }
}
