/**
 * `restart_runtime`: ends the process of a runtime; the next run starts it. Payload: `{runtime: 'openclaw'}`. Agents at work in it begin their work again.
 */
import { z } from 'zod'
import { ActionError, defineAction } from '../action.ts'

export const restartRuntime = defineAction({
  name: 'restart_runtime',
  agent: 'none',
  payload: z.looseObject({ runtime: z.string().default('openclaw') }),
  steps: [{ key: 'restart', label: 'Restart' }],
  run: async ({ runtimes, step }, { runtime }) => {
    const managed = runtimes.managed?.(runtime)
    if (!managed) throw new ActionError(`“${runtime}” is no process of its own, so there is nothing to restart.`)
    step('restart')
    await managed.restart()
    return { result: { runtime, ...managed.state() } }
  },
})
