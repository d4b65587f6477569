/**
 * The engine by itself, for any Electric client: every table of a database, no authentication, loopback unless told otherwise.
 *
 *     npm run shapes -- --database-url postgres://… --port 3000
 *
 * SIGTERM and SIGINT end it cleanly. Exit code 1: it could not start; the reason is on stderr.
 */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { serve } from '@hono/node-server'
import { createEngine } from './engine.ts'
import type { Logger } from './protocol.ts'
import { toHono } from './toHono.ts'

const USAGE = `usage: npm run shapes -- --database-url postgres://user:password@host/database --port 3000
  --host ADDRESS    default 127.0.0.1
  --data-dir PATH   folder of the change log, default ~/.hq/shapes/<slot>
  --slot NAME       replication slot and publication, default hq_shapes
  --long-poll MS    how long a live request is held, default 20000
  --chunk-bytes N   size at which a snapshot is cut into replies, default 10485760
  --verbose         log more`

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      'database-url': { type: 'string' },
      port: { type: 'string', default: '3000' },
      host: { type: 'string', default: '127.0.0.1' },
      'data-dir': { type: 'string' },
      slot: { type: 'string', default: 'hq_shapes' },
      'long-poll': { type: 'string' },
      'chunk-bytes': { type: 'string' },
      verbose: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(USAGE)
  const connectionString = values['database-url'] ?? process.env['DATABASE_URL']
  if (!connectionString) throw new Error(`--database-url (or DATABASE_URL) is needed.\n${USAGE}`)
  const port = positive('port', values.port)

  const engine = createEngine({
    connectionString,
    dataDir: values['data-dir'] ?? join(homedir(), '.hq', 'shapes', values.slot),
    slot: values.slot,
    publication: values.slot,
    logger: createLogger(values.verbose),
    allowDeletion: true,
    cacheControl: 'electric',
    longPollMs: values['long-poll'] ? positive('long-poll', values['long-poll']) : undefined,
    chunkBytes: values['chunk-bytes'] ? positive('chunk-bytes', values['chunk-bytes']) : undefined,
  })

  const server = serve({ fetch: toHono(engine).fetch, hostname: values.host, port })
  // Before anything is set up in the database: a port that is taken should leave nothing behind.
  await new Promise<void>((resolve, reject) => {
    server.once('listening', resolve)
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new Error(`Port ${port} is in use. Choose another with --port.`) : error),
    )
  })
  if ('keepAliveTimeout' in server) {
    // Longer than a long-poll, else a connection may close under a request that is on its way.
    server.keepAliveTimeout = 65_000
    server.requestTimeout = 0
  }

  let stopping = false
  const stop = async (): Promise<void> => {
    if (stopping) return
    stopping = true
    server.close()
    if ('closeAllConnections' in server) setTimeout(() => server.closeAllConnections(), 200)
    await engine.stop()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop())

  try {
    await engine.start()
  } catch (error) {
    if (stopping) return
    throw error
  }
  console.log(`shapes on http://${values.host}:${port}/v1/shape`)
}

const positive = (name: string, text: string): number => {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${name} must be a positive whole number`)
  return number
}

const createLogger = (verbose: boolean): Logger => {
  const line =
    (level: string): Logger['info'] =>
    (message, fields) =>
      console.error(`${new Date().toISOString()} ${level} ${message}${fields ? ` ${JSON.stringify(fields)}` : ''}`)
  const nothing = (): void => undefined
  return {
    debug: verbose ? line('debug') : nothing,
    info: verbose ? line('info') : nothing,
    warn: line('warn'),
    error: line('error'),
  }
}

try {
  await main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}
