/**
 * `npm run gateway:register`: makes this machine a gateway, and ends. Afterwards `npm run gateway` needs no token.
 *
 * A step of its own so that the token is in the environment of this short process only, and not in that of the gateway and of what it starts. Ended at any
 * moment, it can be run again with the same token (registration.ts, C4).
 *
 * Exit codes: 0 registered, or it was already · 1 a defect · 2 something a person has to put right (said on stderr) · 3 a gateway is running in this home.
 */
import { prepareHome, readConfig, SetupError } from './config.ts'
import { takeLock } from './daemon.ts'
import { createLog, secretsOf } from './log.ts'
import { obtainCredentials } from './registration.ts'

const stop = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort(new Error(signal)))
const log = createLog({ secrets: secretsOf(process.env), write: (line) => void process.stderr.write(line) })

let unlock: (() => void) | undefined
try {
  const config = readConfig(process.env)
  await prepareHome(config.home)
  unlock = takeLock(config.home)
  // Nobody writes an offer into this folder while we look: what is there now, or in the environment, is all.
  const { slug, url } = await obtainCredentials({ config, log, signal: stop.signal, patienceMs: 0 })
  process.stdout.write(`This machine is the gateway “${slug}” of ${url}. Start it with: npm run gateway\n`)
} catch (error) {
  if (stop.signal.aborted) {
    process.stderr.write(
      'Stopped before this gateway was registered. Run the same command again; the token is still good for it.\n',
    )
    process.exitCode = 2
  } else if (error instanceof SetupError) {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = error.code === 'locked' ? 3 : 2
  } else {
    process.stderr.write(
      `Registering ended on something unforeseen: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    )
    process.exitCode = 1
  }
} finally {
  unlock?.()
}
