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
import { obtainCredentials, readCredentials } from './registration.ts'
import type { Log } from './service.ts'

const stop = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort(new Error(signal)))
/** For a person who waits in front of it: plain words, and only what matters to them. */
const log: Log = (_level, message, detail = {}) => {
  const facts = ['server', 'reason', 'kept'].flatMap((name) => (name in detail ? [String(detail[name])] : []))
  if (message !== 'Registered') process.stderr.write(`${[message, ...facts].join(': ')}\n`)
}

let unlock: (() => void) | undefined
try {
  const config = readConfig(process.env)
  await prepareHome(config.home)
  unlock = takeLock(config.home)
  // Nobody writes an offer into this folder while we look: what is there now, or in the environment, is all.
  const before = await readCredentials(config.home)
  const { slug, url, gateway_id } = await obtainCredentials({ config, log, signal: stop.signal, patienceMs: 0 })
  const already = before?.gateway_id === gateway_id ? ', and was before: no token was used' : ''
  process.stdout.write(`This machine is the gateway “${slug}” of ${url}${already}. It runs with: npm run gateway\n`)
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
