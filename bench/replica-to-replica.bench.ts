/**
 * `replica_to_replica`: from calling `write` in one replica to the row being applied in another, both PGlite in folders, over a real server with
 * an embedded Postgres, on this machine. One write at a time.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startWorkspace } from '../sync-server/testing/workspace.ts'
import type { Measurement } from './run.ts'
import { openBenchReplica, quantile } from './support/replicas.ts'

const WRITES = 300

export async function run(): Promise<Record<string, Measurement>> {
  const folder = await mkdtemp(join(tmpdir(), 'hq-bench-'))
  const workspace = await startWorkspace()
  const here = await openBenchReplica(workspace.url, workspace.owner, join(folder, 'a'))
  const there = await openBenchReplica(workspace.url, await workspace.join('member'), join(folder, 'b'))
  try {
    const times: number[] = []
    for (let n = 0; n < WRITES + 20; n++) {
      const id = randomUUID()
      const arrived = new Promise<void>((resolve) => {
        const end = there.replica.onChange((changes) => {
          const rows = changes.get('tasks')
          if (rows === undefined || (rows !== 'many' && !rows.has(id))) return
          end()
          resolve()
        })
      })
      const started = performance.now()
      await here.replica.write((tx) =>
        tx.query('insert into tasks (id, tenant_id, title) values ($1, $2, $3)', [id, workspace.tenantId, `Task ${n}`]),
      )
      await arrived
      if (n >= 20) times.push(performance.now() - started)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return {
      replica_to_replica: { value: quantile(times, 0.5), unit: 'ms, p50', target: 15, better: 'lower' },
      replica_to_replica_p99: { value: quantile(times, 0.99), unit: 'ms, p99', target: 100, better: 'lower' },
    }
  } finally {
    await here.close()
    await there.close()
    await workspace.stop()
    await rm(folder, { recursive: true, force: true })
  }
}
