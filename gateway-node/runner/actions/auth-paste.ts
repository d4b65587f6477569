/**
 * `auth_paste`: finishes a sign-in with what a person pasted: the address that the browser ended at, or the code. That text is a secret and in no command: it was sealed for
 * this gateway as a value of the connection's secret, and the command names the sealed row. Payload: `{connection_id, sealed_id}`. Result: `{connection_id}`.
 */
import { z } from 'zod'
import { connectionOf } from '../../models/connections.ts'
import { openModelSecret } from '../../models/sealed.ts'
import { signInsOf } from '../../oauth/sign-ins.ts'
import type { GatewayContext } from '../../service.ts'
import { ActionError, defineAction } from '../action.ts'

const payload = z.strictObject({ connection_id: z.uuid(), sealed_id: z.uuid() })
/** Rows of one write may come one after the other. */
const PATIENCE_MS = 10_000
const USED = `update sealed_secrets set sealed = '', deleted_at = now() where id = $1 and gateway_id = $2 and deleted_at is null`

export const authPaste = defineAction({
  name: 'auth_paste',
  agent: 'none',
  payload,
  steps: [
    { key: 'open', label: 'Open what was pasted' },
    { key: 'ask', label: 'Get the token' },
  ],
  run: async ({ context, signal, step }, { connection_id: id, sealed_id: sealedId }) => {
    step('open')
    const signIns = signInsOf(context)
    if (!(await signIns.isUsed(id, sealedId))) {
      const text = await pasted(context, id, sealedId, signal)
      step('ask')
      const done = await signIns.paste(await connectionOf(context, id), sealedId, text, signal)
      if (!done.ok) throw new ActionError(done.message)
    }
    return {
      result: { connection_id: id },
      commit: async (tx) => {
        await tx.query(USED, [sealedId, context.gatewayId])
        await tx.query(
          `update model_connections set status = 'unchecked', status_detail = 'Signed in; it is tried now.', checked_at = null where id = $1`,
          [id],
        )
      },
    }
  },
  onEnd: async (tx, context, command) => {
    const read = payload.safeParse(command.payload)
    if (!read.success) return
    const [sealed] = await tx.query(
      `select x.id from sealed_secrets x join secrets s on s.id = x.secret_id and s.category = 'model'
         join model_connections m on m.secret_id = s.id and m.oauth is not null where x.id = $1`,
      [read.data.sealed_id],
    )
    // Nothing but what was pasted for a sign-in: a key that a command names stays.
    if (sealed) await tx.query(USED, [read.data.sealed_id, context.gatewayId])
  },
})

async function pasted(context: GatewayContext, id: string, sealedId: string, signal: AbortSignal): Promise<string> {
  const changed = Promise.withResolvers<void>()
  let wake = changed.resolve
  const end = context.replica.onChange(() => wake())
  const late = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)])
  late.addEventListener('abort', () => wake(), { once: true })
  try {
    for (let next = changed.promise; ; ) {
      const { secret_id: secret, oauth, label } = await connectionOf(context, id)
      if (oauth === null) throw new ActionError(`“${label}” takes a key; nobody signs in to it.`)
      const text = secret === null ? null : await openModelSecret(context, secret, sealedId)
      if (text !== null) return text
      if (late.aborted)
        throw new ActionError(
          'What was pasted can’t be opened here: it was sealed for another connection or key of the gateway, or was used up. Paste it again.',
        )
      await next
      const again = Promise.withResolvers<void>()
      wake = again.resolve
      next = again.promise
    }
  } finally {
    end()
  }
}
