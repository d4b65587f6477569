/**
 * `initial_sync_real`: rows a second from opening an empty replica to the first load being done, 50,000 tasks of a real server over the WebSocket, all tables,
 * Node, database in a folder. Beside it `@electric-sql/pglite-sync` against the same server, over plain HTTP (it has nothing else), one table, in a process of its own. It is
 * installed for the run into a temporary folder; where no registry can be reached there is no peer.
 */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startSystem } from '../tests/support/system.ts'
import type { Measurement } from './run.ts'
import { openBenchReplica } from './support/replicas.ts'

const ROWS = 50_000
const PEER = ['@electric-sql/pglite-sync@0.6.1', '@electric-sql/pglite@0.5.1']
const run_ = promisify(execFile)

export async function run(): Promise<Record<string, Measurement>> {
  const folder = await mkdtemp(join(tmpdir(), 'hq-bench-'))
  const system = await startSystem()
  try {
    await system.rows(
      `insert into tasks (id, tenant_id, title, description, sort_order)
       select gen_random_uuid(), $1, 'Task ' || n, repeat('What is to be done. ', 4), n from generate_series(1, $2::int) n`,
      [system.tenantId, ROWS],
    )
    // The snapshot is there for both.
    const warm = new URLSearchParams({ table: 'tasks', replica: 'full', replica_id: randomUUID(), offset: '-1' })
    await (await system.request(system.owner, `/v1/shape?${warm}`)).text()
    // Unpacking the shipped database is `first_open`; the peer's clock begins after it too.
    await (await openBenchReplica('http://127.0.0.1:9', system.owner, folder, { empty: true })).close()
    const began = performance.now()
    const replica = await openBenchReplica(system.server.url, system.owner, folder)
    const ours = (ROWS / (performance.now() - began)) * 1_000
    await replica.close()
    const theirs = await peer(system.server.url, system.owner.headers, join(folder, 'peer')).catch((error: Error) => {
      console.log(`no peer for the initial sync: ${error.message.split('\n')[0]}`)
      return undefined
    })
    return {
      initial_sync_real: {
        value: Math.round(ours),
        unit: 'rows/s, 50k rows, real server',
        target: 20_000,
        better: 'higher',
        ...(theirs !== undefined && { peer: { name: 'pglite-sync', value: theirs } }),
      },
    }
  } finally {
    await system.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function peer(url: string, headers: Readonly<Record<string, string>>, folder: string): Promise<number> {
  await cp(join(import.meta.dirname, 'support/pglite-sync-peer.mjs'), join(folder, 'peer.mjs'))
  await writeFile(join(folder, 'package.json'), '{"private":true,"type":"module"}')
  await run_('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...PEER], {
    cwd: folder,
    timeout: 90_000,
  })
  const asked = JSON.stringify({ url: `${url}/v1/shape`, headers, replicaId: randomUUID(), rows: ROWS })
  const { stdout } = await run_(process.execPath, ['peer.mjs', asked], { cwd: folder, timeout: 180_000 })
  const rate = Number(stdout.trim().split('\n').at(-1))
  if (!(rate > 0)) throw new Error(`it printed ${stdout}`)
  return rate
}

if (import.meta.main) console.log(await run())
