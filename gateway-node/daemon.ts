/**
 * One gateway, from its home folder to its running parts.
 *
 *  D1 One process per home (lock). Everything it keeps is in there, readable by its owner only.
 *  D2 Registered once, it starts and works without the server; without ever having been registered it waits for a registration.
 *  D3 A part that can't work is a problem that people see; the other parts run.
 *  D4 Stopping goes from the outside in: first no new work (parts, in reverse order), then what is written is given a moment to be sent, then replica,
 *     connection, lock. A stop during the start works as well.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { uuidV7 } from '@hq/shared/domain/ids.ts'
import type { Migration } from '@hq/shared/schema/migrations.ts'
import { LockedError, openNodeReplica, readMigrations } from '@hq/shared/sync/adapter-node.ts'
import type { Replica } from '@hq/shared/sync/contract.ts'
import { lockFile } from '@hq/shared/sync/lock.ts'
import { createMultiplexer, type WebSocketLike } from '@hq/shared/sync/transport.ts'
import { WebSocket } from 'ws'
import { createAgentStops } from './agent-stops.ts'
import { type GatewayConfig, prepareHome, SetupError } from './config.ts'
import { createHeartbeat } from './heartbeat.ts'
import { createProblems } from './problems.ts'
import { type Credentials, obtainCredentials } from './registration.ts'
import { createRunner } from './runner/runner.ts'
import type { GatewayContext, Log, RuntimeRegistry, Service } from './service.ts'
import { agentAuthor } from './workspaces/contract.ts'
import { createMirror } from './workspaces/mirror.ts'
import { publishFiles } from './workspaces/publish.ts'
import { publishTemplates } from './workspaces/publish-templates.ts'
import { GIT_MISSING } from './workspaces/system-git.ts'
import { createWorkspaces } from './workspaces/workspaces.ts'

/** The parts that are not the daemon's own; `parts.ts` has the real ones. */
export interface Parts<Runtimes extends RuntimeRegistry = RuntimeRegistry> {
  createRuntimes(context: GatewayContext): Runtimes
  /** In the order of their start. */
  createServices(
    context: GatewayContext,
    runtimes: Runtimes,
  ): readonly { readonly name: string; readonly service: Service }[]
}

export interface DaemonOptions<Runtimes extends RuntimeRegistry = RuntimeRegistry> {
  readonly config: GatewayConfig
  readonly parts: Parts<Runtimes>
  readonly log: Log & { addSecret?(value: string): void }
  readonly env: Readonly<Record<string, string | undefined>>
  /** Aborted: stop, at any time. */
  readonly signal: AbortSignal
  readonly heartbeatMs?: number
  /** Default: those of this checkout. */
  readonly migrations?: readonly Migration[]
  readonly registration?: { readonly lookMs?: number; readonly patienceMs?: number }
}

export interface Gateway {
  readonly context: GatewayContext
  /** May be called twice; resolves when everything is closed (D4). */
  stop(): Promise<void>
}

const FLUSH_MS = 2_000

export async function startGateway<Runtimes extends RuntimeRegistry>(
  options: DaemonOptions<Runtimes>,
): Promise<Gateway> {
  const { config, log, signal } = options
  const stopping = new AbortController()
  /** What has to be undone, newest last. */
  const undo: { readonly name: string; readonly run: () => unknown }[] = []
  let stopped: Promise<void> | undefined

  function stop(): Promise<void> {
    stopped ??= (async () => {
      stopping.abort(new Error('The gateway stops'))
      for (const { name, run } of undo.splice(0).reverse()) {
        try {
          await run()
        } catch (error) {
          log('error', 'A part of the gateway did not stop as it should', { part: name, error })
        }
      }
    })()
    return stopped
  }

  try {
    await prepareHome(config.home)
    undo.push({ name: 'lock', run: takeLock(config.home) })
    const credentials = await obtainCredentials({ config, log, signal, ...options.registration })
    log.addSecret?.(credentials.token)
    signal.throwIfAborted()
    const replica = await openReplica(options, credentials, undo)
    signal.throwIfAborted()
    const context = await makeContext(options, credentials, replica, stopping.signal)
    undo.push({ name: 'outbox', run: () => flush(replica) })
    await startParts(options, context, undo)
    return { context, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** (D1) */
export function takeLock(home: string): () => void {
  try {
    return lockFile(join(home, 'gateway.lock'))
  } catch (error) {
    if (error instanceof LockedError) {
      const pid = /process (\d+)/.exec(error.message)?.[1]
      const who = pid ? `Another gateway (process ${pid})` : 'Another gateway'
      throw new SetupError(
        'locked',
        `${who} already works in ${home}. Stop that one first, or give this one a folder of its own in HQ_GATEWAY_HOME.`,
        {
          cause: error,
        },
      )
    }
    throw error
  }
}

async function openReplica(
  { config, log, migrations = readMigrations() }: Pick<DaemonOptions, 'config' | 'log' | 'migrations'>,
  credentials: Credentials,
  undo: { name: string; run: () => unknown }[],
): Promise<Replica> {
  const headers = { authorization: `Bearer ${credentials.token}` }
  const common = {
    directory: join(config.home, 'replica'),
    seed: SEED,
    migrations,
    identity: { kind: 'gateway' as const, ownerId: credentials.gateway_id, tenantId: credentials.tenant_id },
    serverUrl: credentials.url,
  }
  if (config.sync !== 'websocket') {
    const withToken = (input: string, init?: RequestInit): Promise<Response> => {
      const all = new Headers(init?.headers)
      all.set('authorization', headers.authorization)
      return fetch(input, { ...init, headers: all })
    }
    const replica = await openNodeReplica({
      ...common,
      environment: { now: Date.now, randomUuid: randomUUID, fetch: withToken, log },
      liveSse: config.sync === 'sse',
    })
    undo.push({ name: 'replica', run: () => replica.close() })
    return replica
  }
  const transport = createMultiplexer({
    url: `${credentials.url.replace(/^http/, 'ws')}/v1/sync`,
    openSocket: (url, protocol) =>
      new WebSocket(url, protocol, {
        headers,
        perMessageDeflate: false,
        maxPayload: 64 * 1024 * 1024,
      }) as unknown as WebSocketLike,
  })
  undo.push({ name: 'connection', run: () => transport.close() })
  const replica = await openNodeReplica({
    ...common,
    environment: { now: Date.now, randomUuid: randomUUID, fetch: transport.fetch, log },
    transport,
  })
  undo.push({ name: 'replica', run: () => replica.close() })
  return replica
}

/** Made with the app (`npm run build`); without it the first start takes some seconds longer. */
const SEED = fileURLToPath(new URL('../client/dist-seed/seed.tar.gz', import.meta.url))

async function makeContext(
  { config, log, env }: Pick<DaemonOptions, 'config' | 'log' | 'env'>,
  credentials: Credentials,
  replica: Replica,
  signal: AbortSignal,
): Promise<GatewayContext> {
  const workspaces = await createWorkspaces({ home: config.home, templates: config.templates, now: Date.now })
  const context: GatewayContext = {
    replica,
    gatewayId: credentials.gateway_id,
    tenantId: credentials.tenant_id,
    slug: credentials.slug,
    home: config.home,
    workspaces,
    publishFiles: async (agentId, message) => {
      const [agent] = await replica.query<{ id: string; slug: string; name: string }>(
        'select id, slug, name from agents where id = $1 and gateway_id = $2 and deleted_at is null',
        [agentId, credentials.gateway_id],
      )
      if (!agent || !(await workspaces.exists(agent.slug))) return
      await workspaces.commit(agent.slug, message, agentAuthor(agent))
      const { truncated } = await publishFiles(context, agent)
      if (truncated) log('warn', 'Not all files of an agent are shown', { agent: agent.slug })
    },
    agentStops: createAgentStops(),
    problems: createProblems(),
    log,
    now: Date.now,
    newId: () => uuidV7(Date.now(), randomBytes(10)),
    processToken: `${replica.identity.replicaId}/${process.pid}-${randomBytes(4).toString('hex')}`,
    signal,
    env,
  }
  return context
}

async function startParts<Runtimes extends RuntimeRegistry>(
  options: DaemonOptions<Runtimes>,
  context: GatewayContext,
  undo: { name: string; run: () => unknown }[],
): Promise<void> {
  const { log, parts } = options
  const runtimes = parts.createRuntimes(context)
  const heartbeat = createHeartbeat(
    context,
    runtimes,
    options.heartbeatMs === undefined ? {} : { everyMs: options.heartbeatMs },
  )
  watchConnection(context, undo)
  if ((await context.workspaces.gitVersion()) === null) context.problems.report('git_missing', GIT_MISSING)
  await publishTemplatesWhenLoaded(context, undo)
  const all = [
    { name: 'heartbeat', service: heartbeat as Service },
    { name: 'mirror', service: createMirror(context) },
    { name: 'runner', service: createRunner(context, runtimes) },
    ...parts.createServices(context, runtimes),
  ]
  for (const { name, service } of all) {
    if (options.signal.aborted) break
    // Before the start: what has begun has to be stopped, also when it fails half-way.
    undo.push({ name, run: () => service.stop() })
    try {
      await service.start()
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      context.problems.report(
        `part_${name}`,
        `The gateway's ${name} doesn't work: ${reason}. Restart the gateway; its log has the details.`,
      )
      log('error', 'A part of the gateway did not start', { part: name, error })
    }
  }
}

/** The first load has to be there: a row that the server has already must not be made a second time. */
async function publishTemplatesWhenLoaded(
  context: GatewayContext,
  undo: { name: string; run: () => unknown }[],
): Promise<void> {
  const { replica, log, problems } = context
  const reports = await context.workspaces.seedTemplates()
  const broken = reports.flatMap(({ error }) => (error ? [error] : []))
  if (broken.length > 0) problems.report('templates', broken.join(' '))
  if (reports.length === 0)
    problems.report('templates', 'This gateway has no agent templates. Set HQ_TEMPLATES to a folder that has some.')
  for (const message of broken) log('warn', message)

  let published: Promise<void> | undefined
  const publish = (): void => {
    if (published || !replica.status().initial.done) return
    stopWaiting()
    published = publishTemplates(context, reports).then(
      (count) => log('info', 'Templates published', { templates: reports.length, changed: count }),
      (error: unknown) => log('error', 'Templates could not be published', { error }),
    )
  }
  const stopWaiting = replica.onStatus(publish)
  undo.push({
    name: 'templates',
    run: async () => {
      stopWaiting()
      await published
    },
  })
  publish()
}

/** Changes of the connection in the log, and as a problem what a person has to do about it. */
function watchConnection(
  { replica, log, problems }: GatewayContext,
  undo: { name: string; run: () => unknown }[],
): void {
  let before = ''
  const look = (): void => {
    const { connection, parked, pending, initial } = replica.status()
    if (connection === 'unauthorized') {
      problems.report(
        'unauthorized',
        'The server refuses this gateway: it was retired, or its token was withdrawn. Register it anew.',
      )
    } else problems.clear('unauthorized')
    const now = `${connection} ${parked ?? ''} ${initial.done}`
    if (now === before) return
    before = now
    log(connection === 'unauthorized' || parked ? 'warn' : 'info', 'Connection', {
      connection,
      parked,
      pending,
      loaded: initial.done,
    })
  }
  const end = replica.onStatus(look)
  undo.push({ name: 'connection log', run: end })
  look()
}

/** Lets the last reports go out, if the server is there; they stay in the outbox otherwise. */
async function flush(replica: Replica): Promise<void> {
  const done = (): boolean => {
    const { connection, pending, parked } = replica.status()
    return connection !== 'online' || pending === 0 || parked !== null
  }
  if (done()) return
  await new Promise<void>((resolve) => {
    const timer = setTimeout(finish, FLUSH_MS)
    const end = replica.onStatus(() => {
      if (done()) finish()
    })
    function finish(): void {
      clearTimeout(timer)
      end()
      resolve()
    }
  })
}
