/** `list_models`: tries the model connections and asks the runtimes' providers which models they have. Payload: nothing. Result: `{models: ModelInfo[], runtimes: string[]}`. */
import { z } from 'zod'
import { defineAction } from '../action.ts'

export const listModels = defineAction({
  name: 'list_models',
  agent: 'none',
  payload: z.looseObject({}),
  steps: [{ key: 'ask', label: 'Ask the providers' }],
  run: async ({ runtimes, signal, step, output }) => {
    step('ask')
    await runtimes.check?.(signal)
    const models = await runtimes.models(signal)
    for (const { provider, model, demo } of models) output(`${provider}/${model}${demo ? ' (demo)' : ''}\n`)
    return { result: { models: [...models], runtimes: [...runtimes.runtimes()] } }
  },
})
