/**
 * Where a Node new enough for this project is (it runs TypeScript as it stands, which Node does from 24 on).
 * Plain JavaScript for Node 18 and later: it is what runs before anything is installed.
 */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const NEEDED = 24

/** The path of a fitting Node: this process's own, or the one that `npm install` brought. Throws when there is none. */
export function findNode() {
  if (Number(process.versions.node.split('.')[0]) >= NEEDED) return process.execPath
  const installed = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url))
  if (existsSync(installed)) return installed
  throw new Error(
    `HQ needs Node ${NEEDED} or later, and this is ${process.version}. On Linux 'npm install' brings one along; ` +
      `on this system (${process.platform} ${process.arch}) please install Node ${NEEDED} first: https://nodejs.org`,
  )
}
