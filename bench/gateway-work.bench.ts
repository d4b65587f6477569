/**
 * What a gateway gets done; a real gateway process, a real server, embedded Postgres. `commands_drain`: commands with hardly any work in them (the models of
 * the demo model are listed) that had gathered while it was away, from the start of the first to the end of the last. `provision`: from inserting the command in
 * another replica to the agent being ready there, without OpenClaw; median of ten.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startWorkspace } from '../sync-server/testing/workspace.ts'
import type { Measurement } from './run.ts'
import { openBenchReplica, quantile, until } from './support/replicas.ts'

const COMMANDS = 500
const AGENTS = 10
const main = fileURLToPath(new URL('../gateway-node/main.ts', import.meta.url))

export async function run(): Promise<Record<string, Measurement>> {
  const folder = await mkdtemp(join(tmpdir(), 'hq-bench-'))
  const workspace = await startWorkspace()
  const start = () =>
    spawn(process.execPath, [main], {
      stdio: 'ignore',
      // The server left a registration for its local gateway in its home.
      env: { ...process.env, HQ_HOME: workspace.home, HQ_SERVER_URL: workspace.url },
    })
  let gateway = start()
  const person = await openBenchReplica(workspace.url, workspace.owner, join(folder, 'person'))
  const { replica } = person
  try {
    await until(replica, async () => (await replica.query("select 1 from gateways where status = 'ready'")).length > 0)
    const [row] = await replica.query<{ id: string }>('select id from gateways')
    const id = row?.id ?? ''
    const times: number[] = []
    for (let n = 0; n < AGENTS; n++) times.push(await provision(replica, workspace.tenantId, id, `agent-${n}`))
    gateway.kill('SIGTERM')
    await once(gateway, 'exit')
    await replica.write((tx) =>
      tx.query(
        `insert into agent_commands (id, tenant_id, gateway_id, action) select gen_random_uuid(), $1, $2, 'list_models' from generate_series(1, $3::int)`,
        [workspace.tenantId, id, COMMANDS],
      ),
    )
    gateway = start()
    const left = "select count(*)::int as n from agent_commands where action = 'list_models' and status <> 'done'"
    await until(replica, async () => (await replica.query<{ n: number }>(left))[0]?.n === 0)
    const [span] = await replica.query<{ ms: number }>(
      `select extract(epoch from max(completed_at) - min(started_at))::float8 * 1000 as ms from agent_commands where action = 'list_models'`,
    )
    return {
      commands_drain: {
        value: (COMMANDS * 1_000) / (span?.ms ?? Number.NaN),
        unit: 'commands/s',
        target: 50,
        better: 'higher',
      },
      provision: { value: quantile(times, 0.5), unit: 'ms, p50', target: 3_000, better: 'lower' },
    }
  } finally {
    gateway.kill('SIGTERM')
    await person.close()
    await workspace.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

type BenchReplica = Awaited<ReturnType<typeof openBenchReplica>>['replica']

async function provision(replica: BenchReplica, tenantId: string, gatewayId: string, slug: string): Promise<number> {
  const [agent, command] = [randomUUID(), randomUUID()]
  const begun = performance.now()
  await replica.write(async (tx) => {
    await tx.query(
      `insert into agents (id, tenant_id, gateway_id, name, slug, meta) values ($1, $2, $3, $4, $4, '{"template": "writer"}')`,
      [agent, tenantId, gatewayId, slug],
    )
    await tx.query(
      `insert into agent_commands (id, tenant_id, gateway_id, agent_id, action) values ($1, $2, $3, $4, 'provision')`,
      [command, tenantId, gatewayId, agent],
    )
  })
  const ready = () => replica.query(`select 1 from agents where id = $1 and status = 'ready'`, [agent])
  await until(replica, async () => (await ready()).length > 0)
  return performance.now() - begun
}
