/**
 * Agents that come and go.
 *
 *  S1 An agent that was given to this gateway gets a `move` command of this gateway, once for each letter (letters.ts).
 *  S2 What is left here of an agent that lives elsewhere, by the server's word, is ended and archived: its runs, its worktree. It is never deleted before the server
 *     has taken the handing over, and its history stays as an archive ref.
 */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Tx } from '@hq/shared/sync/contract.ts'
import type { GatewayContext, Service } from '../service.ts'
import { arrivalId, isSettled, letterFor } from './letters.ts'

const LOOK_MS = 15_000

export function createMoving(context: GatewayContext, { lookMs = LOOK_MS } = {}): Service {
  const { replica, workspaces, gatewayId, tenantId, log } = context
  let stopped = false
  let again = false
  let looking: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  const ends: (() => void)[] = []

  function poke(): void {
    if (stopped || !replica.status().initial.done) return
    again = true
    looking ??= lookAll().finally(() => {
      looking = undefined
    })
  }

  async function lookAll(): Promise<void> {
    while (again && !stopped) {
      again = false
      try {
        await receive()
        await letGo()
      } catch (error) {
        if (!stopped) log('error', 'Agents that move could not be looked after', { error })
      }
    }
  }

  /** (S1) */
  async function receive(): Promise<void> {
    const coming = await replica.query<{ id: string; slug: string; epoch: number }>(
      `select id, slug, epoch from agents where gateway_id = $1 and status = 'provisioning' and epoch > 1 and deleted_at is null`,
      [gatewayId],
    )
    for (const agent of coming) {
      await replica.write(async (tx: Tx) => {
        const found = await letterFor(tx, agent, gatewayId)
        if (!found) return
        const id = arrivalId(found.id)
        const [known] = await tx.query('select id from agent_commands where id = $1', [id])
        if (known) return
        await tx.query(
          `insert into agent_commands (id, tenant_id, gateway_id, agent_id, action, payload, requested_by) values ($1, $2, $3, $4, 'move', $5::jsonb, $6)`,
          [id, tenantId, gatewayId, agent.id, JSON.stringify({ arrive: found.id }), found.requested_by],
        )
        log('info', 'An agent moves here', { agent: agent.slug })
      })
    }
  }

  /** (S2) */
  async function letGo(): Promise<void> {
    for (const slug of await workspaces.slugs()) {
      if (stopped) return
      const id = await workspaces.ownerOf(slug)
      const [gone] = await replica.query<{ id: string; name: string }>(
        'select id, name from agents where id::text = $1 and gateway_id is distinct from $2 and deleted_at is null',
        [id, gatewayId],
      )
      if (!gone || !(await isSettled(replica, 'agents', gone.id))) continue
      await context.agentStops.stop(gone.id, `${gone.name} lives on another gateway`, 'moved')
      const archive = await workspaces.remove(slug)
      log('info', 'An agent lives on another gateway now; its folder here was archived', { agent: slug, archive })
    }
  }

  /** What was made on the way by a command that is over; one that goes on clears its own away (pack.ts). */
  async function clearLeftovers(): Promise<void> {
    const folder = join(context.home, 'moving')
    for (const name of await readdir(folder).catch(() => [] as string[])) {
      const [live] = await replica.query(
        `select 1 from agent_commands where id::text = $1 and status in ('pending', 'leased', 'running')`,
        [name],
      )
      if (!live) await rm(join(folder, name), { recursive: true, force: true })
    }
  }

  return {
    start: async () => {
      ends.push(
        replica.onChange((changes) => {
          if (changes.has('agents') || changes.has('agent_commands')) poke()
        }),
        replica.onStatus(poke),
      )
      await clearLeftovers().catch((error: unknown) =>
        log('warn', 'What a killed move left behind could not be cleared away', { error }),
      )
      timer = setInterval(poke, lookMs)
      poke()
    },
    stop: async () => {
      stopped = true
      clearInterval(timer)
      for (const end of ends.splice(0)) end()
      await looking
    },
  }
}
