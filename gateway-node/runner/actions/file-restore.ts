/**
 * `file_restore`: makes a file what it was in a commit, as a new commit. Payload: `{path, commit, sha}`; `sha` is the blob that is there now, null when there is none.
 * Result: `{path, sha}`; conflicts as in `file_write`.
 */
import { z } from 'zod'
import { defineAction } from '../action.ts'
import { authorOf, blobId, commitId, filePath, PUBLISH, publish, tellConflicts, workspaceOf } from './file-work.ts'

export const fileRestore = defineAction({
  name: 'file_restore',
  agent: 'living',
  payload: z.object({ path: filePath, commit: commitId, sha: blobId.nullable() }),
  steps: [{ key: 'restore', label: 'Restore and commit' }, PUBLISH],
  run: async (job, { path, commit, sha: expectedSha }) => {
    const agent = await workspaceOf(job)
    job.step('restore', path)
    const author = await authorOf(job)
    const sha = await tellConflicts(() =>
      job.context.workspaces.restoreVersion(agent.slug, commit, path, { author, expectedSha }),
    )
    await publish(job, agent)
    return { result: { path, sha } }
  },
})
