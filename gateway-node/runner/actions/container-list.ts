/** `container_list`: what HQ runs in Docker on this gateway's machine, with use and limits. No payload. Result: `{containers: ContainerFacts[]}`. */
import { z } from 'zod'
import { defineAction } from '../action.ts'
import { inDocker } from './in-docker.ts'

export const containerList = defineAction({
  name: 'container_list',
  agent: 'none',
  payload: z.looseObject({}),
  steps: [{ key: 'ask', label: 'Ask Docker' }],
  run: async ({ context, signal, step, output }) => {
    step('ask')
    const containers = await inDocker(context, (docker) => docker.list(signal))
    for (const { name, state, image } of containers) output(`${name} ${state} (${image})\n`)
    return { result: { containers: [...containers] } }
  },
})
