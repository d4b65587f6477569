/**
 * How a move goes from one gateway to the other: by rows alone.
 *
 * The old gateway ends its `move` command and gives the agent away in one transaction; what the new one has to know is the command's `result`, the letter. The new
 * one answers each letter with one `move` command of its own, whose id is derived from the letter's: however often it looks, it is one.
 */
import { derivedId } from '@hq/shared/domain/ids.ts'
import type { Tx } from '@hq/shared/sync/contract.ts'
import { z } from 'zod'
import { parcelSchema } from './pack.ts'

/** A command that waited at the old gateway and is sent on. */
const forwardedSchema = z.object({
  id: z.uuid(),
  action: z.string(),
  payload: z.record(z.string(), z.unknown()),
  requested_by: z.uuid().nullable(),
  requested_by_agent_id: z.uuid().nullable(),
})

export const letterSchema = z.object({
  to_gateway_id: z.uuid(),
  /** Of the agent before it moved. */
  epoch: z.number(),
  /** Null: there was no workspace to take along. */
  parcel: parcelSchema.nullable(),
  commit: z.string().nullable(),
  forward: z.array(forwardedSchema),
})
export type Letter = z.infer<typeof letterSchema>

export const arrivalId = (letterCommandId: string): string => derivedId('arrival', letterCommandId)
export const forwardedId = (commandId: string): string => derivedId('forwarded', commandId)

interface LetterRow {
  readonly id: string
  readonly result: unknown
  readonly requested_by: string | null
}

/** The letter that came with an agent in its present epoch; undefined: none has come. */
export async function letterFor(
  db: Tx,
  agent: { readonly id: string; readonly epoch: number },
  gatewayId: string,
): Promise<(LetterRow & { readonly letter: Letter }) | undefined> {
  const rows = await db.query<LetterRow>(
    `select id, result, requested_by from agent_commands where agent_id = $1 and action = 'move' and status = 'done' and deleted_at is null
       and result ->> 'to_gateway_id' = $2 order by completed_at desc limit 5`,
    [agent.id, gatewayId],
  )
  for (const row of rows) {
    const letter = letterSchema.safeParse(row.result)
    if (letter.success && letter.data.epoch + 1 === agent.epoch) return { ...row, letter: letter.data }
  }
  return undefined
}

/** Whether the row is as the server has it: a change of ours that waits may still be refused. */
export async function isSettled(db: Tx, table: string, id: string): Promise<boolean> {
  const [held] = await db.query('select 1 from sync.pending_base where table_name = $1 and row_id = $2', [table, id])
  return held === undefined
}
