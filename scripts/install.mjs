/**
 * Brings the project's packages when they are missing or of another lock file. Plain JavaScript without dependencies for Node 18 and later:
 * it runs before anything is installed.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const lockFile = `${root}package-lock.json`
const stamp = `${root}node_modules/.hq-installed`
/** Holds the process that installs: two at once (`npm start` beside `npm test`) would take each other's files away. */
const lock = `${root}.hq-install.lock`

/** Returns true when it had to install. Throws with npm's own words above when that failed. */
export function ensureInstalled() {
  if (isInstalled()) return false
  takeTurn()
  try {
    if (isInstalled()) return false
    console.log('Installing packages (once, about a minute)…')
    // The old Node's npm warns that some packages want a newer Node; they get it, from node_modules/.bin.
    const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
    const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
    const { status, error } = spawnSync(npm, args, { cwd: root, stdio: 'inherit' })
    if (error) throw new Error(`npm could not be started: ${error.message}`)
    if (status !== 0) {
      throw new Error(
        "'npm ci' failed; its message stands above. With a network again, run the same command once more.",
      )
    }
    writeFileSync(stamp, lockHash())
    return true
  } finally {
    rmSync(lock, { force: true })
  }
}

const lockHash = () => createHash('sha256').update(readFileSync(lockFile)).digest('hex')
const isInstalled = () => existsSync(stamp) && readFileSync(stamp, 'utf8') === lockHash()

/** Waits until no other living process installs, then is the one that does. */
function takeTurn() {
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx' })
      return
    } catch (error) {
      if (error.code !== 'EEXIST')
        throw new Error(`This folder cannot be written to (${error.message}), so packages cannot be installed.`)
    }
    const holder = readHolder()
    if (holder !== undefined && !isAlive(holder)) rmSync(lock, { force: true })
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
  }
}

/** Who installs; undefined when the lock has just been freed, or taken and not yet written. */
function readHolder() {
  try {
    return Number(readFileSync(lock, 'utf8')) || undefined
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}
