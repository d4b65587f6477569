/**
 * The sync-server, in process: `startServer(options)` connects, migrates, listens, and `stop()` ends all of that in order.
 *
 *  1. It listens only when it can serve: migrations applied, shapes being followed.
 *  2. `stop` ends sockets and long polls first, then the engine, then the connections; it takes no longer than a few seconds.
 */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { createAdaptorServer } from '@hono/node-server'
import { tableNames, tables } from '@hq/shared/schema/tables.ts'
import { createBlobs } from './blobs/blobs.ts'
import { migrate, readMigrations } from './database/migrate.ts'
import { watchPast } from './database/past.ts'
import { createPool, type Pool } from './database/pool.ts'
import { ensureTenant, renewEpoch } from './database/seed.ts'
import { offerLocalRegistration } from './gateways/gateways.ts'
import { createApp } from './http/app.ts'
import { createAccessChanges, type Env, type Log, type Services } from './http/context.ts'
import { createElectricProxy } from './http/electric-proxy.ts'
import { createReplicas } from './http/replicas.ts'
import { PARCEL_LIMITS } from './http/routes-parcels.ts'
import type { Site } from './http/security.ts'
import { createServeShape, type ShapeSource } from './http/shape-route.ts'
import { attachSyncSockets } from './http/sync-socket.ts'
import { createPush } from './mutations/push.ts'
import { followAccess } from './people/access-feed.ts'
import { createAuth } from './people/auth.ts'
import { createAuthenticate } from './people/principal.ts'
import { createEngine, type EngineOptions } from './shapes/engine.ts'
import type { Logger } from './shapes/protocol.ts'

export interface ServerOptions {
  readonly databaseUrl: string
  /** HQ_HOME: `server/` and `gateway/` are made in it. */
  readonly home: string
  /** Default loopback. */
  readonly host?: string | undefined
  /** 0 (default): any free port. */
  readonly port?: number | undefined
  readonly publicUrl?: string | undefined
  readonly electricUrl?: string | undefined
  readonly electricSecret?: string | undefined
  /** The built app. */
  readonly appFolder?: string | undefined
  readonly log?: Log | undefined
  /** Retention and maintenance of the embedded shape engine; for tests that don't wait a week. */
  readonly shapes?: Pick<EngineOptions, 'retentionMs' | 'retentionBytes' | 'maintenanceMs' | 'compactBytes'> | undefined
  /** Folder of the migrations; for tests of a version to come. */
  readonly migrations?: string | undefined
}

export interface RunningServer {
  /** Where people open it, such as `http://127.0.0.1:3210`. */
  readonly url: string
  readonly port: number
  readonly tenantId: string
  readonly pool: Pool
  stop(): Promise<void>
}

export const VERSION = '0.1.0'

const silent: Log = () => undefined

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const log = options.log ?? silent
  const host = options.host ?? '127.0.0.1'
  const stops: (() => Promise<void> | void)[] = []
  const stop = async (): Promise<void> => {
    for (const end of stops.splice(0).reverse()) await end()
  }
  try {
    const folder = join(options.home, 'server')
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const pool = createPool(options.databaseUrl, {
      onError: (error) => log('warn', 'An idle database connection was lost.', { error: error.message }),
    })
    stops.push(() => pool.end())
    const migrations = await migrate(pool, await readMigrations(options.migrations))
    if (migrations.applied.length > 0) log('info', 'Migrated the database.', { applied: migrations.applied })
    const tenant = await ensureTenant(pool)

    const accessChanges = createAccessChanges()
    const feed = await followAccess(options.databaseUrl, accessChanges, log)
    stops.push(() => feed.stop())
    let { epoch } = tenant
    const onRestored = async (): Promise<void> => {
      epoch = await renewEpoch(pool)
      // Sessions, roles and replicas may be other ones now.
      accessChanges.announce()
    }
    const source = await startSource(options, folder, pool, log, stops, onRestored)
    const secure = options.publicUrl?.startsWith('https:') ?? false
    const auth = createAuth({
      pool,
      secret: await authSecret(folder),
      secure,
      onError: (message) => log('error', message),
    })
    const services: Services = {
      pool,
      auth,
      authenticate: createAuthenticate(pool, auth),
      accessChanges,
      replicas: createReplicas(pool, accessChanges, log),
      tenantId: tenant.id,
      get epoch() {
        return epoch
      },
      version: VERSION,
      schemaVersion: migrations.version,
      log,
    }
    const site: Site = { host, publicUrl: options.publicUrl }
    const serveShape = createServeShape(source, services.replicas, accessChanges)
    const health: Record<string, unknown> = {
      // The process that a person would end.
      pid: Number(process.env['HQ_SUPERVISOR_PID'] ?? process.pid),
      schema_version: migrations.version,
      shapes: options.electricUrl ? 'electric' : 'embedded',
    }
    const app = createApp({
      site,
      services,
      serveShape,
      push: createPush(services),
      blobs: createBlobs(join(folder, 'blobs')),
      parcels: createBlobs(join(folder, 'parcels'), PARCEL_LIMITS),
      appFolder: options.appFolder ?? join(import.meta.dirname, '../client/dist/client'),
      health: () => ({ ...health, sockets: sockets.count() }),
    })
    const server = createAdaptorServer({
      fetch: (request, env) => app.fetch(request, env as Env['Bindings']),
    }) as Server
    // A backup over a slow line takes longer than Node's five minutes.
    server.requestTimeout = 2 * 60 * 60_000
    const sockets = attachSyncSockets(server, {
      site,
      services,
      serveShape,
      fetch: (request, env) => app.fetch(request, env),
    })
    const port = await listen(server, host, options.port ?? 0)
    stops.push(() => closeServer(server, sockets.close))
    const url = options.publicUrl ?? `http://${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host}:${port}`
    await offerLocalRegistration(pool, tenant.id, options.home, `http://127.0.0.1:${port}`)
    return { url, port, tenantId: tenant.id, pool, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startSource(
  options: ServerOptions,
  folder: string,
  pool: Pool,
  log: Log,
  stops: (() => Promise<void> | void)[],
  onRestored: () => Promise<void>,
): Promise<ShapeSource> {
  if (options.electricUrl) {
    const past = await watchPast({
      pool,
      file: join(folder, 'past.json'),
      onRestored: async (reason) => {
        log('warn', 'The database was restored; every device fetches it anew.', { reason })
        await onRestored()
      },
      onError: (error) =>
        log('warn', 'Could not look whether the database was restored; trying again.', { error: String(error) }),
    })
    stops.push(() => past.stop())
    return createElectricProxy(options.electricUrl, options.electricSecret, log)
  }
  const logger: Logger = {
    debug: (message, fields) => log('debug', message, fields),
    info: (message, fields) => log('info', message, fields),
    warn: (message, fields) => log('warn', message, fields),
    error: (message, fields) => log('error', message, fields),
  }
  const engine = createEngine({
    connectionString: options.databaseUrl,
    dataDir: join(folder, 'shapes'),
    tables: replicatedTables(),
    logger,
    onRestored,
    // What a slow reader holds of a snapshot is one piece of it.
    chunkBytes: 2 * 1024 * 1024,
    ...options.shapes,
  })
  stops.push(() => engine.stop())
  await engine.start()
  return engine
}

/** Sign-in, credentials and clocks never enter the change log. */
const replicatedTables = (): string[] =>
  tableNames.filter((name) => Object.values(tables[name].visibility).some((scope) => scope !== 'none'))

async function authSecret(folder: string): Promise<string> {
  const file = join(folder, 'auth-secret')
  if (!existsSync(file)) {
    await writeFile(`${file}.new`, `${randomBytes(48).toString('base64url')}\n`, { mode: 0o600 })
    await rename(`${file}.new`, file)
  }
  return (await readFile(file, 'utf8')).trim()
}

const listen = (server: Server, host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      const address = server.address()
      if (typeof address === 'object' && address) resolve(address.port)
      else reject(new Error('The server has no port.'))
    })
  })

async function closeServer(server: Server, closeSockets: () => void): Promise<void> {
  closeSockets()
  const closed = new Promise((done) => server.close(done))
  server.closeIdleConnections()
  const hurry = setTimeout(() => server.closeAllConnections(), 1_000)
  await closed
  clearTimeout(hurry)
}
