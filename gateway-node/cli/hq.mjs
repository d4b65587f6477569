#!/usr/bin/env node
/** Starts `hq.ts` under a Node that can run it, whatever Node the shell has. */
import { spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findNode } from '../../scripts/find-node.mjs'

const here = dirname(realpathSync(fileURLToPath(import.meta.url)))
let node
try {
  node = findNode()
} catch (error) {
  console.error(`hq: ${error.message}`)
  process.exit(3)
}
const { status, error } = spawnSync(node, [join(here, 'hq.ts'), ...process.argv.slice(2)], { stdio: 'inherit' })
if (error) console.error(`hq: Node could not be started: ${error.message}`)
process.exit(status ?? 1)
