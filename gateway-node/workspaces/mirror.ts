/**
 * Looks through the agents' workspaces once, when the replica is loaded: what a crash left uncommitted or unpublished is published, and an agent whose
 * worktree is missing says so in its status, instead of failing at every wake. An agent that can't be published costs the others nothing (P13).
 */
import type { Row } from '@hq/shared/schema/tables.ts'
import type { GatewayContext, Service } from '../service.ts'

type Agent = Pick<Row<'agents'>, 'id' | 'slug' | 'name'>

export function createMirror(context: GatewayContext): Service {
  const { replica, gatewayId, workspaces, log } = context
  let looking: Promise<void> | undefined
  let stopped = false
  let stopWaiting: () => void = () => undefined

  function look(): void {
    if (looking || stopped || !replica.status().initial.done) return
    stopWaiting()
    looking = lookThrough().catch((error: unknown) =>
      log('error', 'The workspaces could not be looked through', { error }),
    )
  }

  async function lookThrough(): Promise<void> {
    const agents = await replica.query<Agent>(
      `select id, slug, name from agents where gateway_id = $1 and deleted_at is null and status in ('ready', 'paused', 'hibernating') order by slug`,
      [gatewayId],
    )
    for (const agent of agents) {
      if (stopped) return
      if (!(await workspaces.exists(agent.slug))) await sayMissing(agent)
      else {
        await context
          .publishFiles(agent.id, 'Found at the start of the gateway')
          .catch((error: unknown) =>
            log('warn', "An agent's files could not be published", { agent: agent.slug, error }),
          )
      }
    }
  }

  async function sayMissing({ id, slug }: Agent): Promise<void> {
    log('error', 'An agent has no workspace', { agent: slug, folder: workspaces.folder(slug) })
    const reason = `Its workspace is missing on this gateway (agents/${slug}). Restore it from a backup, or provision the agent again.`
    await replica.write((tx) =>
      tx.query(
        `update agents set status = 'error', status_reason = $3
         where id = $1 and gateway_id = $2 and deleted_at is null and status in ('ready', 'paused', 'hibernating')`,
        [id, gatewayId, reason],
      ),
    )
  }

  return {
    start: async () => {
      stopWaiting = replica.onStatus(look)
      look()
    },
    stop: async () => {
      stopped = true
      stopWaiting()
      await looking
    },
  }
}
