/**
 * What a database knows of itself when it is opened: whose it is, how much of it is loaded, what waits in its outbox.
 * What follows from it is decided by `core/identity.ts` (I1–I3).
 */
import type { PGlite } from '@electric-sql/pglite'
import type { TableName } from '../schema/tables.ts'
import { foreignAck, identify, type Remembered } from './core/identity.ts'
import type { OpenOptions } from './replica.ts'

/** Mints the identity of this database once, or finds that it is a copy. */
export async function establishIdentity({ db, identity, environment, guard }: OpenOptions): Promise<string> {
  const { kind, ownerId, tenantId } = identity
  await db.query(
    `insert into sync.replica (replica_id, tenant_id, kind, owner_id, guard) values ($1, $2, $3, $4, $5) on conflict do nothing`,
    [environment.randomUuid(), tenantId, kind, ownerId, guard ?? null],
  )
  const { rows } = await db.query<
    Remembered & { ackSeq: number; ackMutation: string | null; next: number; mutation: string | null }
  >(
    `select r.replica_id as "replicaId", r.tenant_id as "tenantId", r.owner_id as "ownerId", r.guard,
       r.ack_seq::int8::float8 as "ackSeq", r.ack_mutation as "ackMutation", r.next_seq::float8 as next,
       (select o.mutation_id from sync.outbox o where o.seq = r.ack_seq) as mutation
     from sync.replica r`,
  )
  const known = rows[0]
  if (!known) throw new Error('The identity of the replica could not be stored.')
  const ack = { seq: known.ackSeq, lsn: undefined, mutationId: known.ackMutation ?? undefined }
  const found = identify(
    known,
    { tenantId, ownerId, kind, guard },
    foreignAck(ack, { next: known.next, mutationId: known.mutation ?? undefined }),
  )
  switch (found.type) {
    case 'foreign':
      throw new Error(found.message)
    case 'same':
      return known.replicaId
    case 'remember_guard':
      await db.query('update sync.replica set guard = $1', [found.guard])
      return known.replicaId
    case 'copy': {
      const replicaId = environment.randomUuid()
      environment.log('warn', 'This database is a copy of another one; it gets an identity of its own.', {
        from: known.replicaId,
        to: replicaId,
      })
      await db.transaction(async (tx) => {
        await tx.query('select sync.remint($1)', [replicaId])
        await tx.query('update sync.replica set guard = coalesce($1, guard)', [found.guard ?? null])
      })
      return replicaId
    }
  }
}

export interface Counts {
  pending: number
  rejected: number
  oldestPendingAt: string | null
}

export async function readCounts(db: PGlite): Promise<Counts> {
  const { rows } = await db.query<{ pending: number; rejected: number; oldest: number | null }>(
    `select count(*) filter (where state <> 'rejected')::int as pending, count(*) filter (where state = 'rejected')::int as rejected,
       (extract(epoch from min(created_at) filter (where state <> 'rejected')) * 1000)::float8 as oldest from sync.outbox`,
  )
  const row = rows[0]
  return {
    pending: row?.pending ?? 0,
    rejected: row?.rejected ?? 0,
    oldestPendingAt: row?.oldest == null ? null : new Date(row.oldest).toISOString(),
  }
}

export async function loadedTables(db: PGlite, wanted: readonly TableName[]): Promise<Set<TableName>> {
  const { rows } = await db.query<{ table_name: TableName }>('select table_name from sync.shapes where loaded')
  const known = new Set(rows.map((row) => row.table_name))
  return new Set(wanted.filter((table) => known.has(table)))
}
