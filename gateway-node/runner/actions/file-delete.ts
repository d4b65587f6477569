/** `file_delete`: deletes a file and commits that. Payload: `{path, sha}`, the blob that was read. Result: `{path, commit}`; conflicts as in `file_write`. */
import { z } from 'zod'
import { defineAction } from '../action.ts'
import { authorOf, blobId, filePath, PUBLISH, publish, tellConflicts, workspaceOf } from './file-work.ts'

export const fileDelete = defineAction({
  name: 'file_delete',
  agent: 'living',
  payload: z.object({ path: filePath, sha: blobId }),
  steps: [{ key: 'delete', label: 'Delete and commit' }, PUBLISH],
  run: async (job, { path, sha: expectedSha }) => {
    const agent = await workspaceOf(job)
    job.step('delete', path)
    const author = await authorOf(job)
    const commit = await tellConflicts(() =>
      job.context.workspaces.deleteFile(agent.slug, path, { author, expectedSha }),
    )
    await publish(job, agent)
    return { result: { path, commit } }
  },
})
