/**
 * `month_offline`: a replica with 10,000 changes of its own comes back to a server that has had 50,000 others, after the month that the change log does not
 * go back: from opening its database to everything being applied and acknowledged. A Node replica, a real server, a real network stack.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId } from '../sync-server/database/ids.ts'
import { startSystem } from '../tests/support/system.ts'
import type { Measurement } from './run.ts'
import { openBenchReplica, until } from './support/replicas.ts'

const KNOWN = 5_000
const REMOTE = 50_000
const OWN = 10_000
const UNREACHABLE = 'http://127.0.0.1:9'

export async function run(): Promise<Record<string, Measurement>> {
  const folder = await mkdtemp(join(tmpdir(), 'hq-bench-'))
  const system = await startSystem()
  try {
    const { tenantId } = system
    await system.rows(
      `insert into tasks (id, tenant_id, title, sort_order) select gen_random_uuid(), $1, 'Known ' || n, n from generate_series(1, $2::int) n`,
      [tenantId, KNOWN],
    )
    await (await openBenchReplica(system.server.url, system.owner, folder)).close()

    const away = await openBenchReplica(UNREACHABLE, system.owner, folder)
    for (let made = 0; made < OWN; made += 2) {
      const id = newId()
      await away.replica.write((tx) =>
        tx.query('insert into tasks (id, tenant_id, title) values ($1, $2, $3)', [id, tenantId, `Own ${made}`]),
      )
      await away.replica.write((tx) => tx.query(`update tasks set status = 'done' where id = $1`, [id]))
    }
    await away.close()
    await system.rows(
      `insert into tasks (id, tenant_id, title, sort_order) select gen_random_uuid(), $1, 'Meanwhile ' || n, n from generate_series(1, $2::int) n`,
      [tenantId, REMOTE - KNOWN],
    )
    await system.rows(`update tasks set priority = 'high', updated_at = now() where title like 'Known %'`)
    // The log does not go back so far: what the replica held must be fetched anew.
    await system.server.kill()
    await system.server.start({
      TEST_SHAPES: JSON.stringify({ maintenanceMs: 100, retentionMs: 1, compactBytes: 1_000 }),
    })
    await new Promise((resolve) => setTimeout(resolve, 5_000))
    // A server that takes every snapshot anew ten times a second would be measured otherwise.
    await system.server.kill()
    await system.server.start({ TEST_SHAPES: '' })

    const began = performance.now()
    const back = await openBenchReplica(system.server.url, system.owner, folder)
    try {
      await until(back.replica, async () => {
        if (back.replica.status().pending > 0) return false
        const [row] = await back.replica.query<{ n: number }>(`select count(*)::int as n from tasks`)
        return row?.n === REMOTE + OWN / 2
      })
      const seconds = (performance.now() - began) / 1_000
      const [there] = await system.rows<{ n: number }>(`select count(*)::int as n from tasks where status = 'done'`)
      if (there?.n !== OWN / 2) throw new Error(`the server has ${there?.n} of ${OWN / 2} own tasks`)
      if (back.replica.status().rejected > 0) throw new Error(`${back.replica.status().rejected} were refused`)
      return {
        month_offline: { value: seconds, unit: 's, 50k remote and 10k own changes', target: 60, better: 'lower' },
      }
    } finally {
      await back.close()
    }
  } finally {
    await system.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) console.log(await run())
