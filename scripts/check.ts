/** `npm run check`: types of every package, Biome, and the invariants of the sync core. Exits 1 when one of them has something to say. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const checks: [string, string[]][] = [
  ['tsc', ['-p', 'tsconfig.json']],
  ['tsc', ['-p', 'client/tsconfig.json']],
  ['biome', ['check', '.']],
]

let failed = false
for (const [tool, args] of checks) {
  const { status, error } = spawnSync(`${root}node_modules/.bin/${tool}`, args, { cwd: root, stdio: 'inherit' })
  if (error) console.error(`${tool} could not be run: ${error.message}`)
  console.log(`${status === 0 ? 'ok  ' : 'FAIL'} ${tool} ${args.join(' ')}`)
  failed ||= status !== 0
}
const invariants = spawnSync(process.execPath, [`${root}scripts/invariants.ts`], { cwd: root, stdio: 'inherit' })
console.log(`${invariants.status === 0 ? 'ok  ' : 'FAIL'} invariants of docs/sync.md`)
failed ||= invariants.status !== 0
process.exit(failed ? 1 : 0)
