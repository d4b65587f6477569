/** The standalone engine as a process of its own, for tests that kill it and for benches. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from './postgres.ts'

export interface TestServer {
  /** Of `/v1/shape`. */
  readonly url: string
  readonly pid: () => number
  /** Ends the process and waits until it is gone. */
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
  /** Starts it again on the same data and port, and waits until it follows the database. */
  start(): Promise<void>
  /** Ends it and deletes its data. */
  stop(): Promise<void>
}

const STANDALONE = fileURLToPath(new URL('../standalone.ts', import.meta.url))

export const startTestServer = async (databaseUrl: string, flags: readonly string[] = []): Promise<TestServer> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'hq-test-shapes-'))
  const port = await freePort()
  let child: ChildProcess | undefined
  let output = ''

  const start = async (): Promise<void> => {
    const started = spawn(
      process.execPath,
      [STANDALONE, '--database-url', databaseUrl, '--port', String(port), '--data-dir', dataDir, ...flags],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    )
    child = started
    for (const stream of [started.stdout, started.stderr]) {
      stream.on('data', (data) => {
        output = (output + String(data)).slice(-10_000)
      })
    }
    for (;;) {
      const health = await fetch(`http://127.0.0.1:${port}/v1/health`).then(
        (response) => response.json() as Promise<{ status: string }>,
        () => undefined,
      )
      if (health?.status === 'active') return
      if (started.exitCode !== null) throw new Error(`the server ended: ${output}`)
      await sleep(20)
    }
  }
  const kill = async (signal: 'SIGKILL' | 'SIGTERM'): Promise<void> => {
    const running = child
    child = undefined
    if (!running || running.exitCode !== null || running.signalCode !== null) return
    const gone = new Promise((resolve) => running.once('exit', resolve))
    running.kill(signal)
    await gone
  }
  await start()
  return {
    url: `http://127.0.0.1:${port}/v1/shape`,
    pid: () => child?.pid ?? 0,
    kill,
    start,
    async stop() {
      await kill('SIGTERM')
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
