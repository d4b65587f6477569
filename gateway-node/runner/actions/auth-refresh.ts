/** `auth_refresh`: renews the token of a connection that somebody has signed in to, at once. Payload: `{connection_id}`. Result: `{connection_id, expires_at}`; null: the provider does not say. */
import { z } from 'zod'
import { connectionOf } from '../../models/connections.ts'
import { signInsOf } from '../../oauth/sign-ins.ts'
import { ActionError, defineAction } from '../action.ts'

export const authRefresh = defineAction({
  name: 'auth_refresh',
  agent: 'none',
  payload: z.strictObject({ connection_id: z.uuid() }),
  steps: [{ key: 'renew', label: 'Renew the token' }],
  run: async ({ context, runtimes, signal, step }, { connection_id: id }) => {
    step('renew')
    const connection = await connectionOf(context, id)
    if (connection.oauth === null)
      throw new ActionError(`“${connection.label}” takes a key, which is not renewed here.`)
    const renewed = await signInsOf(context).refresh(connection, signal)
    // Also after a refusal: the connection's row says then how it is.
    await runtimes.check?.(signal)
    if (!renewed.ok) throw new ActionError(renewed.message)
    const { expires_at: at } = renewed.value
    return { result: { connection_id: id, expires_at: at === null ? null : new Date(at).toISOString() } }
  },
})
