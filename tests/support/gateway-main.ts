/**
 * A gateway as `gateway-node/main.ts` runs it, with what a test has to set: HQ_TEST_LEASE_MS (how long a dead process keeps its work; default 2000),
 * HQ_TEST_PACE_MS (the demo model's pause between words; default 0), HQ_TEST_WRITER (a word: it writes tasks without end, see writer.ts),
 * HQ_TEST_MIGRATIONS (a folder of migrations instead of this checkout's), HQ_TEST_AHEAD_MS (how far its clock is ahead). SIGUSR2 puts its clock a minute forward, so that no test waits out a rest.
 */
import { readConfig } from '@hq/gateway-node/config.ts'
import { startGateway } from '@hq/gateway-node/daemon.ts'
import { createLog, secretsOf } from '@hq/gateway-node/log.ts'
import { createParts } from '@hq/gateway-node/parts.ts'
import { readMigrations } from '@hq/shared/sync/adapter-node.ts'
import { createTestWriter } from './writer.ts'

const { env } = process
const clock = Date.now
let ahead = Number(env['HQ_TEST_AHEAD_MS'] ?? 0)
Date.now = () => clock() + ahead
process.on('SIGUSR2', () => {
  ahead += 60_000
})

const writes = env['HQ_TEST_WRITER']
const parts = createParts({
  demoPaceMs: Number(env['HQ_TEST_PACE_MS'] ?? 0),
  leaseMs: Number(env['HQ_TEST_LEASE_MS'] ?? 2_000),
  ...(writes ? { more: (context) => [{ name: 'writer', service: createTestWriter(context, writes) }] } : {}),
})

const asked = new AbortController()
process.on('SIGTERM', () => asked.abort(new Error('SIGTERM')))
const log = createLog({ secrets: secretsOf(env), ...(env['HQ_DEBUG'] ? { level: 'debug' as const } : {}) })
const gateway = await startGateway({
  config: readConfig(env),
  parts,
  log,
  env,
  signal: asked.signal,
  heartbeatMs: 2_000,
  ...(env['HQ_TEST_MIGRATIONS'] && { migrations: readMigrations(env['HQ_TEST_MIGRATIONS']) }),
})
log('info', 'Ready', { ready: true, gateway: gateway.context.gatewayId, pid: process.pid })
if (!asked.signal.aborted) await new Promise((resolve) => asked.signal.addEventListener('abort', resolve))
await gateway.stop()
process.exit(0)
