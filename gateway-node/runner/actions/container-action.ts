/**
 * `container_action`: starts, stops or restarts one of HQ's containers. Payload: `{id, action: 'start' | 'stop' | 'restart'}`. Result: `{container}`.
 * Sent once more it does nothing when it is so already; a restart is done again.
 */
import { z } from 'zod'
import { defineAction } from '../action.ts'
import { inDocker } from './in-docker.ts'

export const containerAction = defineAction({
  name: 'container_action',
  agent: 'none',
  payload: z.object({ id: z.string(), action: z.enum(['start', 'stop', 'restart']) }),
  steps: [{ key: 'do', label: 'Ask Docker' }],
  run: async ({ context, signal, step, output }, { id, action }) => {
    step('do', action)
    const container = await inDocker(context, (docker) => docker.act(id, action, signal))
    output(`${container.name} is ${container.state}.\n`)
    return { result: { container } }
  },
})
