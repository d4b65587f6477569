/**
 * `set_agent_model`: which model an agent thinks with, and how much it thinks; counts with its next run. Payload: `{model?, thinking?}`; `model: null` is the gateway's own.
 * Result: `{model, thinking, listed}`; `listed` is false where the gateway's provider does not list that model.
 */
import { ENUMS } from '@hq/shared/schema/enums.ts'
import { z } from 'zod'
import { ActionError, defineAction } from '../action.ts'

export const setAgentModel = defineAction({
  name: 'set_agent_model',
  agent: 'living',
  payload: z
    .object({
      model: z.string().trim().min(1).max(200).nullable().optional(),
      thinking: z.enum(ENUMS.thinking).optional(),
    })
    .refine(({ model, thinking }) => model !== undefined || thinking !== undefined, {
      message: 'names neither a model nor thinking',
    }),
  steps: [{ key: 'set', label: 'Set' }],
  run: async ({ agent, runtimes, signal, step, output }, payload) => {
    if (!agent) throw new ActionError('There is no agent to set a model for.')
    step('set')
    const { model = agent.model, thinking = agent.thinking } = payload
    const known = model === null ? [] : await runtimes.models(signal)
    const listed =
      model === null || known.some((each) => each.model === model || `${each.provider}/${each.model}` === model)
    if (!listed) output(`The gateway’s provider does not list “${model}”; it is set all the same.\n`)
    return {
      result: { model, thinking, listed },
      commit: async (tx) => {
        await tx.query('update agents set model = $2, thinking = $3 where id = $1', [agent.id, model, thinking])
      },
    }
  },
})
