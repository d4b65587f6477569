/**
 * `auth_start`: begins a sign-in at a connection's provider. Payload: `{connection_id, flow: 'paste' | 'device'}`. Result: `{connection_id, flow, expires_at}` and, for `paste`, `authorize_url`;
 * for `device`, `user_code`, `verification_url`, `verification_url_complete`. Begun again, it replaces the one before. How it ended is said by the connection's row.
 */
import { WAITING_FOR_SIGN_IN } from '@hq/shared/domain/oauth-settings.ts'
import { z } from 'zod'
import { connectionOf } from '../../models/connections.ts'
import { signInsOf } from '../../oauth/sign-ins.ts'
import { ActionError, defineAction } from '../action.ts'

export const authStart = defineAction({
  name: 'auth_start',
  agent: 'none',
  payload: z.strictObject({ connection_id: z.uuid(), flow: z.enum(['paste', 'device']) }),
  steps: [{ key: 'start', label: 'Begin the sign-in' }],
  run: async ({ context, signal, step }, { connection_id: id, flow }) => {
    step('start')
    const begun = await signInsOf(context).begin(await connectionOf(context, id), flow, signal)
    if (!begun.ok) throw new ActionError(begun.message)
    return {
      result: { connection_id: id, ...begun.value },
      commit: async (tx) => {
        await tx.query(
          `update model_connections set status = 'unchecked', status_detail = $2, checked_at = null where id = $1`,
          [id, WAITING_FOR_SIGN_IN],
        )
      },
    }
  },
})
