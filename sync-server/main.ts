/**
 * The sync-server as a process: `node sync-server/main.ts`. The supervisor starts it; alone it runs too, and then brings its own Postgres unless
 * DATABASE_URL names one. Says `{"event":"ready","url":…}` to a parent that listens. SIGTERM and SIGINT stop it in order.
 *
 * Environment: HQ_HOME (.hq), HQ_HOST (127.0.0.1), HQ_PORT (3210), HQ_PUBLIC_URL, DATABASE_URL, ELECTRIC_URL, ELECTRIC_SECRET.
 */
import './heap.ts'
import { resolve } from 'node:path'
import { PostgresStartError, startEmbeddedPostgres } from './database/embedded.ts'
import { MigrationError } from './database/migrate.ts'
import type { Log } from './http/context.ts'
import { startServer } from './server.ts'

const log: Log = (level, message, fields) => {
  if (level === 'debug' && !process.env['HQ_DEBUG']) return
  const line = JSON.stringify({ at: new Date().toISOString(), level, message, ...fields })
  ;(level === 'error' ? process.stderr : process.stdout).write(`${line}\n`)
}

const { env } = process
const home = resolve(env['HQ_HOME'] ?? '.hq')
const stops: (() => Promise<void>)[] = []
let stopping = false

const stop = async (code: number): Promise<void> => {
  if (stopping) return
  stopping = true
  const hurry = setTimeout(() => process.exit(code || 1), 20_000)
  for (const end of stops.reverse())
    await end().catch((error: unknown) => log('error', 'Stopping failed.', { error: String(error) }))
  clearTimeout(hurry)
  process.exit(code)
}
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(0))
// A parent that was killed leaves no orphan behind.
process.on('disconnect', () => void stop(0))

try {
  let databaseUrl = env['DATABASE_URL']
  if (!databaseUrl) {
    const postgres = await startEmbeddedPostgres({ home, onLog: (line) => log('debug', line) })
    stops.push(() => postgres.stop())
    databaseUrl = postgres.url
  }
  const server = await startServer({
    databaseUrl,
    home,
    host: env['HQ_HOST'],
    port: Number(env['HQ_PORT'] ?? 3210),
    publicUrl: env['HQ_PUBLIC_URL'],
    electricUrl: env['ELECTRIC_URL'],
    electricSecret: env['ELECTRIC_SECRET'],
    log,
  })
  stops.push(() => server.stop())
  log('info', 'The sync-server is ready.', { url: server.url })
  process.send?.({ event: 'ready', url: server.url })
} catch (error) {
  const known = error instanceof MigrationError || error instanceof PostgresStartError
  const message = error instanceof Error ? error.message : String(error)
  log('error', message, known || !(error instanceof Error) ? {} : { stack: error.stack })
  process.send?.({ event: 'failed', message })
  await stop(1)
}
