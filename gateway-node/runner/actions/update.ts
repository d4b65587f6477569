/**
 * `update`: reads the agent's worktree anew. What was changed there without a commit is committed, and the files are mirrored into
 * `agent_files`. Payload: nothing.
 */
import { z } from 'zod'
import { GATEWAY_AUTHOR } from '../../workspaces/contract.ts'
import { publishFiles } from '../../workspaces/publish.ts'
import { ActionError, defineAction } from '../action.ts'

export const update = defineAction({
  name: 'update',
  agent: 'living',
  payload: z.looseObject({}),
  steps: [
    { key: 'commit', label: 'Save changes' },
    { key: 'publish', label: 'Publish files' },
  ],
  run: async ({ context, agent, signal, step, output }) => {
    if (!agent) throw new ActionError('There is no agent to update.')
    step('commit')
    if (!(await context.workspaces.exists(agent.slug))) {
      throw new ActionError(`${agent.name} has no workspace on this gateway. Provision it first.`)
    }
    const commit = await context.workspaces.commit(agent.slug, 'Changes found in the workspace', GATEWAY_AUTHOR)
    output(commit ? `Saved as ${commit.slice(0, 10)}\n` : 'Nothing had changed\n')
    signal.throwIfAborted()
    step('publish')
    const published = await publishFiles(context, agent)
    output(`${published.changed} changed, ${published.removed} removed, ${published.total} in all\n`)
    return { result: { commit, files: published.total } }
  },
})
