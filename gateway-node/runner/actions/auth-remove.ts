/** `auth_remove`: takes a model connection away, and its key with it. Payload: `{connection_id}`. Result: `{connection_id}`. */
import { z } from 'zod'
import { connectionOf } from '../../models/connections.ts'
import { defineAction } from '../action.ts'

export const authRemove = defineAction({
  name: 'auth_remove',
  agent: 'none',
  payload: z.object({ connection_id: z.uuid() }),
  steps: [{ key: 'remove', label: 'Remove' }],
  run: async ({ context, step }, { connection_id: id }) => {
    step('remove')
    const { secret_id: secret } = await connectionOf(context, id)
    return {
      result: { connection_id: id },
      commit: async (tx) => {
        await tx.query('update model_connections set deleted_at = now() where id = $1', [id])
        if (secret !== null)
          await tx.query('update secrets set deleted_at = now() where id = $1 and deleted_at is null', [secret])
      },
    }
  },
})
