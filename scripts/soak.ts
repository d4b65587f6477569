/**
 * `npm run soak -- [--minutes N] [--replicas R]`: a real server under a long, mixed load, and the simulation beside it with fresh seeds.
 *
 * R replicas without databases (bench/support/load.ts) and two real Node replicas; writes without end through real replicas and over HTTP, sockets that are
 * cut, and shapes that are retired and taken anew because the log is short-lived here. The server's resident memory is sampled.
 *
 * Fails (exit code 1) when
 *  1. memory surely rises over the second half (two standard errors above `ALLOWED_MB_PER_HOUR`),
 *  2. a replica of either kind does not hold what the authority holds when writers have rested,
 *  3. a change was refused for another reason than that its row had been purged meanwhile, or the simulation found a violation.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Load, startLoad } from '../bench/support/load.ts'
import { residentMb, serverPid } from '../bench/support/memory.ts'
import { type BenchReplica, openBenchReplica } from '../bench/support/replicas.ts'
import { slopeOf } from '../bench/support/statistics.ts'
import { newId } from '../sync-server/database/ids.ts'
import { startSystem, taskPatch } from '../tests/support/system.ts'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '60' }, replicas: { type: 'string', default: '50' } },
})
const minutes = Number(values.minutes)
const count = Number(values.replicas)

/** A log that is pruned and snapshots that are taken anew within minutes. */
const SHORT_LIVED = { maintenanceMs: 5_000, retentionMs: 120_000, compactBytes: 200_000 }
const SAMPLE_MS = 5_000
const RECONNECT_MS = 3_000
const WRITE_MS = 100
/** Tasks at most: the database must not grow for ever, or memory might rightly. */
const TASKS = 3_000
const ALLOWED_MB_PER_HOUR = 20
const SETTLE_MS = 120_000

type System = Awaited<ReturnType<typeof startSystem>>

interface Sample {
  readonly minute: number
  readonly mb: number
}

async function soak(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'hq-soak-'))
  const simulation = simulate()
  const system = await startSystem({ env: { TEST_SHAPES: JSON.stringify(SHORT_LIVED) } })
  const replicas: BenchReplica[] = []
  let load: Load | undefined
  try {
    const people = [system.owner, await system.join('member'), await system.join('admin')]
    load = await startLoad(
      system.server.url,
      people.map((caller, n) => ({ caller, count: Math.floor(((n + 1) * count) / 3) - Math.floor((n * count) / 3) })),
      { keep: true },
    )
    for (const [n, caller] of people.slice(0, 2).entries())
      replicas.push(await openBenchReplica(system.server.url, caller, join(folder, String(n))))
    const samples = await run(system, load, replicas)
    const problems = [...memoryProblems(samples), ...(await convergenceProblems(system, load, replicas))]
    const simulated = await simulation.result
    if (simulated !== 0) problems.push(`the simulation ended with code ${simulated}; what it found stands above`)
    for (const problem of problems) console.error(`FAILED ${problem}`)
    if (problems.length === 0) console.log('All replicas hold what the authority holds; memory does not rise.')
    return problems.length > 0 ? 1 : 0
  } finally {
    simulation.stop()
    for (const replica of replicas) await replica.close()
    await load?.stop()
    await system.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

function simulate(): { readonly result: Promise<number>; stop(): void } {
  const script = join(import.meta.dirname, '../tests/simulation/sim.ts')
  const child = spawn(process.execPath, [script, '--minutes', String(minutes)], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const result = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? 1)))
  return { result, stop: () => void child.kill() }
}

/** The load itself, for as long as was asked. */
async function run(system: System, load: Load, replicas: readonly BenchReplica[]): Promise<Sample[]> {
  const pid = await serverPid(system.server.url)
  const stop = new AbortController()
  const end = Date.now() + minutes * 60_000
  const samples: Sample[] = []
  const parts = [
    ...replicas.map(({ replica }) => every(WRITE_MS, stop.signal, () => writeLocally(replica, system.tenantId))),
    every(WRITE_MS, stop.signal, pusher(system)),
    every(10_000, stop.signal, () => prune(system)),
    every(RECONNECT_MS, stop.signal, async () => load.reconnect(2)),
    every(SAMPLE_MS, stop.signal, async () => {
      samples.push({ minute: (minutes * 60_000 - (end - Date.now())) / 60_000, mb: await residentMb(pid) })
    }),
  ]
  // The first part that fails ends the run.
  const failed = Promise.all(parts)
  await Promise.race([failed, sleep(minutes * 60_000)])
  stop.abort()
  await failed
  return samples
}

async function every(ms: number, signal: AbortSignal, work: () => Promise<unknown>): Promise<void> {
  while (!signal.aborted) {
    await work()
    await sleep(ms * (0.5 + Math.random()), undefined, { signal }).catch(() => undefined) // aborted: the loop ends
  }
}

async function writeLocally({ write, query }: BenchReplica['replica'], tenantId: string): Promise<void> {
  const [known] = await query<{ id: string }>('select id from tasks where deleted_at is null order by random() limit 1')
  const dice = Math.random()
  if (!known || dice < 0.4)
    await write((tx) =>
      tx.query('insert into tasks (id, tenant_id, title) values ($1, $2, $3)', [newId(), tenantId, `Soak ${dice}`]),
    )
  else if (dice < 0.9)
    await write((tx) => tx.query('update tasks set title = $2 where id = $1', [known.id, `Soak ${dice}`]))
  else await write((tx) => tx.query('delete from tasks where id = $1', [known.id]))
}

function pusher(system: System): () => Promise<void> {
  const writer = system.writer()
  return () => writer.apply(...Array.from({ length: 5 }, () => [taskPatch(system, `Pushed ${Math.random()}`)]))
}

/** What is too much goes for good, as a purge of the server does it. */
const prune = (system: System): Promise<unknown> =>
  Promise.all(
    ['tasks', 'audit_log', 'conflicts'].map((table) =>
      system.rows(
        `delete from ${table} where id in (select id from ${table} order by updated_at desc offset ${TASKS})`,
      ),
    ),
  )

function memoryProblems(samples: readonly Sample[]): string[] {
  const step = Math.max(1, Math.floor(samples.length / 12))
  const rows = samples.filter((_, index) => index % step === 0 || index === samples.length - 1)
  console.table(rows.map(({ minute, mb }) => ({ minute: minute.toFixed(1), 'server MB': mb.toFixed(0) })))
  const half = samples.slice(Math.floor(samples.length / 2))
  const { value, least } = slopeOf(half.map(({ minute, mb }) => [minute / 60, mb]))
  const load = loadavg().map((average) => average.toFixed(2))
  console.log(
    `second half: ${value.toFixed(1)} MB/h, surely at least ${least.toFixed(1)} · load average ${load.join(' ')}`,
  )
  return least > ALLOWED_MB_PER_HOUR ? [`the server's memory rises by ${value.toFixed(1)} MB an hour`] : []
}

async function convergenceProblems(system: System, load: Load, replicas: readonly BenchReplica[]): Promise<string[]> {
  const tables = ['tasks', 'audit_log', 'people']
  const end = Date.now() + SETTLE_MS
  for (;;) {
    const problems: string[] = []
    const { held, refused, connected } = await load.report()
    for (const table of tables) {
      const expected = await system.rows<{ id: string; updated_at: string }>(
        `select id::text, updated_at::text from ${table} order by id`,
      )
      const wrong = held.filter(
        (tablesHeld) => tablesHeld[table]?.rows !== expected.length || tablesHeld[table]?.digest !== digestOf(expected),
      )
      if (wrong.length > 0) problems.push(`${wrong.length} of ${held.length} loaded replicas differ in ${table}`)
      for (const [n, { replica }] of replicas.entries()) {
        const here = await replica.query<{ id: string; updated_at: string }>(
          `select id::text, updated_at::text from ${table} order by id`,
        )
        if (digestOf(here) !== digestOf(expected))
          problems.push(`replica ${n} differs in ${table}: ${here.length} rows, ${expected.length} there`)
      }
    }
    for (const [n, { replica }] of replicas.entries()) {
      const { pending } = replica.status()
      if (pending > 0) problems.push(`replica ${n} has ${pending} changes waiting`)
      for (const { rejection } of await replica.outbox()) {
        if (rejection && rejection.code !== 'missing_row')
          problems.push(`replica ${n} was refused: ${rejection.message}`)
      }
    }
    if (connected < held.length) problems.push(`${held.length - connected} loaded replicas are not connected`)
    if (Object.keys(refused).length > 0) console.log('answers other than rows:', refused)
    if (problems.length === 0 || Date.now() > end) return problems
    await sleep(2_000)
  }
}

/** As `load-generator.ts` does it; Postgres, PGlite and the wire all print times in UTC. */
function digestOf(rows: readonly { readonly id: string; readonly updated_at: string }[]): string {
  const lines = rows.map(({ id, updated_at }) => `${id} ${updated_at}`).sort()
  return createHash('md5').update(lines.join('\n')).digest('hex')
}

process.exitCode = await soak()
