/**
 * One child of the supervisor: started, watched, restarted with back-off when it ends by itself, stopped when asked.
 *
 *  1. It has a process group of its own: Ctrl-C in the terminal reaches the supervisor only, which stops children in order.
 *  2. Everything it says goes to its log file; what matters (warnings, errors) also to the console.
 *  3. An exit that says "a person has to put something right" (2, or 3) is not tried again every second.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createWriteStream, renameSync, statSync, type WriteStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

export interface ChildOptions {
  readonly name: string
  /** Arguments for Node. */
  readonly args: readonly string[]
  readonly cwd: string
  readonly logs: string
  readonly env: () => NodeJS.ProcessEnv
  /** True when a message over IPC says that the child works. */
  readonly isReady: (message: unknown) => boolean
  readonly say: (line: string) => void
  /** Whether a first start that fails is tried again, too. */
  readonly keepTrying?: boolean
}

interface Ended {
  readonly ready: boolean
  readonly code: number | null
  readonly why: string
  readonly stable: boolean
}

export interface Child {
  /** Starts it and resolves when it is ready; rejects with its last words when its first start fails. */
  start(): Promise<void>
  /** Ends it and starts it again, with the environment of now. */
  restart(): Promise<void>
  /** SIGTERM, then SIGKILL after the grace. */
  stop(graceMs?: number): Promise<void>
  kill(): void
  readonly pid: () => number | undefined
}

const BACKOFF_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000]
const STABLE_MS = 60_000
const READY_MS = 90_000
const LOG_BYTES = 10 * 1024 * 1024

export interface LogFile {
  write(text: string): void
  end(): void
}

/** Appends to `NAME.log`; the part before is `NAME.log.1`, and what is older is gone: two times `maxBytes` is all that a log takes. */
export function openLog(folder: string, name: string, maxBytes = LOG_BYTES): LogFile {
  const file = join(folder, `${name}.log`)
  let size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  const open = (): WriteStream => {
    const stream = createWriteStream(file, { flags: 'a', mode: 0o600 })
    // A full disk must not end HQ for want of a log line.
    stream.on('error', () => undefined)
    return stream
  }
  /** What the former stream still has to write goes to the file under its new name. */
  const rotate = (): void => {
    try {
      renameSync(file, `${file}.1`)
      size = 0
    } catch {
      size = 0 // It was taken away by somebody else; the new stream makes it anew.
    }
  }
  if (size > maxBytes) rotate()
  let stream = open()
  return {
    write(text) {
      const bytes = Buffer.byteLength(text)
      // A stream opens its file a moment later; renamed before that, it would open the new one.
      if (size > 0 && size + bytes > maxBytes && !stream.pending) {
        rotate()
        stream.end()
        stream = open()
      }
      size += bytes
      stream.write(text)
    },
    end: () => void stream.end(),
  }
}

export function createChild(options: ChildOptions): Child {
  const { name, args, cwd, env, isReady, say } = options
  const log = openLog(options.logs, name)
  let child: ChildProcess | undefined
  let wanted = false
  let waiting: AbortController | undefined

  /** Runs it once, to its end. */
  const runOnce = (onReady: () => void): Promise<Ended> =>
    new Promise((resolve) => {
      const began = Date.now()
      let ready = false
      let lastWords = ''
      const running = spawn(process.execPath, [...args], {
        cwd,
        env: env(),
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      })
      child = running
      const giveUp = setTimeout(() => {
        lastWords = `it did not become ready within ${READY_MS / 1000} s`
        running.kill('SIGKILL')
      }, READY_MS)
      const hear = (line: string): void => {
        log.write(`${line}\n`)
        const said = important(line)
        if (!said) return
        if (said.level === 'error') lastWords = said.message
        if (ready || said.level === 'warn') say(`[${name}] ${said.message}`)
      }
      for (const stream of [running.stdout, running.stderr]) {
        if (stream) createInterface({ input: stream }).on('line', hear)
      }
      running.on('message', (message) => {
        if (ready || !isReady(message)) return
        ready = true
        clearTimeout(giveUp)
        onReady()
      })
      running.on('error', (error) => {
        lastWords = error.message
      })
      running.once('close', (code, signal) => {
        clearTimeout(giveUp)
        child = undefined
        const at = new Date().toISOString()
        log.write(`${JSON.stringify({ at, level: 'info', message: 'ended', code, signal })}\n`)
        const why = lastWords || (signal ? `it was ended by ${signal}` : `exit code ${code}`)
        resolve({ ready, code, why, stable: Date.now() - began > STABLE_MS })
      })
    })

  /** Runs it again and again, until it is no longer wanted. */
  const keepRunning = async (onFirst: (failure: string | undefined) => void): Promise<void> => {
    let first = true
    for (let failures = 0; wanted; failures++) {
      const { ready, code, why, stable } = await runOnce(() => {
        onFirst(undefined)
        if (!first) say(`[${name}] works again.`)
        first = false
      })
      if (!wanted) return
      if (first) onFirst(why)
      if (first && !options.keepTrying) return
      if (stable) failures = 0
      const needsHelp = code === 2 || code === 3
      const wait = needsHelp ? 60_000 : (BACKOFF_MS[Math.min(failures, BACKOFF_MS.length - 1)] ?? 30_000)
      if (ready) say(`[${name}] ended: ${why}. Starting it again in ${wait / 1000} s.`)
      first = false
      waiting = new AbortController()
      await sleep(wait, undefined, { signal: waiting.signal }).catch(() => undefined) // ended early by stop()
    }
  }

  const start = (): Promise<void> =>
    new Promise((resolve, reject) => {
      wanted = true
      keepRunning((failure) => (failure === undefined ? resolve() : reject(new Error(failure)))).catch(reject)
    })

  const stop = async (graceMs = 15_000): Promise<void> => {
    wanted = false
    waiting?.abort()
    const running = child
    if (!running || running.exitCode !== null || running.signalCode !== null) return
    const ended = new Promise<void>((done) => running.once('close', () => done()))
    running.kill('SIGTERM')
    const inTime = await Promise.race([ended.then(() => true), sleep(graceMs, false, { ref: false })])
    if (!inTime) {
      say(`[${name}] did not stop within ${graceMs / 1000} s and was ended.`)
      running.kill('SIGKILL')
    }
    await ended
  }

  return {
    start,
    async restart() {
      await stop()
      await start()
    },
    stop,
    kill: () => {
      wanted = false
      child?.kill('SIGKILL')
    },
    pid: () => child?.pid,
  }
}

/** A structured line of warning or error; undefined for the rest. */
function important(line: string): { level: string; message: string } | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const { level, message } = JSON.parse(line) as { level?: unknown; message?: unknown }
    if ((level === 'warn' || level === 'error') && typeof message === 'string') return { level, message }
  } catch {
    return undefined // not one of our lines
  }
  return undefined
}
