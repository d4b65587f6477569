#!/usr/bin/env node
/**
 * `npm test [-- VITEST ARGUMENTS…]`: installs and builds what is missing, then runs every test on real parts (embedded Postgres, real processes, a real
 * browser). Browser tests need Chromium; where none is found they are skipped and that is said, unless HQ_REQUIRE_BROWSER is set.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { findNode } from './find-node.mjs'
import { ensureInstalled } from './install.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

try {
  ensureInstalled()
  process.exit(run('scripts/test.ts', ...process.argv.slice(2)))
} catch (error) {
  console.error(error.message)
  process.exit(1)
}

function run(...args) {
  const path = `${root}node_modules/.bin:${process.env.PATH ?? ''}`
  const { status, error } = spawnSync(findNode(), args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: path },
  })
  if (error) throw error
  return status ?? 1
}
