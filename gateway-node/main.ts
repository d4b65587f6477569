/**
 * `node gateway-node/main.ts`: one gateway as a process (its environment: config.ts).
 *
 * Prints structured lines on stdout; one of them has `"ready":true` when the gateway works, and a supervisor may wait for it. SIGTERM, SIGINT and the end of
 * a supervisor's IPC channel stop it in order; a second signal ends it at once.
 *
 * Exit codes: 0 stopped as asked · 1 a defect · 2 something a person has to put right (said on stderr) · 3 another process has this home.
 */
import { readConfig, SetupError } from './config.ts'
import { startGateway } from './daemon.ts'
import { createLog, secretsOf } from './log.ts'
import { parts } from './parts.ts'

const STOP_MS = 20_000

const log = createLog({
  secrets: secretsOf(process.env),
  ...(process.env['HQ_DEBUG'] ? { level: 'debug' as const } : {}),
})
const asked = new AbortController()

function stopOn(reason: string): void {
  if (asked.signal.aborted) {
    log('warn', 'Stopping at once', { reason })
    process.exit(1)
  }
  log('info', 'Stopping', { reason })
  asked.abort(new Error(reason))
}
process.on('SIGTERM', () => stopOn('SIGTERM'))
process.on('SIGINT', () => stopOn('SIGINT'))
if (process.channel) process.on('disconnect', () => stopOn('the supervisor is gone'))
// Whoever read our output is gone; that is no reason to stop working.
process.stdout.on('error', () => undefined)
process.on('unhandledRejection', (error) => log('error', 'A promise was rejected and nobody waited for it', { error }))

try {
  const config = readConfig(process.env)
  // Used or not, it is nothing for what this process starts.
  delete process.env['HQ_REGISTRATION_TOKEN']
  log('info', 'Starting', { home: config.home, pid: process.pid, node: process.version })
  const gateway = await startGateway({ config, parts, log, env: process.env, signal: asked.signal })
  log('info', 'Ready', {
    ready: true,
    gateway: gateway.context.gatewayId,
    slug: gateway.context.slug,
    pid: process.pid,
  })
  process.send?.({ type: 'ready', gateway_id: gateway.context.gatewayId })
  await new Promise<void>((resolve) => {
    if (asked.signal.aborted) resolve()
    asked.signal.addEventListener('abort', () => resolve())
  })
  setTimeout(() => {
    log('error', `Not stopped after ${STOP_MS / 1000} s; ending anyway`)
    process.exit(1)
  }, STOP_MS).unref()
  await gateway.stop()
  log('info', 'Stopped')
  process.exit(0)
} catch (error) {
  if (asked.signal.aborted) {
    log('info', 'Stopped')
    process.exit(0)
  }
  if (error instanceof SetupError) {
    log('error', error.message, { code: error.code })
    process.stderr.write(`${error.message}\n`)
    process.exit(error.code === 'locked' ? 3 : 2)
  }
  log('error', 'The gateway ended on a defect', { error })
  process.stderr.write(
    `The gateway ended on something unforeseen: ${error instanceof Error ? error.message : String(error)}\n`,
  )
  process.exit(1)
}
