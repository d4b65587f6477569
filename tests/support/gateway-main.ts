/**
 * A gateway as `gateway-node/main.ts` runs it, with what a test has to set: HQ_TEST_LEASE_MS (how long a dead process keeps its work; default 2000),
 * HQ_TEST_PACE_MS (the demo model's pause between words; default 0), HQ_TEST_WRITER (a word: it writes tasks without end, see writer.ts),
 * HQ_TEST_MIGRATIONS (a folder of migrations instead of this checkout's), HQ_TEST_AHEAD_MS (how far its clock is ahead). SIGUSR2 puts its clock a minute forward, so that no test waits out a rest.
 */
import { readConfig } from '@hq/gateway-node/config.ts'
import { type Parts, startGateway } from '@hq/gateway-node/daemon.ts'
import { createDispatcher } from '@hq/gateway-node/dispatcher/dispatcher.ts'
import { gatewayActions } from '@hq/gateway-node/local-api/gateway-actions.ts'
import { createLocalApi } from '@hq/gateway-node/local-api/server.ts'
import { createLog, secretsOf } from '@hq/gateway-node/log.ts'
import { createRuntimes, type Runtimes } from '@hq/gateway-node/runtime/registry.ts'
import { createOwnSecrets } from '@hq/gateway-node/secrets/secrets.ts'
import { readMigrations } from '@hq/shared/sync/adapter-node.ts'
import { createTestWriter } from './writer.ts'

const { env } = process
const clock = Date.now
let ahead = Number(env['HQ_TEST_AHEAD_MS'] ?? 0)
Date.now = () => clock() + ahead
process.on('SIGUSR2', () => {
  ahead += 60_000
})

const parts: Parts<Runtimes> = {
  createRuntimes: (context) => createRuntimes(context, { demoPaceMs: Number(env['HQ_TEST_PACE_MS'] ?? 0) }),
  createServices: (context, runtimes) => {
    const actions = gatewayActions(context)
    const dispatcher = createDispatcher(context, {
      runtimes,
      actions,
      leaseMs: Number(env['HQ_TEST_LEASE_MS'] ?? 2_000),
    })
    return [
      { name: 'secrets', service: createOwnSecrets(context) },
      { name: 'local-api', service: createLocalApi(context, { actions }) },
      { name: 'dispatcher', service: dispatcher },
      ...(env['HQ_TEST_WRITER'] ? [{ name: 'writer', service: createTestWriter(context, env['HQ_TEST_WRITER']) }] : []),
    ]
  },
}

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
