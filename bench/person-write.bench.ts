/**
 * `person_write`: what a person waits for when they change something, 25 ms away from the server in each direction: a write to the replica, durable and
 * visible, while it syncs over that network. Beside it, in the same run, what they would wait for without a replica: one plain REST request that inserts the
 * same row into the same Postgres and answers, on a connection that is open already.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startProxy } from '../tests/support/proxy.ts'
import { startSystem } from '../tests/support/system.ts'
import type { Measurement } from './run.ts'
import { openBenchReplica, quantile } from './support/replicas.ts'

const ONE_WAY_MS = 25
const WRITES = 200
const PAUSE_MS = 20

export async function run(): Promise<Record<string, Measurement>> {
  const folder = await mkdtemp(join(tmpdir(), 'hq-bench-'))
  const system = await startSystem()
  const network = await startProxy(() => Number(new URL(system.server.url).port))
  const rest = await startRest(system.server.postgres.url, system.tenantId)
  const restNetwork = await startProxy(() => rest.port)
  try {
    network.delay(ONE_WAY_MS)
    restNetwork.delay(ONE_WAY_MS)
    const { replica, close } = await openBenchReplica(network.url, system.owner, folder)
    const ours = await timesOf(() =>
      replica.write((tx) =>
        tx.query('insert into tasks (id, tenant_id, title) values ($1, $2, $3)', [
          randomUUID(),
          system.tenantId,
          'mine',
        ]),
      ),
    )
    await close()
    const theirs = await timesOf(async () => {
      const body = JSON.stringify({ id: randomUUID(), title: 'mine' })
      const response = await fetch(`${restNetwork.url}/tasks`, { method: 'POST', body })
      if (!response.ok) throw new Error(`the plain server said ${response.status}: ${await response.text()}`)
      await response.json()
    })
    return {
      person_write: {
        value: quantile(ours, 0.5),
        unit: 'ms, median, server 50 ms away',
        target: 5,
        better: 'lower',
        peer: { name: 'REST round trip', value: quantile(theirs, 0.5) },
      },
    }
  } finally {
    await restNetwork.close()
    await rest.close()
    await network.close()
    await system.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function timesOf(write: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < WRITES; n++) {
    const began = performance.now()
    await write()
    times.push(performance.now() - began)
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  return times
}

/** As little as a server can do for a task. */
async function startRest(databaseUrl: string, tenantId: string): Promise<{ port: number; close(): Promise<void> }> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
  const insert = async (text: string): Promise<unknown> => {
    const { id, title } = JSON.parse(text) as { id: string; title: string }
    const { rows } = await pool.query('insert into tasks (id, tenant_id, title) values ($1, $2, $3) returning *', [
      id,
      tenantId,
      title,
    ])
    return rows[0]
  }
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => (text += String(chunk)))
    request.on('end', () => {
      insert(text).then(
        (row) => response.end(JSON.stringify(row)),
        (error: unknown) => response.writeHead(500).end(String(error)),
      )
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections()
      server.close()
      await pool.end()
    },
  }
}

if (import.meta.main) console.log(await run())
