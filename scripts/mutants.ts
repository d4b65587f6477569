// biome-ignore-all lint/suspicious/noTemplateCurlyInString: code is quoted as it stands
/**
 * `npm run mutants`: takes away one rule of the sync core at a time and shows that a test notices. Exits 1 when one goes unnoticed.
 *
 * Each mutant is one replacement in one file of a copy of the sources; the copy borrows the installed packages. `npm run mutants -- R1 W5` runs some.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'

interface Mutant {
  readonly id: string
  /** What is taken away. */
  readonly rule: string
  readonly file: string
  readonly find: string
  readonly replace: string
  /** `simulation`, or the test file that must notice. */
  readonly by: string
}

const PULL = 'shared/sync/core/pull.ts'
const PUSH = 'shared/sync/core/push.ts'
const SETTLE = 'shared/sync/core/settle.ts'
const OVERLAY = 'shared/sync/core/overlay.ts'
const ATTACH = 'shared/sync/attach.ts'
const SEQUENCE = 'sync-server/mutations/sequence.ts'

export const MUTANTS: readonly Mutant[] = [
  {
    id: 'R1',
    rule: 'the stored place is that of the last message applied',
    file: PULL,
    find: 'offset = `${lsn}_${op ?? 0}`',
    replace: 'offset = `${BigInt(lsn) + 20n}_0`',
    by: 'simulation',
  },
  {
    id: 'R1-snapshot',
    rule: 'a part of a snapshot carries no place',
    file: PULL,
    find: "effects.push({ type: state.staging ? 'stage' : 'load', rows: rows.slice(start, start + ROWS_PER_TRANSACTION) })",
    replace:
      "effects.push({ type: 'apply', upserts: rows.slice(start, start + ROWS_PER_TRANSACTION), deletes: [], place: { handle, offset: '0_inf', position: state.position }, ack: undefined })",
    by: 'simulation',
  },
  {
    id: 'R2',
    rule: 'a row that is there already is updated, not an error',
    file: ATTACH,
    find: "const upsert = `on conflict (id) do update set ${assignments.join(', ')} where (t.*) is distinct from (excluded.*)`",
    replace: "const upsert = assignments.length < 0 ? '' : ''",
    by: 'shared/sync/apply.test.ts',
  },
  {
    id: 'R3',
    rule: 'a failed batch ends the stream, which is read again from the stored place',
    file: PULL,
    find: "return state.status === 'streaming' ? failed(state, event) : step(state)",
    replace: 'return step(state)',
    by: 'simulation',
  },
  {
    id: 'R4',
    rule: 'no refusal ends a stream for good',
    file: PULL,
    find: "if (status === 401) return step(state, { type: 'set_unauthorized' }, { type: 'wait_for_rights' })",
    replace: "if (status === 401) return step({ ...state, status: 'stopped' })",
    by: 'simulation',
  },
  {
    id: 'R5',
    rule: 'nothing but the primary key restrains a row of a replica',
    file: 'migrations/0002_replica.sql',
    find: 'create view sync.row_states as',
    replace: 'create unique index streams_name_too on streams (name);\ncreate view sync.row_states as',
    by: 'shared/sync/apply.test.ts',
  },
  {
    id: 'R6',
    rule: 'a refetch is staged and swapped',
    file: PULL,
    find: "phase: 'snapshot', staging: true, staged: false, snapshotAck: undefined, position: 0n }",
    replace: "phase: 'snapshot', staging: false, staged: false, snapshotAck: undefined, position: 0n }",
    by: 'simulation',
  },
  {
    id: 'R6-fold',
    rule: 'a swap leaves pending changes on top',
    file: OVERLAY,
    find: 'if (key.startsWith(prefix)) show(rows, key, fold(row ?? undefined, livePatches(state, key), state.differences))',
    replace: 'if (key.startsWith(prefix)) show(rows, key, row ?? undefined)',
    by: 'simulation',
  },
  {
    id: 'R7',
    rule: 'values are the text that Postgres printed',
    file: 'shared/sync/copy.ts',
    find: "const ESCAPES: Readonly<Record<string, string>> = { '\\\\': '\\\\\\\\',",
    replace: "const ESCAPES: Readonly<Record<string, string>> = { '\\\\': '\\\\',",
    by: 'shared/sync/apply.test.ts',
  },
  {
    id: 'O5',
    rule: 'what the server sends goes below pending changes',
    file: OVERLAY,
    find: 'show(rows, key, fold(row ?? undefined, livePatches(state, key), state.differences))\n    } else',
    replace: 'show(rows, key, row ?? undefined)\n    } else',
    by: 'simulation',
  },
  {
    id: 'O7',
    rule: 'acknowledgements fetched anew replace what was known',
    file: OVERLAY,
    find: "table === 'client_progress' && place?.offset === '0_inf'",
    replace: "table === 'client_progress' && place?.offset === 'never'",
    by: 'simulation',
  },
  {
    id: 'W2',
    rule: 'what lies beyond the batch is not taken for accepted',
    file: PUSH,
    find: 'const ours = Math.min(upto, state.first + state.count - 1)',
    replace: 'const ours = upto',
    by: 'simulation',
  },
  {
    id: 'E7',
    rule: 'an acknowledgement counts only in the log that the shapes are in',
    file: SETTLE,
    find: 'const needed = [...tables, PROGRESS_TABLE, ...(applied ? [] : [RESULTS_TABLE])]',
    replace: 'const needed = [...tables, ...(applied ? [] : [RESULTS_TABLE])]',
    by: 'shared/sync/core/settle.test.ts',
  },
  {
    id: 'E7-first',
    rule: 'the first answer of a table may be of another log',
    file: PULL,
    find: "if (state.handle === undefined && state.phase === 'snapshot') effects.push({ type: 'started_over' })",
    replace: '',
    by: 'shared/sync/core/pull.test.ts',
  },
  {
    id: 'W3',
    rule: 'what the server never took is sent again',
    file: PUSH,
    find: "{ type: 'realign', replicaId: state.replicaId, expected }",
    replace: "{ type: 'realign', replicaId: state.replicaId, expected: expected + 1 }",
    by: 'simulation',
  },
  {
    id: 'W3-copy',
    rule: 'a copy takes a new identity',
    file: PUSH,
    find: "if (code === 'identity_taken') return renew(state, 'another copy of this database has used its numbers')",
    replace: "if (code === 'identity_taken') return retry(state, code)",
    by: 'shared/sync/core/push.test.ts',
  },
  {
    id: 'W5',
    rule: 'what was asked under a former identity marks nothing',
    file: PUSH,
    find: 'return event.replicaId === state.replicaId ? looked(state, event, most) : read(state)',
    replace: "return looked({ ...state, question: state.question ?? { about: 'expected', expected: 1 } }, event, most)",
    by: 'shared/sync/core/push.test.ts',
  },
  {
    id: 'E1',
    rule: 'a mutation ends only when the shapes that it touched have passed it',
    file: SETTLE,
    find: 'return position !== undefined && position < lsn',
    replace: 'return position === undefined && lsn < 0n',
    by: 'simulation',
  },
  {
    id: 'E6',
    rule: 'acknowledgements from before a restore count no more',
    file: SETTLE,
    find: 'acks: [],\n        positions: zeroed(positions),',
    replace: 'acks,',
    by: 'simulation',
  },
  {
    id: 'I3',
    rule: 'an acknowledgement of a mutation that was never made here is somebody else’s',
    file: 'shared/sync/core/identity.ts',
    find: 'if (ack.seq >= next) return',
    replace: 'if (ack.seq >= next + 1_000_000) return',
    by: 'simulation',
  },
  {
    id: 'S1',
    rule: 'the server takes numbers without gaps only',
    file: SEQUENCE,
    find: 'if (seq !== expected || seq < 1)',
    replace: 'if (seq < 1 && expected < 0)',
    by: 'simulation',
  },
  {
    id: 'S2',
    rule: 'a repeat is the mutation that was taken under its number',
    file: SEQUENCE,
    find: 'taken.get(seq) !== mutationId)',
    replace: "taken.get(seq) === 'never' && mutationId === '')",
    by: 'simulation',
  },
  {
    id: 'S2-repeat',
    rule: 'a repeat has no second effect',
    file: SEQUENCE,
    find: 'fresh: items.filter(({ seq }) => seq > last),',
    replace: 'fresh: items,',
    by: 'simulation',
  },
  {
    id: 'H3',
    rule: 'a clock too far ahead is clamped',
    file: 'sync-server/mutations/plan.ts',
    find: 'const h = clampHlc(mutation.hlc, context.now, LIMITS.clockDriftMs)',
    replace: 'const h = clampHlc(mutation.hlc, context.now, LIMITS.clockDriftMs * 1e6)',
    by: 'simulation',
  },
  {
    id: 'M2',
    rule: 'the loser of a conflict is kept',
    file: 'sync-server/mutations/merge.ts',
    find: "if (spec.merge !== 'last') conflicts.push(conflict)",
    replace: "if (spec.merge !== 'last' && !conflict.incomingLost) conflicts.push(conflict)",
    by: 'simulation',
  },
]

const SIMULATED_RUNS = 600
const FIRST_SEED = 1
const root = fileURLToPath(new URL('..', import.meta.url))
const COPIED = ['shared', 'sync-server', 'gateway-node', 'client', 'tests', 'migrations', 'scripts', 'templates']

const wanted = process.argv.slice(2)
const chosen = MUTANTS.filter(({ id }) => wanted.length === 0 || wanted.includes(id))
const folder = mkdtempSync(join(tmpdir(), 'hq-mutants-'))
let unnoticed = 0
try {
  copySources(folder)
  // A test that fails without any mutant would notice everything.
  for (const by of new Set(chosen.map((mutant) => mutant.by))) {
    const failure = judge(by, 20)
    if (failure) throw new Error(`${by} fails without any mutant: ${failure}`)
  }
  for (const mutant of chosen) {
    const started = Date.now()
    const noticed = run(mutant)
    if (!noticed) unnoticed++
    const seconds = ((Date.now() - started) / 1000).toFixed(0)
    console.log(
      `${noticed ? 'noticed  ' : 'UNNOTICED'} ${mutant.id.padEnd(12)} ${seconds.padStart(4)} s  ${mutant.rule}`,
    )
    if (noticed) console.log(`             ${noticed}`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`${chosen.length - unnoticed} of ${chosen.length} mutants were noticed.`)
process.exit(unnoticed > 0 ? 1 : 0)

/** Sources are copied, packages are linked; the links of our own packages lead into the copy. */
function copySources(to: string): void {
  const own = new Set(['shared', 'sync-server', 'gateway-node', 'client'])
  for (const name of [...COPIED, 'package.json', 'tsconfig.json', 'tsconfig.base.json', 'vitest.config.ts']) {
    cpSync(join(root, name), join(to, name), {
      recursive: true,
      filter: (path) => !/\/(node_modules|dist|\.output)(\/|$)/.test(path.slice(root.length - 1)),
    })
  }
  mkdirSync(join(to, 'node_modules', '@hq'), { recursive: true })
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name !== '@hq') symlinkSync(join(root, 'node_modules', name), join(to, 'node_modules', name))
  }
  for (const name of own) symlinkSync(join(to, name), join(to, 'node_modules', '@hq', name))
}

/** What noticed it; undefined: nothing did. */
function run({ id, file, find, replace, by }: Mutant): string | undefined {
  const path = join(folder, file)
  const original = readFileSync(path, 'utf8')
  if (original.split(find).length !== 2) throw new Error(`${id}: '${find}' must stand in ${file} exactly once.`)
  writeFileSync(
    path,
    original.replace(find, () => replace),
  )
  try {
    return judge(by, SIMULATED_RUNS)
  } finally {
    writeFileSync(path, original)
  }
}

/** What failed; undefined: all is well. */
function judge(by: string, runs: number): string | undefined {
  const command =
    by === 'simulation'
      ? ['tests/simulation/sim.ts', '--seed', String(FIRST_SEED), '--runs', String(runs), '--no-keep', '--no-shrink']
      : ['node_modules/vitest/vitest.mjs', 'run', '--project', 'unit', '--bail', '1', by]
  const { status, stdout, stderr } = spawnSync(process.execPath, command, {
    cwd: folder,
    encoding: 'utf8',
    timeout: 600_000,
  })
  if (status === 0) return undefined
  const said = `${stderr}\n${stdout}`.split('\n').find((line) => /^seed |FAIL|Error/.test(line)) ?? `exit ${status}`
  return stripVTControlCharacters(said).trim().slice(0, 150)
}
