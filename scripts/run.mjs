#!/usr/bin/env node
/**
 * Runs a TypeScript file of this project under the Node it needs (24 or later).
 *
 *     node scripts/run.mjs FILE [ARGUMENTS…]
 *
 * `npm run` puts `node_modules/.bin` first in PATH, so there it is already the right Node; a bare `node` in a shell
 * may be an old one, and then this hands over to the one that `npm install` brought.
 */
import { spawnSync } from 'node:child_process'
import { findNode } from './find-node.mjs'

const [file, ...args] = process.argv.slice(2)
if (!file) {
  console.error('usage: node scripts/run.mjs FILE [ARGUMENTS…]')
  process.exit(2)
}
const { status, signal } = spawnSync(findNode(), [file, ...args], { stdio: 'inherit' })
process.exit(status ?? (signal ? 1 : 0))
