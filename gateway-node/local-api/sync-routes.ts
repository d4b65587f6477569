/**
 * What waits on this gateway's replica, for agents and its operator: the same as the sync page of the app.
 *
 *   GET  /v1/sync/status
 *   GET  /v1/sync/outbox?limit=          oldest first, each in words and with what was refused
 *   GET  /v1/sync/export                 the file of outbox-file.ts
 *   POST /v1/sync/:seq/retry             {set?: {table: {id: {column: value}}}}
 *   POST /v1/sync/:seq/discard
 *
 *  Y1 An agent sees and retries what it wrote itself, nobody else's; somebody else's change is answered like one that is not there.
 *  Y2 Only the operator discards: a refused change is kept until a person gives it up (P5).
 */
import { describeChange } from '@hq/shared/domain/change-words.ts'
import { outboxFile, outboxFileName } from '@hq/shared/domain/outbox-file.ts'
import { type NameRow, namedInChanges, nameOfRows, namesStatement } from '@hq/shared/domain/row-names.ts'
import type { OutboxEntry, Replica } from '@hq/shared/sync/contract.ts'
import { z } from 'zod'
import type { Result } from './actions.ts'
import type { TokenAgent } from './tokens.ts'

/** Whose writes the caller may see. */
export type SyncCaller = { readonly kind: 'operator' } | { readonly kind: 'agent'; readonly agent: TokenAgent }

export const outboxQuery = z.object({ limit: z.coerce.number().int().min(1).max(1_000).default(100) })
export const retryBody = z.object({
  set: z.record(z.string(), z.record(z.string(), z.record(z.string(), z.unknown()))).optional(),
})

export interface SyncParts {
  readonly replica: Replica
  readonly gatewaySlug: string
  /** Milliseconds since 1970. */
  readonly now: () => number
}

const refuse = <T>(code: 'not_found' | 'not_yours' | 'wrong_state' | 'invalid', message: string): Result<T> => ({
  ok: false,
  code,
  message,
})
const done = <T>(value: T): Result<T> => ({ ok: true, value })

/** The condition on `sync.entries`, with the agent's id as $1 (null: all). */
const OWN = `($1::uuid is null or (actor_type = 'agent' and actor_id = $1::uuid))`
const idOf = (caller: SyncCaller): string | null => (caller.kind === 'agent' ? caller.agent.id : null)

export function syncActions({ replica, gatewaySlug, now }: SyncParts) {
  const stateOf = async (caller: SyncCaller, seq: number): Promise<string | undefined> => {
    const [row] = await replica.query<{ state: string }>(`select state from sync.outbox where seq = $2 and ${OWN}`, [
      idOf(caller),
      seq,
    ])
    return row?.state
  }
  /** Y1 */
  const mustBeRefused = async (caller: SyncCaller, seq: number): Promise<Result<never> | undefined> => {
    const state = await stateOf(caller, seq)
    if (state === undefined)
      return refuse(
        'not_found',
        `There is no change ${seq} of yours that waits or was refused; “hq sync outbox” shows them.`,
      )
    if (state !== 'rejected')
      return refuse(
        'wrong_state',
        `Change ${seq} was not refused; it is sent by itself when the server can be reached.`,
      )
    return undefined
  }

  return {
    async status(caller: SyncCaller): Promise<object> {
      const { connection, parked, initial, lastHeardAt, stalledSince } = replica.status()
      const [counts] = await replica.query<{ pending: number; rejected: number; oldest: string | null }>(
        `select count(*) filter (where state <> 'rejected')::int as pending, count(*) filter (where state = 'rejected')::int as rejected,
           min(created_at) filter (where state <> 'rejected') as oldest from sync.outbox where ${OWN}`,
        [idOf(caller)],
      )
      return {
        gateway: gatewaySlug,
        replica_id: replica.identity.replicaId,
        of: caller.kind === 'agent' ? { agent: caller.agent.slug } : 'everybody',
        connection,
        pending: counts?.pending ?? 0,
        oldest_pending_at: counts?.oldest ? new Date(counts.oldest).toISOString() : null,
        rejected: counts?.rejected ?? 0,
        parked,
        initial: { done: initial.done, rows: initial.rows, tables_done: initial.tablesDone, tables: initial.tables },
        last_heard_at: lastHeardAt,
        stalled_since: stalledSince,
        now: new Date(now()).toISOString(),
      }
    },

    async outbox(caller: SyncCaller, limit: number): Promise<object> {
      const rows = await replica.query<EntryRow>(
        `with picked as (select seq from sync.outbox where ${OWN} order by (state = 'rejected') desc, seq limit $2)
         select e.seq::int, e.state, e.created_at, e.actor_type, e.actor_id, e.code, e.message, e.patches,
           (select slug from agents a where a.id = e.actor_id) as agent
         from sync.entries e join picked using (seq) order by (e.state = 'rejected') desc, e.seq`,
        [idOf(caller), limit],
      )
      const [{ total } = { total: 0 }] = await replica.query<{ total: number }>(
        `select count(*)::int as total from sync.outbox where ${OWN}`,
        [idOf(caller)],
      )
      const entries = rows.map((row) => ({ ...row, patches: row.patches ?? [] }))
      const statement = namesStatement(namedInChanges(entries))
      const names = nameOfRows(statement ? await replica.query<NameRow>(statement.sql, statement.params) : [])
      return {
        total,
        changes: entries.map((entry) => ({
          seq: entry.seq,
          state: entry.state,
          what: describeChange(entry.patches, names),
          by: entry.agent ?? entry.actor_type,
          created_at: new Date(entry.created_at).toISOString(),
          ...(entry.state === 'rejected' && { rejection: { code: entry.code, message: entry.message } }),
          patches: entry.patches.map(({ table, id, op, set, base }) => ({ table, id, op, set, base })),
        })),
      }
    },

    async retry(
      caller: SyncCaller,
      seq: number,
      set: z.infer<typeof retryBody>['set'],
    ): Promise<Result<{ seq: number }>> {
      const refusal = await mustBeRefused(caller, seq)
      if (refusal) return refusal
      try {
        await replica.retry(seq, set)
      } catch (error) {
        // Such as a column that is not there, or a row that is gone: the caller's to know, and nothing was changed.
        return refuse('invalid', error instanceof Error ? error.message : String(error))
      }
      return done({ seq })
    },

    async discard(caller: SyncCaller, seq: number): Promise<Result<{ seq: number }>> {
      if (caller.kind !== 'operator')
        return refuse(
          'not_yours',
          'Only a person may discard a refused change. Try it again with other values, or ask one.',
        )
      const refusal = await mustBeRefused(caller, seq)
      if (refusal) return refusal
      await replica.discard(seq)
      return done({ seq })
    },

    async export(caller: SyncCaller): Promise<object> {
      const lines = await replica.query<{ line: string }>(
        `select to_jsonb(e)::text as line from sync.entries e where ${OWN} order by e.seq`,
        [idOf(caller)],
      )
      const [workspace] = await replica.query<{ name: string }>('select name from workspace limit 1')
      const head = {
        tenantId: replica.identity.tenantId,
        workspace: workspace?.name ?? 'workspace',
        person: caller.kind === 'agent' ? caller.agent.name : `everybody on gateway ${gatewaySlug}`,
        device: `gateway ${gatewaySlug}`,
        at: new Date(now()).toISOString(),
      }
      const texts = lines.map(({ line }) => line)
      return { name: outboxFileName(head), changes: texts.length, text: outboxFile(head, texts) }
    },
  }
}

interface EntryRow {
  readonly seq: number
  readonly state: OutboxEntry['state']
  readonly created_at: string
  readonly actor_type: string
  readonly actor_id: string | null
  readonly agent: string | null
  readonly code: string | null
  readonly message: string | null
  readonly patches: OutboxEntry['patches'] | null
}
