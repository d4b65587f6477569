/** `auth_set_default`: the model connection that agents of this gateway use from their next run on. Payload: `{connection_id}`. Result: `{connection_id, label}`. */
import { z } from 'zod'
import { connectionOf } from '../../models/connections.ts'
import { defineAction } from '../action.ts'

export const authSetDefault = defineAction({
  name: 'auth_set_default',
  agent: 'none',
  payload: z.object({ connection_id: z.uuid() }),
  steps: [{ key: 'set', label: 'Set' }],
  run: async ({ context, step }, { connection_id: id }) => {
    step('set')
    const connection = await connectionOf(context, id)
    return {
      result: { connection_id: connection.id, label: connection.label },
      commit: async (tx) => {
        await tx.query(
          `update model_connections set is_default = (id = $2)
           where gateway_id = $1 and deleted_at is null and is_default <> (id = $2)`,
          [context.gatewayId, connection.id],
        )
      },
    }
  },
})
