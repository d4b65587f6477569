/** `auth_list`: the model connections of this gateway, without their keys. Payload: nothing. Result: `{connections: [{id, label, provider, base_url, model, is_default, has_key, status, detail}]}`. */
import { z } from 'zod'
import { connectionsOf } from '../../models/connections.ts'
import { defineAction } from '../action.ts'

export const authList = defineAction({
  name: 'auth_list',
  agent: 'none',
  payload: z.looseObject({}),
  steps: [{ key: 'list', label: 'List' }],
  run: async ({ context, step, output }) => {
    step('list')
    const connections = await connectionsOf(context)
    for (const { id, label, provider, default_model, status } of connections)
      output(`${id}  ${label}: ${provider}/${default_model ?? 'no model'}, ${status}\n`)
    const used = connections.find(({ is_default }) => is_default)
    return {
      result: {
        connections: connections.map((each) => ({
          id: each.id,
          label: each.label,
          provider: each.provider,
          base_url: each.base_url,
          model: each.default_model,
          is_default: each === used,
          has_key: each.secret_id !== null,
          status: each.status,
          detail: each.status_detail,
        })),
      },
    }
  },
})
