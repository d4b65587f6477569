/**
 * `npm run build`: the web application, into client/dist. Everything else runs as it stands.
 *
 * A build is stale when a file that goes into it has changed since; a stamp beside it holds their hash.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const stamp = join(root, 'client/dist/.hq-built')
const sources = ['client', 'shared', 'migrations', 'package-lock.json']
const skipped = new Set(['node_modules', 'dist', 'routeTree.gen.ts', '.tanstack'])

/** Builds if needed; returns whether it did. Throws when the build fails, after its words; quiet otherwise, unless told not to be. */
export function ensureBuilt({ quiet = true } = {}): boolean {
  const wanted = hashOfSources()
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return false
  console.log('Building the app (once for each version, about 20 s)…')
  const { status, stdout, stderr } = spawnSync(process.execPath, ['client/scripts/build.ts'], {
    cwd: root,
    stdio: quiet ? 'pipe' : 'inherit',
    maxBuffer: 64 * 1024 * 1024,
    // Vitest sets it to `test`, which would make a development build without a service worker.
    env: { ...process.env, NODE_ENV: 'production' },
  })
  if (status !== 0) {
    if (quiet) process.stderr.write(`${stdout}${stderr}`)
    throw new Error('The app could not be built; the message stands above.')
  }
  writeFileSync(stamp, hashOfSources())
  return true
}

function hashOfSources(): string {
  const hash = createHash('sha256')
  for (const path of sources.flatMap((name) => filesUnder(name)))
    hash.update(path).update(readFileSync(join(root, path)))
  return hash.digest('hex')
}

function filesUnder(path: string): string[] {
  const name = path.split('/').at(-1) ?? ''
  if (skipped.has(name) || name.startsWith('dist-') || name.endsWith('.test.ts')) return []
  const entries = readdir(path)
  return entries ? entries.flatMap((entry) => filesUnder(`${path}/${entry}`)) : [path]
}

/** Sorted names in a folder, or undefined for a file. */
function readdir(path: string): string[] | undefined {
  try {
    return readdirSync(join(root, path)).sort()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined
    throw error
  }
}

if (import.meta.main) {
  const built = ensureBuilt({ quiet: false })
  if (!built) console.log('The app is up to date.')
}
