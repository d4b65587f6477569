/**
 * `remove`: ends an agent for good. Payload: nothing. Its runs end, its worktree and branch go (kept as an archive ref), then in one transaction the agent gets
 * its tombstone, its open inbox items and other waiting commands are cancelled.
 *
 * Order matters: the status `removing` closes the dispatcher's gate before runs are ended, so that none begins in between. Runs for an agent
 * that is already deleted as well, and then only cleans up.
 */
import { z } from 'zod'
import { unpublishFiles } from '../../workspaces/publish.ts'
import { ActionError, defineAction } from '../action.ts'

export const remove = defineAction({
  name: 'remove',
  agent: 'any',
  payload: z.looseObject({}),
  steps: [
    { key: 'stop', label: 'End its runs' },
    { key: 'workspace', label: 'Archive the workspace' },
    { key: 'rows', label: 'Remove its files and open work' },
  ],
  run: async ({ context, command, agent, signal, step, output }) => {
    if (!agent) throw new ActionError('There is no agent to remove.')
    const { replica, workspaces, gatewayId } = context
    const mine = agent.gateway_id === gatewayId
    step('stop')
    await replica.write((tx) =>
      tx.query(
        `update agents set status = 'removing', status_reason = 'Being removed' where id = $1 and gateway_id = $2 and deleted_at is null and status <> 'removing'`,
        [agent.id, gatewayId],
      ),
    )
    await context.agentStops.stop(agent.id, `${agent.name} is being removed`)
    signal.throwIfAborted()

    step('workspace')
    let archive: string | null = null
    if ((await workspaces.ownerOf(agent.slug)) === agent.id) archive = await workspaces.remove(agent.slug)
    output(archive ? `Kept as ${archive}\n` : 'There was no workspace\n')

    // From here on a cancel comes too late: half an agent is worse than none.
    step('rows')
    const files = await unpublishFiles(context, agent.id)
    output(`${files} files removed\n`)
    const now = new Date(context.now())
    return {
      result: { archive, files },
      commit: async (tx) => {
        await tx.query(
          `update agent_inbox_items set status = 'cancelled', completed_at = $3, lease_owner = null, leased_until = null,
             error_message = 'The agent was removed.'
           where agent_id = $1 and gateway_id = $2 and status in ('pending', 'leased')`,
          [agent.id, gatewayId, now],
        )
        await tx.query(
          `update agent_commands set status = 'cancelled', completed_at = $4, error_message = 'The agent was removed.'
           where agent_id = $1 and gateway_id = $2 and id <> $3 and status = 'pending'`,
          [agent.id, gatewayId, command.id, now],
        )
        if (mine)
          await tx.query('update agents set deleted_at = $2 where id = $1 and deleted_at is null', [agent.id, now])
      },
    }
  },
  onEnd: async (tx, context, command, message) => {
    const { workspaces, gatewayId } = context
    const [agent] = await tx.query<{ slug: string }>(
      `select slug from agents where id = $1 and gateway_id = $2 and status = 'removing' and deleted_at is null`,
      [command.agent_id, gatewayId],
    )
    if (!agent) return
    // Cancelled in time, it goes on as before; else it says what is the matter.
    const whole = command.cancel_requested_at !== null && (await workspaces.exists(agent.slug))
    await tx.query('update agents set status = $2, status_reason = $3 where id = $1', [
      command.agent_id,
      whole ? 'ready' : 'error',
      whole ? null : `Not removed: ${message}`,
    ])
  },
})
