/**
 * `fanout_1000`: a thousand replicas are connected over WebSockets, each with all shapes of its kind; from a person's push to the moment at which the last of
 * them (p99) was sent the change. People and gateways, many devices each; the load comes from a process of its own.
 * `server_rss`: the server's resident memory then. `server_rss_rest`: the same server before anybody came.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { newGatewayIdentity } from '@hq/sync-server/testing/workspace.ts'
import { startSystem, taskPatch } from '../tests/support/system.ts'
import type { Measurement } from './run.ts'
import { startLoad } from './support/load.ts'
import { residentMb, serverPid } from './support/memory.ts'
import { quantile } from './support/replicas.ts'

const REPLICAS = 1_000
const GATEWAYS = 10
const PEOPLE = 30
const ROUNDS = 10

export async function run(): Promise<Record<string, Measurement>> {
  const system = await startSystem()
  try {
    const pid = await serverPid(system.server.url)
    const people = [system.owner]
    while (people.length < PEOPLE) people.push(await system.join(people.length % 3 === 0 ? 'viewer' : 'member'))
    const gateways = []
    for (let n = 0; n < GATEWAYS; n++) gateways.push(await registered(system, `gateway-${n}`))
    await system.rows(
      `insert into tasks (id, tenant_id, title, sort_order) select uuidv7(), $1, 'Task ' || n, n from generate_series(1, 2000) n`,
      [system.tenantId],
    )
    await sleep(3_000)
    const atRest = await residentMb(pid)
    const share = (count: number, of: number) => (n: number) =>
      Math.floor(((n + 1) * count) / of) - Math.floor((n * count) / of)
    const [perPerson, perGateway] = [share(REPLICAS - 100, PEOPLE), share(100, GATEWAYS)]
    const load = await startLoad(
      system.server.url,
      [
        ...people.map((caller, n) => ({ caller, count: perPerson(n) })),
        ...gateways.map((caller, n) => ({ caller, count: perGateway(n) })),
      ],
      { readyMs: 300_000 },
    )
    try {
      // A while of nothing: every long poll has ended and begun again.
      await sleep(25_000)
      const writer = system.writer()
      const worst: number[] = []
      for (let round = 0; round < ROUNDS; round++) {
        const word = `fan-out ${crypto.randomUUID()}`
        worst.push(quantile(await load.watch(word, () => writer.apply([taskPatch(system, word)])), 0.99))
        await sleep(500)
      }
      const { connected, refused, refetches } = await load.report()
      if (connected < REPLICAS || Object.keys(refused).length > 0)
        throw new Error(`${connected} connected, refused ${JSON.stringify(refused)}, ${refetches} refetches`)
      return {
        fanout_1000: {
          value: quantile(worst, 0.5),
          unit: 'ms, push to 1,000 replicas, p99',
          target: 400,
          better: 'lower',
        },
        server_rss: { value: await residentMb(pid), unit: 'MB, 1,000 replicas', target: 500, better: 'lower' },
        server_rss_rest: { value: atRest, unit: 'MB, at rest', target: 200, better: 'lower' },
      }
    } finally {
      await load.stop()
    }
  } finally {
    await system.stop()
  }
}

type System = Awaited<ReturnType<typeof startSystem>>

async function registered(system: System, slug: string) {
  const post = (path: string, body: unknown, caller?: System['owner']) =>
    system.request(caller, path, { method: 'POST', body: JSON.stringify(body) })
  const { token } = (await (await post('/v1/gateways/tokens', { label: slug }, system.owner)).json()) as {
    token: string
  }
  const identity = newGatewayIdentity()
  const answer = await post('/v1/gateways/register', { token, slug, label: slug, ...identity.register })
  const made = (await answer.json()) as { gateway_id: string }
  const principal = { kind: 'gateway', tenant_id: system.tenantId, gateway_id: made.gateway_id, slug } as const
  return { headers: { authorization: `Bearer ${identity.token}` }, principal }
}

if (import.meta.main) console.log(await run())
