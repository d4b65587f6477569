/** `npm run check`: types of every package, Biome, the invariants of the sync core, and the tests against known defects. Exits 1 when one of them has something to say. */
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
for (const [script, what] of [
  ['invariants.ts', 'invariants of docs/sync.md'],
  ['defects.ts', 'tests named in docs/defects.md'],
]) {
  const { status } = spawnSync(process.execPath, [`${root}scripts/${script}`], { cwd: root, stdio: 'inherit' })
  console.log(`${status === 0 ? 'ok  ' : 'FAIL'} ${what}`)
  failed ||= status !== 0
}
process.exit(failed ? 1 : 0)
