/**
 * Part of `npm run check`: docs/sync.md lists every invariant that a module of the sync core declares, and some test cites each of them in its name.
 * Prints what is missing; exits 1 if anything is.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Whose headers declare invariants of the sync core. */
const DECLARING = [
  'shared/sync',
  'shared/sync/core',
  'sync-server/mutations/merge.ts',
  'sync-server/mutations/sequence.ts',
  'migrations/0002_replica.sql',
]
/** Where tests cite them. */
const CITING = ['shared/sync', 'sync-server', 'tests', 'client/src/replica', 'client/src/features/sync', 'gateway-node']
/** Promises, cited everywhere; and defects of others that have become tests. */
const NOT_OURS = /^[PD]\d+$/

const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const filesOf = (path: string, deep: boolean): string[] =>
  /\.\w+$/.test(path)
    ? [path]
    : readdirSync(join(root, path), { withFileTypes: true }).flatMap((entry) => {
        const inner = `${path}/${entry.name}`
        if (entry.isDirectory()) return deep && entry.name !== 'node_modules' ? filesOf(inner, true) : []
        return [inner]
      })
const matches = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map((match) => match[1] ?? '')

const listed = new Set(matches(read('docs/sync.md'), /^- \*\*([A-Z]\d+)\*\*/gm))
const declared = new Map<string, string>()
for (const file of DECLARING.flatMap((path) => filesOf(path, false))) {
  if (file.endsWith('.test.ts') || file.endsWith('.bench.ts')) continue
  for (const id of matches(read(file), /^(?: \*|--) +([A-Z]\d+) /gm)) if (!NOT_OURS.test(id)) declared.set(id, file)
}
const cited = new Set(
  CITING.flatMap((path) => filesOf(path, true))
    .filter((file) => file.endsWith('.test.ts'))
    .flatMap((file) => matches(read(file), /(?:test|describe)[^('`"]*\([^)]*?['"`]([^\n]*)/g))
    .flatMap((name) => matches(name, /\b([A-Z]\d+)\b/g)),
)

const problems = [
  ...[...declared]
    .filter(([id]) => !listed.has(id))
    .map(([id, file]) => `${id} is declared in ${file} and not listed in docs/sync.md`),
  ...[...listed].filter((id) => !declared.has(id)).map((id) => `${id} is listed in docs/sync.md and declared nowhere`),
  ...[...listed].filter((id) => !cited.has(id)).map((id) => `${id} is cited by no test`),
]
for (const problem of problems) console.error(problem)
console.log(`${listed.size} invariants, ${problems.length} problems`)
process.exit(problems.length > 0 ? 1 : 0)
