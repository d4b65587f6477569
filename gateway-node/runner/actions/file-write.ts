/**
 * `file_write`: writes a file and commits it under the name of who asked. Payload: `{path, text, sha}`; `sha` is the blob that was read, null for a file that is to be
 * new. Result: `{path, sha}`. Another content in the meantime is a conflict (FW2).
 */
import { z } from 'zod'
import { defineAction } from '../action.ts'
import { authorOf, blobId, filePath, MAX_WRITE, PUBLISH, publish, tellConflicts, workspaceOf } from './file-work.ts'

export const fileWrite = defineAction({
  name: 'file_write',
  agent: 'living',
  payload: z.object({ path: filePath, text: z.string().max(MAX_WRITE), sha: blobId.nullable() }),
  steps: [{ key: 'write', label: 'Write and commit' }, PUBLISH],
  run: async (job, { path, text, sha: expectedSha }) => {
    const agent = await workspaceOf(job)
    job.step('write', path)
    const author = await authorOf(job)
    const sha = await tellConflicts(() =>
      job.context.workspaces.writeText(agent.slug, path, text, { author, expectedSha }),
    )
    await publish(job, agent)
    return { result: { path, sha } }
  },
})
