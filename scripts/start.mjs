#!/usr/bin/env node
/**
 * `npm start [-- --demo]`: from a fresh clone to a running HQ. Plain JavaScript without dependencies for Node 18 and later, because it runs before anything
 * is installed: brings the packages if they are missing or of another lock file, then hands over to `supervisor.ts` under the Node that came with them.
 *
 * Signals are passed on; if this process is killed, the supervisor notices (its IPC channel ends) and stops in order.
 */
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findNode } from './find-node.mjs'
import { ensureInstalled } from './install.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

try {
  ensureInstalled()
  const child = spawn(findNode(), [join(root, 'scripts/supervisor.ts'), ...process.argv.slice(2)], {
    cwd: root,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH ?? ''}` },
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => fail(`HQ could not be started: ${error.message}`))
  child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)))
} catch (error) {
  fail(error.message)
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
