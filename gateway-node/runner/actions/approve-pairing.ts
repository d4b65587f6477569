/**
 * `approve_pairing`: answers a device that wants to pair with this gateway's OpenClaw, as the browser does under Approvals: by the approval's row, which whoever asked waits for.
 * Payload: `{approval_id, decision: 'allow' | 'deny'}`, or `request_id` (OpenClaw's own) instead of `approval_id`. Result: `{approval_id, decision}`.
 */
import type { Row } from '@hq/shared/schema/tables.ts'
import { z } from 'zod'
import { ActionError, defineAction } from '../action.ts'

const ANSWERED = 'This was answered already, or is not asked any more. Under Approvals you see by whom.'

export const approvePairing = defineAction({
  name: 'approve_pairing',
  agent: 'none',
  payload: z
    .strictObject({
      approval_id: z.uuid().optional(),
      request_id: z.string().min(1).max(200).optional(),
      decision: z.enum(['allow', 'deny']),
    })
    .refine(({ approval_id, request_id }) => (approval_id === undefined) !== (request_id === undefined), {
      message: 'names one of approval_id and request_id',
    }),
  steps: [{ key: 'answer', label: 'Answer' }],
  run: async ({ context, command, step }, { approval_id, request_id, decision }) => {
    step('answer')
    const { replica, gatewayId, now } = context
    const person = command.requested_by
    if (person === null) throw new ActionError('A device is allowed or denied by a person; this command is nobody’s.')
    const found = await replica.query<Row<'approvals'>>(
      `select * from approvals where gateway_id = $1 and kind = 'pairing' and deleted_at is null
         and (id = $2::uuid or detail ->> 'request' = $3) order by status <> 'pending', created_at desc, id desc limit 1`,
      [gatewayId, approval_id ?? null, request_id ?? null],
    )
    const [approval] = found
    if (!approval)
      throw new ActionError('No device asks for that on this gateway. Under Approvals you see which ones do.')
    if (approval.status !== 'pending') throw new ActionError(ANSWERED)
    return {
      result: { approval_id: approval.id, decision },
      commit: async (tx) => {
        const [answered] = await tx.query(
          `update approvals set status = $2, decided_by = $3, decided_at = $4 where id = $1 and status = 'pending' returning id`,
          [approval.id, decision === 'allow' ? 'allowed' : 'denied', person, new Date(now()).toISOString()],
        )
        if (!answered) throw new ActionError(ANSWERED)
      },
    }
  },
})
