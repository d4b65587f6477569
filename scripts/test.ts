/** The part of `npm test` that runs under the new Node: build the app if it is stale, then Vitest. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from './build.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const chromium =
  process.env['HQ_CHROMIUM'] ??
  ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path))

if (!chromium) {
  const how = "Browser tests need Chromium (Debian: 'apt-get install chromium', or set HQ_CHROMIUM to its path)."
  if (process.env['HQ_REQUIRE_BROWSER']) {
    console.error(how)
    process.exit(1)
  }
  console.warn(`${how} They are left out of this run.`)
}

ensureBuilt()
// Without a word of which, everything but the slow ones.
const args = process.argv.slice(2)
const chosen = args.some((arg) => arg.startsWith('--project')) ? [] : ['--project', 'unit', '--project', 'system']
const excluded = chromium ? [] : ['--exclude', '**/*.browser.test.ts', '--exclude', 'tests/chaos/browser.test.ts']
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', ...chosen, ...excluded, ...args],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...(chromium ? { HQ_CHROMIUM: chromium } : {}) },
  },
)
process.exit(status ?? 1)
