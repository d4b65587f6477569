/**
 * `local_write`: from calling `write` to the change being durable and visible here, one insert or update at a time, database in a folder, syncing on.
 * `initial_sync_node`: rows per second from opening to the last row applied, 10k and 100k tasks out of the fake server; all in one process, so the
 * server's own work is in it.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Replica } from './contract.ts'
import { createFakeServer, type FakeServer } from './testing/fake-server.ts'
import { openDatabase, openTestReplica, TENANT, until } from './testing/harness.ts'

export async function run(): Promise<
  Record<string, { value: number; unit: string; target: number; better: 'lower' | 'higher' }>
> {
  const writes = await localWrite()
  const small = await initialSync(10_000)
  const large = await initialSync(100_000)
  return {
    local_write: { value: round(writes.median), unit: 'ms, median', target: 2, better: 'lower' },
    local_write_p95: { value: round(writes.p95), unit: 'ms, p95', target: 20, better: 'lower' },
    initial_sync_node: { value: Math.round(large), unit: 'rows/s, 100k rows', target: 20_000, better: 'higher' },
    initial_sync_node_10k: { value: Math.round(small), unit: 'rows/s, 10k rows', target: 20_000, better: 'higher' },
  }
}

async function localWrite(): Promise<{ median: number; p95: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'hq-bench-'))
  const server = createFakeServer({ tenantId: TENANT })
  const replica = await openTestReplica(server, { db: await openDatabase(join(folder, 'db')) })
  try {
    await until(() => replica.status().initial.done)
    const times: number[] = []
    for (let index = 0; index < 600; index++) {
      const id = randomUUID()
      times.push(
        await timed(replica, `insert into tasks (id, tenant_id, title) values ($1, $2, 'bench')`, [id, TENANT]),
      )
      times.push(await timed(replica, `update tasks set title = 'changed' where id = $1`, [id]))
      // People and agents pause; without this the bench measures only how writes queue behind their own echoes.
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    times.sort((a, b) => a - b)
    return { median: times[Math.floor(times.length / 2)] ?? 0, p95: times[Math.floor(times.length * 0.95)] ?? 0 }
  } finally {
    await replica.close()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function timed(replica: Replica, sql: string, params: string[]): Promise<number> {
  const started = performance.now()
  await replica.write((tx) => tx.query(sql, params))
  return performance.now() - started
}

async function initialSync(rows: number): Promise<number> {
  const server = createFakeServer({ tenantId: TENANT })
  fill(server, rows)
  // In a folder, as on a gateway: the file system in memory grows its files by copying them, and that would be measured.
  const folder = mkdtempSync(join(tmpdir(), 'hq-bench-'))
  const db = await openDatabase(join(folder, 'db'))
  const started = performance.now()
  const replica = await openTestReplica(server, { db, tables: ['tasks'] })
  try {
    await until(() => replica.status().initial.done, `${rows} rows`, 300_000)
    return (rows / (performance.now() - started)) * 1000
  } finally {
    await replica.close()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function fill(server: FakeServer, rows: number): void {
  const words = 'plan the launch review copy with finance then ship it'.split(' ')
  const text = (index: number): string =>
    Array.from({ length: 12 }, (_, at) => words[(index + at * 7) % words.length]).join(' ')
  server.putMany(
    'tasks',
    Array.from({ length: rows }, (_, index) => ({
      id: randomUUID(),
      title: `Task ${index}: ${text(index).slice(0, 40)}`,
      description: text(index),
      status: index % 3 === 0 ? 'done' : 'todo',
      sort_order: String(index),
      tags: '{"one","two"}',
      created_by_type: 'human',
    })),
  )
}

const round = (value: number): number => Math.round(value * 100) / 100
