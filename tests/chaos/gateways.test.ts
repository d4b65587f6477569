/**
 * Three gateways under load, killed and cut off at random moments (HQ_CHAOS_SEED; HQ_CHAOS_SECONDS, 40 by default, 600 for the long run): commands come
 * without end, agents are set up, work and are removed. In the end no command is lost and none has had its effect twice, each gateway has what the
 * authority has for it, and the repositories are whole.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '@hq/sync-server/database/ids.ts'
import { insert } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createChance, pause } from '../support/chance.ts'
import { gatewayConverged, nothingDoubled } from '../support/converged.ts'
import type { Network } from '../support/proxy.ts'
import {
  agentPatch,
  commandPatch,
  type Gateway,
  type Row,
  type System,
  startSystem,
  taskPatch,
} from '../support/system.ts'

const SECONDS = Number(process.env['HQ_CHAOS_SECONDS'] ?? 40)
const chance = createChance('gateways')

let system: System
const gateways: { readonly gateway: Gateway; readonly network: Network }[] = []

beforeAll(async () => {
  system = await startSystem()
  for (const slug of ['ada', 'bea', 'cid']) {
    const network = await system.proxy()
    gateways.push({ network, gateway: await system.gateway(slug, { url: network.url }) })
  }
})
afterAll(() => system?.stop())

interface Made {
  readonly gateway: Gateway
  readonly slug: string
  readonly agent: string
  removed: boolean
}

test('no command is lost, none is run twice, the repositories are whole', {
  timeout: SECONDS * 1_000 + 300_000,
}, async () => {
  const agents: Made[] = []
  const commands: string[] = []
  const tasks: string[] = []
  const counts = { kills: 0, cuts: 0 }
  const end = Date.now() + SECONDS * 1_000
  const writer = system.writer()

  /** A person who asks for things all the time. */
  async function load(): Promise<void> {
    while (Date.now() < end) {
      const { gateway } = chance.pick(gateways)
      const living = agents.filter((made) => made.gateway === gateway && !made.removed)
      const what = chance.next()
      if (living.length < 3 && what < 0.25) {
        const [agent, command] = [newId(), newId()]
        const slug = `${gateway.slug}-${agents.length}`
        await writer.apply([
          agentPatch(system, gateway, slug, agent),
          commandPatch(system, gateway, agent, 'provision', command),
        ])
        agents.push({ gateway, slug, agent, removed: false })
        commands.push(command)
      } else if (living.length > 1 && what < 0.32) {
        const made = chance.pick(living)
        made.removed = true
        const command = newId()
        await writer.apply([commandPatch(system, gateway, made.agent, 'remove', command)])
        commands.push(command)
      } else if (living.length > 0 && what < 0.55) {
        const task = newId()
        await writer.apply([taskPatch(system, `Work ${tasks.length}`, chance.pick(living).agent, task)])
        tasks.push(task)
      } else {
        const command = newId()
        const row = { tenant_id: system.tenantId, gateway_id: gateway.id, action: 'list_models' }
        await writer.apply([insert('agent_commands', row, command)])
        commands.push(command)
      }
      await pause(chance.between(20, 250))
    }
  }

  async function trouble({ gateway, network }: (typeof gateways)[number]): Promise<void> {
    while (Date.now() < end) {
      await pause(chance.between(300, 4_000))
      const what = chance.pick(['kill', 'kill', 'kill while cut off', 'cut', 'hang', 'lose answers'] as const)
      if (what === 'cut' || what === 'kill while cut off') network.cut()
      if (what === 'hang') network.hang()
      if (what === 'lose answers') network.loseAnswers()
      if (what === 'kill' || what === 'kill while cut off') {
        counts.kills += 1
        await pause(chance.between(0, 400))
        await gateway.kill()
        await pause(chance.between(0, 500))
        await gateway.start()
      } else counts.cuts += 1
      if (what !== 'kill') await pause(chance.between(100, 2_500))
      network.heal()
    }
  }

  await Promise.all([load(), ...gateways.map(trouble)])

  const open = (): Promise<Row[]> =>
    system.rows(
      `select c.id, c.action::text as what, c.status, c.gateway_id, null as gate, null as detail from agent_commands c where c.status in ('pending', 'leased', 'running')
         union all select i.id, i.event_type, i.status, i.gateway_id, a.gate, a.gate_detail from agent_inbox_items i join agents a on a.id = i.agent_id
         where i.status in ('pending', 'leased', 'failed')`,
    )
  /** A command whose process ended in each of its tries is put aside, and says that it can be sent anew: a person does. */
  const anew = new Set<string>()
  const sendAnew = async (): Promise<void> => {
    for (const { id, tenant_id, gateway_id, agent_id, action } of await system.rows(
      "select * from agent_commands where status = 'dead_letter'",
    )) {
      if (anew.has(String(id))) continue
      const command = newId()
      await writer.apply([insert('agent_commands', { tenant_id, gateway_id, agent_id, action }, command)])
      anew.add(String(id))
      commands.push(command)
    }
  }
  await system.when(
    'everything has come to an end',
    async () => {
      await sendAnew()
      const left = await open()
      if (left.length === 0) return true
      // Rests after a failed try are minutes long.
      for (const { gateway } of gateways) gateway.skipMinute()
      await pause(400)
      throw new Error(`${left.length} are open: ${JSON.stringify(left.slice(0, 5))}`)
    },
    240_000,
  )

  const ended = await system.rows<{
    id: string
    action: string
    status: string
    attempt_count: number
    max_attempts: number
    error_message: string | null
  }>('select * from agent_commands where id = any($1)', [commands])
  expect(ended).toHaveLength(commands.length)
  const fates: Record<string, number> = {}
  for (const { action, status, attempt_count, max_attempts, error_message } of ended) {
    fates[`${action} ${status}`] = (fates[`${action} ${status}`] ?? 0) + 1
    expect(attempt_count).toBeLessThanOrEqual(max_attempts)
    // One that was interrupted in each of its tries is put aside; one for an agent that was removed meanwhile is not run. Both say so.
    if (status === 'done') continue
    expect(['dead_letter', 'failed', 'cancelled']).toContain(status)
    expect(error_message).not.toBeNull()
  }
  expect(fates['provision done']).toBeGreaterThan(0)
  expect(fates['list_models done']).toBeGreaterThan(0)

  // What a task led to: one deliverable at most, by one run that was done.
  const twice = await system.rows(
    `select owner_id, count(*)::int as n from entity_links where owner_id = any($1) group by 1 having count(*) > 1
     union all select inbox_item_id, count(*)::int from agent_runs where status = 'done' group by 1 having count(*) > 1`,
    [tasks],
  )
  expect(twice).toEqual([])
  await nothingDoubled(system)

  for (const { gateway } of gateways) {
    await gatewayConverged(system, gateway)
    await gateway.end()
    const repository = join(gateway.home, 'repo.git')
    const git = (folder: string, ...words: string[]): string =>
      execFileSync('git', words, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    git(repository, 'fsck', '--full', '--strict')
    for (const made of agents.filter((each) => each.gateway === gateway)) {
      const archives = git(repository, 'for-each-ref', '--format=%(refname)', `refs/archive/${made.slug}-*`)
        .split('\n')
        .filter(Boolean)
      const folder = join(gateway.home, 'agents', made.slug)
      const [remove] = await system.rows(
        `select id from agent_commands where agent_id = $1 and action = 'remove' and status = 'done'`,
        [made.agent],
      )
      const [provision] = await system.rows(
        `select id from agent_commands where agent_id = $1 and action = 'provision' and status = 'done'`,
        [made.agent],
      )
      if (remove && provision) {
        expect(archives, made.slug).toHaveLength(1)
        expect(existsSync(folder), made.slug).toBe(false)
      } else if (provision) {
        expect(archives, made.slug).toHaveLength(0)
        expect(git(folder, 'status', '--porcelain'), made.slug).toBe('')
      }
    }
    expect(readdirSync(repository).filter((name) => name.endsWith('.lock'))).toEqual([])
  }
  console.log(
    `gateways: ${SECONDS} s, ${counts.kills} kills, ${counts.cuts} cuts, ${commands.length} commands, ${tasks.length} tasks`,
    fates,
  )
})
