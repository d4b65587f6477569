/**
 * `file_history`: who changed a file, or any file, when. Payload: `{path?, limit?}`. Result: `{path, versions: [{commit, author, time, message, sha?}]}`, newest first;
 * `time` is ISO.
 */
import { z } from 'zod'
import { defineAction } from '../action.ts'
import { filePath, workspaceOf } from './file-work.ts'

export const fileHistory = defineAction({
  name: 'file_history',
  agent: 'living',
  payload: z.object({ path: filePath.optional(), limit: z.int().min(1).max(200).default(50) }),
  steps: [{ key: 'read', label: 'Read the history' }],
  run: async (job, { path, limit }) => {
    const { slug } = await workspaceOf(job)
    job.step('read', path)
    const found = await job.context.workspaces.history(slug, path, limit)
    const versions = found.map(({ email: _email, time, ...rest }) => ({ ...rest, time: new Date(time).toISOString() }))
    return { result: { path: path ?? null, versions } }
  },
})
