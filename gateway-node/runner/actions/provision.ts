/**
 * `provision`: gives an agent its workspace. Payload: `{template?: string}` (also `source_template`); everything else comes from the rows of agent and
 * workspace. Without a template in payload or `agents.meta.template` it is `assistant`.
 *
 * It finishes what an earlier attempt began (W1). A cancelled one takes the workspace back, unless the agent was ready before.
 */
import type { Row } from '@hq/shared/schema/tables.ts'
import { z } from 'zod'
import type { AgentProfile, Template } from '../../workspaces/contract.ts'
import { publishFiles, unpublishFiles } from '../../workspaces/publish.ts'
import { ActionError, type Agent, defineAction, type Job } from '../action.ts'

const payload = z.looseObject({ template: z.string().optional(), source_template: z.string().optional() })

export const provision = defineAction({
  name: 'provision',
  agent: 'living',
  payload,
  steps: [
    { key: 'check', label: 'Check template and name' },
    { key: 'branch', label: 'Fill in the template' },
    { key: 'worktree', label: 'Create the workspace' },
    { key: 'publish', label: 'Publish files' },
  ],
  run: async (job, { template, source_template }) => {
    const { context, signal, step, output } = job
    const agent = mustHave(job)
    step('check')
    const profile = await profileOf(
      job,
      agent,
      template ?? source_template ?? metaText(agent, 'template') ?? 'assistant',
    )
    await clearWayOf(job, agent)
    signal.throwIfAborted()
    step('branch', profile.template)
    const commit = await context.workspaces.createBranch(profile)
    output(`Template ${profile.template}, commit ${commit.slice(0, 10)}\n`)
    signal.throwIfAborted()
    step('worktree')
    await context.workspaces.createWorktree(agent.slug)
    output(`Workspace agents/${agent.slug}\n`)
    signal.throwIfAborted()
    step('publish')
    const { total } = await publishFiles(context, agent)
    output(`${total} files\n`)
    signal.throwIfAborted()
    const said = await context.workspaces.readTemplate(profile.template)
    return {
      result: { commit, files: total, template: profile.template },
      commit: async (tx) => {
        await tx.query(
          `update agents set status = case when status in ('provisioning', 'error') then 'ready' else status end, status_reason = null, last_seen_at = $3,
             domains = case when domains = '{}' then $4::text[] else domains end,
             capabilities = case when capabilities = '{}' then $5::text[] else capabilities end
           where id = $1 and gateway_id = $2 and deleted_at is null and status <> 'removing'`,
          [agent.id, context.gatewayId, new Date(context.now()), said?.domains ?? [], said?.capabilities ?? []],
        )
      },
    }
  },
  undo: async ({ context, agent }) => {
    if (!agent || agent.status === 'ready' || (await context.workspaces.ownerOf(agent.slug)) !== agent.id) return
    await context.workspaces.remove(agent.slug)
    await unpublishFiles(context, agent.id)
  },
  onEnd: async (tx, context, command, message) => {
    await tx.query(
      `update agents set status = 'error', status_reason = $3 where id = $1 and gateway_id = $2 and deleted_at is null and status in ('provisioning', 'error')`,
      [command.agent_id, context.gatewayId, message],
    )
  },
})

export async function profileOf({ context }: Job, agent: Agent, template: string): Promise<AgentProfile> {
  const [workspace] = await context.replica.query<Row<'workspace'>>(
    'select * from workspace where tenant_id = $1 and deleted_at is null limit 1',
    [context.tenantId],
  )
  const said: Template | undefined = await context.workspaces.readTemplate(template)
  return {
    agentId: agent.id,
    slug: agent.slug,
    name: agent.name,
    description: agent.description ?? said?.description ?? '',
    emoji: metaText(agent, 'emoji') ?? said?.emoji ?? '',
    team: metaText(agent, 'team') ?? said?.team ?? null,
    workspaceSlug: workspace?.slug ?? 'workspace',
    template,
    owner: {
      name: workspace?.owner_name ?? '',
      preferredName: workspace?.owner_preferred_name ?? '',
      timezone: workspace?.owner_timezone ?? 'UTC',
    },
    domains: agent.domains,
    capabilities: agent.capabilities,
  }
}

/** A workspace of the same slug whose agent is deleted was left behind by a removal that never came: it is archived. */
export async function clearWayOf({ context, output }: Job, agent: Agent): Promise<void> {
  const owner = await context.workspaces.ownerOf(agent.slug)
  if (!owner || owner === agent.id) return
  const [living] = await context.replica.query(
    'select id from agents where id::text = $1 and deleted_at is null and gateway_id = $2',
    [owner, context.gatewayId],
  )
  if (living) return
  const archive = await context.workspaces.remove(agent.slug)
  output(`Kept the workspace of a deleted agent as ${archive ?? 'nothing'}\n`)
}

function mustHave({ agent }: Job): Agent {
  if (agent) return agent
  throw new ActionError('There is no agent to provision.')
}

function metaText({ meta }: Agent, key: string): string | undefined {
  const value = meta[key]
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}
