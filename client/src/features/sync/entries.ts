/** The outbox as the sync page reads it: counted in whole, listed in parts, because a month offline is thousands of changes. */
import type { TableName } from '@hq/shared/schema/tables.ts'
import type { OutboxEntry, OutboxState } from '@hq/shared/sync/contract.ts'
import type { RejectionCode } from '@hq/shared/sync/protocol.ts'
import { useMemo } from 'react'
import { useRows } from '../../replica/hooks.ts'

interface EntryRow {
  readonly seq: number
  readonly mutation_id: string
  readonly state: OutboxState
  readonly created_at: string
  readonly actor_type: 'human' | 'agent' | 'system'
  readonly actor_id: string | null
  readonly run_id: string | null
  readonly code: RejectionCode | null
  readonly message: string | null
  readonly patches: OutboxEntry['patches'] | null
}

export interface WaitingGroup {
  readonly table: TableName
  readonly count: number
  /** The server has them; their echo is on the way. */
  readonly accepted: number
  readonly since: string
}

const COLUMNS =
  'e.seq::int, e.mutation_id, e.state, e.created_at, e.actor_type, e.actor_id, e.run_id, e.code, e.message, e.patches'
/** A change of several rows is where its first row is. */
const FIRST = 'lateral (select p.table_name from sync.patches p where p.seq = o.seq order by p.n limit 1) f'

const GROUPS = `select f.table_name as "table", count(*)::int as count, (count(*) filter (where o.state = 'accepted'))::int as accepted, min(o.created_at) as since
  from sync.outbox o, ${FIRST} where o.state <> 'rejected' group by 1 order by 2 desc, 1`
const WAITING = `with picked as (select o.seq from sync.outbox o, ${FIRST} where o.state <> 'rejected' and f.table_name = $1
    order by (o.seq = $3) desc, o.seq limit $2)
  select ${COLUMNS} from sync.entries e join picked using (seq) order by (e.seq = $3) desc, e.seq`
const REJECTED = `with picked as (select seq from sync.outbox where state = 'rejected' order by (seq = $2) desc, seq limit $1)
  select ${COLUMNS} from sync.entries e join picked using (seq) order by (e.seq = $2) desc, e.seq`

const SYNC = { tables: ['sync'] } as const
const NO_SEQ = -1

export const useWaitingGroups = () => useRows<WaitingGroup>(GROUPS, undefined, SYNC)

/** The first `most` of a group, oldest first; the one that was asked for before all others. */
export function useWaiting(table: TableName, most: number, target: number | undefined): readonly OutboxEntry[] {
  return useEntries(WAITING, [table, most, target ?? NO_SEQ]).entries
}

export function useRejected(most: number, target: number | undefined) {
  return useEntries(REJECTED, [most, target ?? NO_SEQ])
}

function useEntries(sql: string, params: readonly (string | number)[]) {
  const { rows, ready } = useRows<EntryRow>(sql, params, SYNC)
  return useMemo(() => ({ entries: rows.map(toEntry), ready }), [rows, ready])
}

const toEntry = (row: EntryRow): OutboxEntry => ({
  seq: row.seq,
  mutationId: row.mutation_id,
  state: row.state,
  createdAt: row.created_at,
  actor: { type: row.actor_type, id: row.actor_id },
  runId: row.run_id,
  patches: row.patches ?? [],
  rejection: row.state === 'rejected' ? { code: row.code ?? 'invalid', message: row.message ?? '' } : null,
})
