/**
 * Brings the project's packages when they are missing or of another lock file. Plain JavaScript without dependencies for Node 18 and later:
 * it runs before anything is installed.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const lock = `${root}package-lock.json`
const stamp = `${root}node_modules/.hq-installed`

/** Returns true when it had to install. Throws with npm's own words above when that failed. */
export function ensureInstalled() {
  const wanted = createHash('sha256').update(readFileSync(lock)).digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return false
  console.log('Installing packages (once, about a minute)…')
  // The old Node's npm warns that some packages want a newer Node; they get it, from node_modules/.bin.
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const { status, error } = spawnSync(npm, ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: 'inherit',
  })
  if (error) throw new Error(`npm could not be started: ${error.message}`)
  if (status !== 0)
    throw new Error("'npm ci' failed; its message stands above. With a network again, run the same command once more.")
  writeFileSync(stamp, wanted)
  return true
}
