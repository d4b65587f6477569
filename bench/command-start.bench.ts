/**
 * `command_start`: from inserting a command in one replica to its gateway's runner having begun it, by the clock of this machine; a real gateway process, a
 * real server, embedded Postgres. `gateway_first_rss`: the gateway's resident memory after that, when it has nothing to do; it was just installed, and has
 * unpacked its database. `gateway_idle_rss`: the same after a restart, as it is for months.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startWorkspace } from '../sync-server/testing/workspace.ts'
import type { Measurement } from './run.ts'
import { openBenchReplica, quantile, until } from './support/replicas.ts'

const COMMANDS = 60
const IDLE_MS = 8_000
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
    const times: number[] = []
    for (let n = 0; n < COMMANDS + 5; n++) {
      const id = randomUUID()
      const inserted = Date.now()
      await replica.write((tx) =>
        tx.query("insert into agent_commands (id, tenant_id, gateway_id, action) values ($1, $2, $3, 'list_models')", [
          id,
          workspace.tenantId,
          row?.id ?? null,
        ]),
      )
      const finished = () =>
        replica.query<{ started_at: string }>(
          "select started_at from agent_commands where id = $1 and status in ('done', 'failed')",
          [id],
        )
      await until(replica, async () => (await finished()).length > 0)
      const [command] = await finished()
      if (n >= 5 && command) times.push(Date.parse(command.started_at) - inserted)
    }
    await sleep(IDLE_MS)
    const first = await residentMb(gateway.pid)
    gateway.kill('SIGTERM')
    await once(gateway, 'exit')
    gateway = start()
    const before = Date.now()
    await until(replica, async () => {
      const [seen] = await replica.query<{ at: string }>('select last_seen_at as at from gateways')
      return seen !== undefined && Date.parse(seen.at) > before
    })
    await sleep(IDLE_MS)
    return {
      command_start: { value: quantile(times, 0.5), unit: 'ms, p50', target: 50, better: 'lower' },
      gateway_first_rss: { value: first, unit: 'MB, just installed', target: 400, better: 'lower' },
      gateway_idle_rss: { value: await residentMb(gateway.pid), unit: 'MB', target: 300, better: 'lower' },
    }
  } finally {
    gateway.kill('SIGTERM')
    await person.close()
    await workspace.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function residentMb(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / 1024
}
