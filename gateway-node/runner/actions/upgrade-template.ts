/**
 * `upgrade_template`: merges what the agent's template became into its workspace. Payload: `{resolutions?: [{path, sha, text}]}`. Result: `{state: 'current' | 'merged',
 * commit?, changed?}`. Conflicts change nothing and end the command as failed with `{conflicts: [{path, sha, base, mine, theirs}]}`; sent again with a decision for each
 * (`sha` as in the conflict, `text` null for no file), it is done.
 */
import { z } from 'zod'
import { ActionError, defineAction } from '../action.ts'
import { blobId, filePath, jsonBytes, MAX_RESULT, MAX_WRITE, PUBLISH, publish, workspaceOf } from './file-work.ts'
import { profileOf } from './provision.ts'

const resolution = z.object({ path: filePath, sha: blobId.nullable(), text: z.string().max(MAX_WRITE).nullable() })

export const upgradeTemplate = defineAction({
  name: 'upgrade_template',
  agent: 'living',
  payload: z.looseObject({ resolutions: z.array(resolution).max(500).default([]) }),
  steps: [{ key: 'merge', label: 'Merge the template' }, PUBLISH],
  run: async (job, { resolutions }) => {
    const agent = await workspaceOf(job)
    const { workspaces } = job.context
    job.step('merge')
    const profile = await profileOf(job, agent, await workspaces.templateOf(agent.slug))
    const upgrade = await workspaces.upgradeTemplate(profile, resolutions)
    if (upgrade.state === 'conflicts') {
      const paths = upgrade.conflicts.map(({ path }) => path)
      const whole = { conflicts: upgrade.conflicts }
      const names = { conflicts: upgrade.conflicts.map(({ path, sha }) => ({ path, sha })), truncated: true }
      throw new ActionError(
        `${agent.name} and the new template both changed ${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ` and ${paths.length - 5} more` : ''}. Nothing was changed: decide for each file, then upgrade again.`,
        { result: jsonBytes(whole) <= MAX_RESULT ? whole : names },
      )
    }
    job.output(upgrade.state === 'merged' ? `${upgrade.changed.join('\n')}\n` : 'Nothing new\n')
    await publish(job, agent)
    return { result: { ...upgrade } }
  },
})
