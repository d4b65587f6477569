/**
 * All of HQ as its real processes: Postgres, a server that can be killed, gateways that can be killed; people over HTTP.
 *
 *     const system = await startSystem()
 *     try {
 *       const gateway = await system.gateway('one')
 *       await system.writer(system.owner).apply([insert('tasks', {…})])
 *       await gateway.kill(); await system.server.kill()
 *     } finally { await system.stop() }
 *
 * Browsers are opened with `openDevice` (browser.ts) on `system.server`, or on a network that can go wrong: `through(system.server, proxy)`.
 */
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bearerHash, makeIdentity } from '@hq/gateway-node/registration-identity.ts'
import { type GatewayProcess, startGatewayProcess } from '@hq/gateway-node/testing/process.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { type Caller, createWriter, insert, type Person, type Writer } from '@hq/sync-server/testing/workspace.ts'
import { eventually, OWNER, startTestServer, type TestServer } from './browser.ts'
import { type Network, startProxy } from './proxy.ts'

const GATEWAY = fileURLToPath(new URL('./gateway-main.ts', import.meta.url))

export type Row = Record<string, unknown>

export interface Gateway {
  readonly id: string
  readonly slug: string
  /** Its folder: `replica/`, `repo.git/`, `agents/`, `credentials.json`. */
  readonly home: string
  readonly process: GatewayProcess
  /** Everything that all its processes have printed. */
  text(): string
  /** Starts it again on the same folder; resolves when it works. */
  start(env?: Record<string, string>): Promise<void>
  /** What it has written since it last had nothing to send, from the safety copy beside its database. */
  written(): Promise<Written[]>
  /** Its clock goes a minute forward. */
  skipMinute(): void
  kill(): Promise<void>
  /** SIGTERM, and waits. */
  end(): Promise<void>
}

export interface Written {
  readonly table: string
  readonly id: string
  readonly op: string
  readonly set: Row
}

export interface GatewayOptions {
  /** Where it finds the server; default: the server itself. */
  readonly url?: string
  readonly env?: Record<string, string>
  /** Registered over HTTP, its credentials are in its folder, and it has never been started: `start` does that. */
  readonly unstarted?: boolean
}

export interface System {
  readonly server: TestServer
  /** Signed in over HTTP. Only with `setUp` (the default), or after `signIn`. */
  readonly owner: Person
  readonly tenantId: string
  request(caller: Pick<Caller, 'headers'> | undefined, path: string, init?: RequestInit): Promise<Response>
  signIn(who?: { email: string; password: string }): Promise<Person>
  join(role: 'admin' | 'member' | 'viewer', name?: string): Promise<Person>
  writer(caller?: Caller): Writer
  gateway(slug: string, options?: GatewayOptions): Promise<Gateway>
  proxy(): Promise<Network>
  rows<T = Row>(sql: string, params?: unknown[]): Promise<T[]>
  /** `eventually`; when it does not come, what the gateways said stands in the error. */
  when<T>(what: string, ask: () => Promise<T>, ms?: number): Promise<NonNullable<T>>
  /** The row, as soon as the authority has it and `is` holds for it. */
  rowWhen(table: string, id: string, is: (row: Row) => boolean, ms?: number): Promise<Row>
  stop(): Promise<void>
}

/** `browser`: builds and serves the app. `env`: of the server's process (server-process.ts). `setUp: false`: nobody is there yet, the test does the first visit. */
export async function startSystem(
  options: { browser?: boolean; setUp?: boolean; env?: Readonly<Record<string, string>> } = {},
): Promise<System> {
  const folder = await mkdtemp(join(tmpdir(), 'hq-system-'))
  // HQ_TEST_APP: an app that was built before, so that a test can be repeated while its sources change.
  const appFolder = options.browser ? process.env['HQ_TEST_APP'] : folder
  const gateways: Gateway[] = []
  const proxies: Network[] = []
  let owner: Person | undefined
  const server = await startTestServer({ ...(appFolder && { appFolder }), ...(options.env && { env: options.env }) })

  const request: System['request'] = (caller, path, init = {}) =>
    fetch(server.url + path, {
      ...init,
      headers: {
        ...(init.body ? { 'content-type': 'application/json' } : {}),
        ...caller?.headers,
        ...(init.headers as Record<string, string> | undefined),
      },
    })
  const post = (path: string, body: unknown, caller?: Caller): Promise<Response> =>
    request(caller, path, { method: 'POST', body: JSON.stringify(body) })

  const personOf = async (response: Response, email: string, password: string): Promise<Person> => {
    if (!response.ok) throw new Error(`not signed in: ${response.status} ${await response.text()}`)
    const cookies = response.headers.getSetCookie().map((line) => line.split(';')[0])
    const headers = { cookie: cookies.join('; ') }
    const session = (await (await request({ headers }, '/v1/session')).json()) as Pick<Person, 'principal'>
    return { headers, principal: session.principal, email, password }
  }

  const system: System = {
    server,
    get owner() {
      if (!owner) throw new Error('Nobody has set the workspace up yet.')
      return owner
    },
    get tenantId() {
      return system.owner.principal.tenant_id
    },
    request,
    async signIn({ email, password } = OWNER) {
      const person = await personOf(await post('/api/auth/sign-in/email', { email, password }), email, password)
      if (email === OWNER.email) owner ??= person
      return person
    },
    async join(role, name = `A ${role}`) {
      const email = `${newId()}@example.com`
      const { url } = (await (await post('/v1/invitations', { role }, system.owner)).json()) as { url: string }
      const path = `/v1/invitations/by-token/${url.split('/').at(-1)}/accept`
      return personOf(await post(path, { name, email, password: OWNER.password }), email, OWNER.password)
    },
    writer: (caller = system.owner) => createWriter(caller, newId(), request),
    async gateway(slug, { url = server.url, env: own = {}, unstarted = false } = {}) {
      const made = await post('/v1/gateways/tokens', { label: slug }, system.owner)
      const { token } = (await made.json()) as { token: string }
      const home = join(folder, slug)
      const env = { HQ_SERVER_URL: url, HQ_REGISTRATION_TOKEN: token, ...own }
      if (unstarted) {
        const identity = makeIdentity()
        const { public_key } = identity
        const asked = { token, slug, label: slug, bearer_hash: bearerHash(identity.token), public_key }
        const answer = await post('/v1/gateways/register', asked)
        await mkdir(home, { recursive: true, mode: 0o700 })
        const credentials = { url, ...((await answer.json()) as object), slug, ...identity }
        await writeFile(join(home, 'credentials.json'), JSON.stringify(credentials), { mode: 0o600 })
      }
      const gateway = gatewayIn(home, slug, env)
      gateways.push(gateway)
      if (!unstarted) await gateway.start()
      return gateway
    },
    async proxy() {
      const proxy = await startProxy(() => Number(new URL(server.url).port))
      proxies.push(proxy)
      return proxy
    },
    rows: (sql, params) => server.rows(sql, params),
    rowWhen: (table, id, is, ms) =>
      system.when(
        `${table} ${id} is as it should be`,
        async () => {
          const [row] = await server.rows<Row>(`select * from ${table} where id = $1`, [id])
          if (row && is(row)) return row
          throw new Error(`it is ${JSON.stringify(row)}`)
        },
        ms,
      ),
    async when(what, ask, ms = 60_000) {
      try {
        return await eventually(what, ask, ms)
      } catch (error) {
        const said = gateways.map((gateway) => `${gateway.slug}:\n${gateway.text().slice(-4_000)}`)
        throw new Error([(error as Error).message, ...said].join('\n'), { cause: error })
      }
    },
    async stop() {
      await Promise.all(gateways.map((gateway) => gateway.kill()))
      await Promise.all(proxies.map((proxy) => proxy.close()))
      await server.stop()
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
  try {
    if (options.setUp !== false) {
      const { workspace: workspace_name, ...who } = OWNER
      const made = await post('/v1/setup', { ...who, workspace_name, timezone: 'Europe/Berlin' })
      owner = await personOf(made, OWNER.email, OWNER.password)
    }
    return system
  } catch (error) {
    await system.stop()
    throw error
  }
}

/** A gateway in this folder, which need not be there yet; not started. */
export function gatewayIn(home: string, slug: string, env: Record<string, string>): Gateway {
  const former: GatewayProcess[] = []
  const launch = (more: Record<string, string>): GatewayProcess =>
    startGatewayProcess({ HQ_GATEWAY_HOME: home, HQ_GATEWAY_SLUG: slug, HQ_GATEWAY_LABEL: slug, ...more }, GATEWAY)
  let current: GatewayProcess | undefined
  const running = (): GatewayProcess => {
    if (!current) throw new Error(`The gateway ${slug} was never started.`)
    return current
  }
  const { HQ_REGISTRATION_TOKEN: _used, ...later } = env
  return {
    get id() {
      const text = readFileSync(join(home, 'credentials.json'), 'utf8')
      return (JSON.parse(text) as { gateway_id: string }).gateway_id
    },
    slug,
    home,
    get process() {
      return running()
    },
    text: () => [...former, ...(current ? [current] : [])].map((each) => each.text()).join(''),
    async start(more = {}) {
      await current?.ended
      if (current) former.push(current)
      const started = launch({ ...(current ? later : env), ...more })
      current = started
      await started.ready()
    },
    async written() {
      const lines = (await readFile(join(home, 'replica.outbox.jsonl'), 'utf8')).split('\n')
      // What stands after the last line end is still being written.
      return lines.slice(0, -1).flatMap((line) => (JSON.parse(line) as { patches: Written[] }).patches)
    },
    skipMinute: () => void process.kill(running().pid, 'SIGUSR2'),
    kill: async () => void (await current?.end('SIGKILL')),
    end: async () => void (await current?.end('SIGTERM')),
  }
}

/** The server as it looks through a network: for `openDevice`, `setUpOwner` and the like. */
export const through = (server: TestServer, { url, port }: Network): TestServer =>
  Object.create(server, { url: { value: url }, port: { value: port } }) as TestServer

/** The patch of a new agent. */
export const agentPatch = (system: System, gateway: Gateway, slug: string, id = newId(), more: Row = {}) =>
  insert(
    'agents',
    {
      tenant_id: system.tenantId,
      gateway_id: gateway.id,
      name: slug[0]?.toUpperCase() + slug.slice(1),
      slug,
      meta: { template: 'writer', emoji: '🦊' },
      ...more,
    },
    id,
  )

/** Commands are run in the order of their making. */
let made = 0
export const commandPatch = (system: System, gateway: Gateway, agentId: string, action: string, id = newId()) => {
  made = Math.max(made + 1, Date.now())
  const row = { tenant_id: system.tenantId, gateway_id: gateway.id, agent_id: agentId, action }
  return insert('agent_commands', { ...row, created_at: new Date(made).toISOString() }, id)
}

export const taskPatch = (system: System, title: string, agentId: string | null = null, id = newId(), more: Row = {}) =>
  insert(
    'tasks',
    {
      tenant_id: system.tenantId,
      title,
      ...(agentId ? { assignee_type: 'agent', assignee_agent_id: agentId } : {}),
      created_by_type: 'human',
      created_by_id: system.owner.principal.person_id,
      ...more,
    },
    id,
  )

export const isEnded = (row: Row): boolean => !['pending', 'leased', 'running'].includes(String(row['status']))

/** An agent that is set up and ready for work. */
export async function provision(system: System, gateway: Gateway, slug: string, writer = system.writer()) {
  const [agent, command] = [newId(), newId()]
  await writer.apply([
    agentPatch(system, gateway, slug, agent),
    commandPatch(system, gateway, agent, 'provision', command),
  ])
  await system.rowWhen('agent_commands', command, (row) => row['status'] === 'done')
  await system.rowWhen('agents', agent, (row) => row['status'] === 'ready')
  return agent
}
