/** Part of `npm run check`: every test that docs/defects.md names exists, in the file it names. Prints what is missing; exits 1 if anything is. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const text = readFileSync(join(root, 'docs/defects.md'), 'utf8')
const problems: string[] = []
const named = [...text.matchAll(/`([^`]+\.test\.ts)` “([^”]+)”/g)]
for (const [, file = '', name = ''] of named) {
  const path = join(root, file)
  if (!existsSync(path)) problems.push(`docs/defects.md names ${file}, which is not there`)
  else if (!readFileSync(path, 'utf8').includes(name)) problems.push(`docs/defects.md: ${file} has no test “${name}”`)
}
if (named.length === 0) problems.push('docs/defects.md names no test at all')
for (const problem of problems) console.error(problem)
console.log(`${named.length} tests against known defects, ${problems.length} problems`)
process.exit(problems.length > 0 ? 1 : 0)
