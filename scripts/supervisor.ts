/**
 * `npm start`, after installing: builds what is stale, then runs Postgres, sync-server and one local gateway, and keeps them running.
 *
 *  1. One HQ on one HQ_HOME (home.ts); a port that is taken is explained before anything starts (port.ts).
 *  2. Order of starting: Postgres, server, gateway; each waits for the one before. HQ counts as running when the server is: people can work before
 *     agents can. Order of stopping: the reverse; SIGKILL after a grace.
 *  3. A child that ends by itself is started again with back-off (child.ts). A gateway that can't run doesn't stop people from working.
 *  4. Ctrl-C, SIGTERM, SIGHUP, or the end of whoever started this, stop everything in order; a second signal after a second stops it at once.
 *
 * Exit codes: 0 stopped as asked · 1 could not start.
 *
 * Environment: HQ_PORT 3210 · HQ_HOST 127.0.0.1 · HQ_HOME .hq · HQ_PUBLIC_URL · DATABASE_URL · ELECTRIC_URL, ELECTRIC_SECRET. `--demo` fills the workspace.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../sync-server/database/embedded.ts'
import { ensureBuilt } from './build.ts'
import { type Child, createChild, openLog } from './child.ts'
import { HomeError, type Lock, lockHome, prepareHome } from './home.ts'
import { portProblem } from './port.ts'

const root = dirname(import.meta.dirname)
const { env } = process
const say = (line: string): void => console.log(line)

class StartError extends Error {}

interface Running {
  lock?: Lock
  postgres?: EmbeddedPostgres
  server?: Child
  gateway?: Child
}

const running: Running = {}
let stopping: Promise<void> | undefined
let firstSignalAt = 0

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => onSignal(signal))
process.on('disconnect', () => onSignal('the end of the starting process'))
process.on('exit', killAll)

try {
  await start()
} catch (error) {
  if (!stopping) {
    const expected = error instanceof StartError || error instanceof HomeError
    console.error(
      expected || !(error instanceof Error)
        ? String((error as Error).message ?? error)
        : `HQ could not start: ${error.message}`,
    )
    await stop(1)
  }
}

async function start(): Promise<void> {
  const home = resolve(env['HQ_HOME'] || join(root, '.hq'))
  const host = env['HQ_HOST'] || '127.0.0.1'
  const port = readPort(env['HQ_PORT'])
  const url = env['HQ_PUBLIC_URL'] || `http://${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host}:${port}`

  await prepareHome(home)
  running.lock = await lockHome(home, url)
  const problem = await portProblem(host, port)
  if (problem) throw new StartError(problem.message)
  const git = spawnSync('git', ['--version'])
  if (git.error)
    say(
      "git was not found. People can work, but agents need it for their files: install git (Debian: 'apt-get install git') and start HQ again.",
    )
  if (existsSync(join(root, 'client/scripts/build.ts')) && !env['HQ_SKIP_BUILD']) ensureBuilt()
  if (stopping) return

  const logs = join(home, 'logs')
  let databaseUrl = env['DATABASE_URL']
  if (!databaseUrl) {
    running.postgres = await startPostgres(home, logs)
    databaseUrl = running.postgres.url
  }
  if (stopping) return
  const common = { cwd: root, logs, say }
  const childEnv = {
    ...env,
    HQ_HOME: home,
    HQ_HOST: host,
    HQ_PORT: String(port),
    HQ_SUPERVISOR_PID: String(process.pid),
  }
  const server = createChild({
    ...common,
    name: 'server',
    args: [join(root, 'sync-server/main.ts')],
    env: () => ({ ...childEnv, DATABASE_URL: running.postgres?.url ?? databaseUrl }),
    isReady: (message) => (message as { event?: unknown } | null)?.event === 'ready',
  })
  running.server = server
  await server.start().catch((error: Error) => {
    throw new StartError(`The server could not start: ${error.message}\nIts log: ${join(logs, 'server.log')}`)
  })
  if (stopping) return
  // People can work before agents can.
  startGateway(common, childEnv, host, port).catch((error: unknown) => say(`[gateway] ${String(error)}`))
  if (process.argv.includes('--demo'))
    await fillDemo({ ...childEnv, DATABASE_URL: running.postgres?.url ?? databaseUrl })
  say(`\nHQ runs at ${url}\nData and logs: ${home} · Ctrl-C stops it.`)
  process.send?.({ event: 'ready', url })
}

function readPort(text: string | undefined): number {
  const port = Number(text || 3210)
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port
  throw new StartError(`HQ_PORT=${text} is not a port. Choose a number from 1024 to 65535, such as 3210.`)
}

async function startPostgres(home: string, logs: string, preferredPort?: number): Promise<EmbeddedPostgres> {
  const log = openLog(logs, 'postgres')
  const postgres = await startEmbeddedPostgres({
    home,
    ...(preferredPort ? { preferredPort } : {}),
    onLog: (line) => log.write(`${line}\n`),
  })
  const watch = async (): Promise<void> => {
    await postgres.exited
    log.end()
    if (stopping || running.postgres !== postgres) return
    say('[postgres] ended by itself. Starting it again.')
    await restartPostgres(home, logs, postgres)
  }
  watch().catch((error: unknown) => {
    say(`[postgres] could not be started again: ${error instanceof Error ? error.message : String(error)}`)
    return stop(1)
  })
  return postgres
}

async function restartPostgres(home: string, logs: string, former: EmbeddedPostgres): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await new Promise((later) => setTimeout(later, 500 * attempt))
    if (stopping) return
    try {
      running.postgres = await startPostgres(home, logs, former.port)
      break
    } catch (error) {
      if (attempt >= 5) throw error
    }
  }
  // On the same port the server's connections come back by themselves.
  if (running.postgres.port !== former.port) await running.server?.restart()
  say('[postgres] works again.')
}

/** (3) */
async function startGateway(
  common: { cwd: string; logs: string; say: (line: string) => void },
  childEnv: NodeJS.ProcessEnv,
  host: string,
  port: number,
): Promise<void> {
  const main = join(root, 'gateway-node/main.ts')
  if (!existsSync(main)) return say('There is no gateway in this version yet: agents will not run.')
  const address = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  // What is the server's alone is kept from the process that runs agents.
  const { DATABASE_URL: _url, ELECTRIC_SECRET: _secret, ...rest } = childEnv
  const gateway = createChild({
    ...common,
    name: 'gateway',
    keepTrying: true,
    args: [main],
    env: () => ({ ...rest, HQ_SERVER_URL: `http://${address}:${port}` }),
    isReady: (message) => (message as { type?: unknown } | null)?.type === 'ready',
  })
  running.gateway = gateway
  await gateway.start().catch((error: Error) => {
    if (!stopping)
      say(
        `The gateway could not start, so agents do not run: ${error.message}\nIts log: ${join(common.logs, 'gateway.log')}`,
      )
  })
}

async function fillDemo(childEnv: NodeJS.ProcessEnv): Promise<void> {
  const main = join(root, 'sync-server/demo/main.ts')
  const child = spawn(process.execPath, [main], { cwd: root, env: childEnv, stdio: ['ignore', 'inherit', 'inherit'] })
  const code = await new Promise<number | null>((done) => {
    child.once('exit', done)
    child.once('error', () => done(1))
  })
  if (code !== 0) say('The demo data could not be filled in; what stands above says why. HQ runs without it.')
}

function onSignal(reason: string): void {
  const now = Date.now()
  if (!stopping) {
    firstSignalAt = now
    say(`\nStopping (${reason})…`)
    void stop(0)
  } else if (now - firstSignalAt > 1_000) {
    // One Ctrl-C may come twice (from the terminal, and passed on); a later one means it.
    say('Stopping at once.')
    process.exit(1)
  }
}

function stop(code: number): Promise<void> {
  stopping ??= (async () => {
    const end = async (name: string, work: Promise<void> | undefined): Promise<void> => {
      await work?.catch((error: unknown) => console.error(`${name} could not be stopped in order: ${String(error)}`))
    }
    await end('The gateway', running.gateway?.stop(15_000))
    await end('The server', running.server?.stop(10_000))
    await end('Postgres', running.postgres?.stop(15_000))
    delete running.postgres
    await end('The lock', running.lock?.release())
    if (code === 0) say('HQ has stopped. Nothing is lost; start it again with npm start.')
    process.exit(code)
  })()
  return stopping
}

/** The last resort: nothing that was started here outlives this process. */
function killAll(): void {
  running.gateway?.kill()
  running.server?.kill()
  const pid = running.postgres?.pid
  if (pid === undefined) return
  try {
    process.kill(pid, 'SIGQUIT')
  } catch {
    // already gone
  }
}
