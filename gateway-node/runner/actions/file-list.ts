/** `file_list`: the files of the agent's newest commit. Payload: nothing. Result: `{commit, files: [{path, sha}], total, truncated}`. */
import { z } from 'zod'
import { defineAction } from '../action.ts'
import { jsonBytes, MAX_RESULT, workspaceOf } from './file-work.ts'

export const fileList = defineAction({
  name: 'file_list',
  agent: 'living',
  payload: z.looseObject({}),
  steps: [{ key: 'list', label: 'List the files' }],
  run: async (job) => {
    const agent = await workspaceOf(job)
    const { workspaces } = job.context
    job.step('list')
    const commit = await workspaces.head(agent.slug)
    const all = await workspaces.list(agent.slug)
    const files: { path: string; sha: string }[] = []
    let bytes = 1024
    for (const { path, sha } of all) {
      bytes += jsonBytes({ path, sha }) + 1
      if (bytes > MAX_RESULT) break
      files.push({ path, sha })
    }
    return { result: { commit, files, total: all.length, truncated: files.length < all.length } }
  },
})
