/** `file_diff`: what a commit changed against another one (default: the one before it). Payload: `{to, from?, path?}`. Result: `{text, truncated}`, a unified diff. */
import { z } from 'zod'
import { defineAction } from '../action.ts'
import { commitId, filePath, fitting, workspaceOf } from './file-work.ts'

export const fileDiff = defineAction({
  name: 'file_diff',
  agent: 'living',
  payload: z.object({ to: commitId, from: commitId.optional(), path: filePath.optional() }),
  steps: [{ key: 'compare', label: 'Compare' }],
  run: async (job, { to, from, path }) => {
    const { slug } = await workspaceOf(job)
    job.step('compare', path)
    const diff = await job.context.workspaces.diff(slug, { to, ...(from && { from }), ...(path && { path }) })
    const { text, truncated } = fitting(diff.text)
    return { result: { text, truncated: truncated || diff.truncated } }
  },
})
