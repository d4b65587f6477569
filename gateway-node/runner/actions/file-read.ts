/**
 * `file_read`: a file as it stands in the worktree, or as it was in a commit. Payload: `{path, commit?}`. Result: `{path, sha, text, truncated}`; a truncated text is
 * for reading, not for writing back.
 */
import { z } from 'zod'
import { defineAction } from '../action.ts'
import { commitId, filePath, fitting, workspaceOf } from './file-work.ts'

export const fileRead = defineAction({
  name: 'file_read',
  agent: 'living',
  payload: z.object({ path: filePath, commit: commitId.optional() }),
  steps: [{ key: 'read', label: 'Read the file' }],
  run: async (job, { path, commit }) => {
    const { slug } = await workspaceOf(job)
    const { workspaces } = job.context
    job.step('read', path)
    const { text, sha } =
      commit === undefined ? await workspaces.readText(slug, path) : await workspaces.readAt(slug, commit, path)
    return { result: { path, sha, ...fitting(text) } }
  },
})
