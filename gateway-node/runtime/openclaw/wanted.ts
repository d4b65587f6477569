/** What OpenClaw's configuration has to hold now, from the rows of the replica. */
import { stat } from 'node:fs/promises'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { GatewayContext } from '../../service.ts'
import { type ModelConfig, modelFor } from '../builtin/config.ts'
import type { OpenClawAgent } from './config.ts'
import { verdictOf } from './permit.ts'
import { pluginTools, type ToolFacts } from './plugin-files.ts'
import { TOOL_PREFIX } from './turn.ts'

type Found = Pick<Row<'agents'>, 'slug' | 'model' | 'tool_policy'>

/** Agents of this gateway that use OpenClaw and have a worktree. */
export async function wantedAgents(
  { replica, gatewayId, workspaces, env }: GatewayContext,
  config: ModelConfig,
  tools: readonly ToolFacts[],
): Promise<OpenClawAgent[]> {
  const rows = await replica.query<Found>(
    `select slug, model, tool_policy from agents
     where gateway_id = $1 and runtime = 'openclaw' and deleted_at is null and status <> 'removing' order by slug`,
    [gatewayId],
  )
  const agents: OpenClawAgent[] = []
  for (const { slug, model, tool_policy } of rows) {
    const workspace = workspaces.folder(slug)
    if (!(await isFolder(workspace))) continue
    const chosen = modelFor(config, model)
    agents.push({
      slug,
      workspace,
      exec: verdictOf(tool_policy, 'exec', env),
      // `ask` is asked by the tool itself when it is used.
      tools: pluginTools(tools)
        .filter(({ name }) => verdictOf(tool_policy, name, env) !== 'deny')
        .map(({ name }) => TOOL_PREFIX + name),
      model: 'problem' in chosen || chosen.provider === 'demo' ? null : (chosen.model ?? null),
    })
  }
  return agents
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
