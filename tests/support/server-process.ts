/**
 * The sync-server as a child process that tests may kill. Started by `startTestServer` (browser.ts) with its settings in the
 * environment; says its address to the parent and ends when the parent does.
 */
import '@hq/sync-server/heap.ts'
import { type ServerOptions, startServer } from '@hq/sync-server/server.ts'

const { env } = process
process.on('disconnect', () => process.exit(0))

const server = await startServer({
  databaseUrl: env['TEST_DATABASE_URL'] ?? '',
  home: env['TEST_HOME'] ?? '',
  port: Number(env['TEST_PORT'] ?? 0),
  appFolder: env['TEST_APP_FOLDER'],
  electricUrl: env['TEST_ELECTRIC_URL'],
  electricSecret: env['TEST_ELECTRIC_SECRET'],
  migrations: env['TEST_MIGRATIONS'],
  ...(env['TEST_SHAPES'] && { shapes: JSON.parse(env['TEST_SHAPES']) as ServerOptions['shapes'] }),
  log: (level, message, fields) => {
    if (level === 'error' || env['HQ_DEBUG']) console.error(`[server] ${level}: ${message}`, fields ?? '')
  },
})
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
process.send?.({ url: server.url, port: server.port, tenantId: server.tenantId })
