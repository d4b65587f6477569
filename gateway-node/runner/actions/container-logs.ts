/** `container_logs`: the last lines of one of HQ's containers, as the command's output. Payload: `{id, lines?}`. */
import { z } from 'zod'
import { MAX_LINES } from '../../containers/containers.ts'
import { defineAction } from '../action.ts'
import { inDocker } from './in-docker.ts'

export const containerLogs = defineAction({
  name: 'container_logs',
  agent: 'none',
  payload: z.object({ id: z.string(), lines: z.int().min(1).max(MAX_LINES).default(200) }),
  steps: [{ key: 'read', label: 'Read the log' }],
  run: async ({ context, signal, step, output }, { id, lines }) => {
    step('read')
    const text = await inDocker(context, (docker) => docker.logs(id, lines, signal))
    output(text)
    return { result: { id, bytes: Buffer.byteLength(text) } }
  },
})
