/** A shape of 100,000 rows read from the start over HTTP: cold (snapshot taken) and warm (snapshot stored). */
import pg from 'pg'
import type { Measure } from './shape-live.bench.ts'
import { createPollClient } from './testing/poll.ts'
import { startTestPostgres } from './testing/postgres.ts'
import { startTestServer } from './testing/server.ts'

export const run = async (): Promise<Record<string, Measure>> => {
  const postgres = await startTestPostgres()
  try {
    const database = new pg.Client({ connectionString: postgres.url })
    await database.connect()
    await database.query(`create table task (id uuid primary key, tenant_id uuid not null, title text, status text, priority int,
      points int8, done boolean, due timestamptz, body text, updated_at timestamptz not null default now())`)
    await database.query(`insert into task select gen_random_uuid(), gen_random_uuid(), 'Task number ' || n, 'open', n % 5, n, n % 2 = 0,
      now(), 'A few words about the task, as people write them: ' || n from generate_series(1, 100000) n`)
    await database.end()
    const server = await startTestServer(postgres.url)
    try {
      const cold = await read(server.url)
      const warm = Math.min(await read(server.url), await read(server.url), await read(server.url))
      return {
        shape_100k: { value: Math.round(warm), unit: 'ms, 100,000 rows raw, warm', target: 1000, better: 'lower' },
        shape_100k_cold: { value: Math.round(cold), unit: 'ms, 100,000 rows raw, cold', target: 5000, better: 'lower' },
      }
    } finally {
      await server.stop()
    }
  } finally {
    await postgres.stop()
  }
}

const read = async (url: string): Promise<number> => {
  const client = createPollClient(url, { table: 'task' })
  try {
    const begun = performance.now()
    let bytes = 0
    for (let requests = 0; ; requests++) {
      const reply = await client.next({}, false)
      if (reply.status !== 200) throw new Error(`expected 200, got ${reply.status}`)
      bytes += reply.bytes
      // The reply after the last chunk holds up-to-date alone.
      if (reply.bytes < 1000) break
      if (requests > 100) throw new Error('the snapshot does not end')
    }
    if (bytes < 20_000_000) throw new Error(`only ${bytes} bytes came`)
    return performance.now() - begun
  } finally {
    client.close()
  }
}

if (import.meta.main) console.log(await run())
