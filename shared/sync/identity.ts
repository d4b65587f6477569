/**
 * What a database knows of itself when it is opened: whose it is, how much of it is loaded, what waits in its outbox.
 *
 * I1 The replica id is minted once per database. A database with another guard than the one it remembers is a copy and gets a new id; what is pending
 *    in it is numbered anew (two writers must never share numbers).
 * I2 A database is of one person or gateway and of one workspace, for ever.
 */
import type { PGlite } from '@electric-sql/pglite'
import type { TableName } from '../schema/tables.ts'
import type { OpenOptions } from './replica.ts'

/** Mints the identity of this database once, or finds that it is a copy. */
export async function establishIdentity({ db, identity, environment, guard }: OpenOptions): Promise<string> {
  const { kind, ownerId, tenantId } = identity
  await db.query(
    `insert into sync.replica (replica_id, tenant_id, kind, owner_id, guard) values ($1, $2, $3, $4, $5) on conflict do nothing`,
    [environment.randomUuid(), tenantId, kind, ownerId, guard ?? null],
  )
  const { rows } = await db.query<{ replica_id: string; tenant_id: string; owner_id: string; guard: string | null }>(
    'select replica_id, tenant_id, owner_id, guard from sync.replica',
  )
  const known = rows[0]
  if (!known) throw new Error('The identity of the replica could not be stored.')
  if (known.tenant_id !== tenantId || known.owner_id !== ownerId) {
    throw new Error(
      `This database belongs to another ${known.tenant_id === tenantId ? (kind === 'browser' ? 'person' : 'gateway') : 'workspace'}. Open another one for ${ownerId}.`,
    )
  }
  if (guard === undefined || known.guard === guard) return known.replica_id
  if (known.guard === null) {
    await db.query('update sync.replica set guard = $1', [guard])
    return known.replica_id
  }
  const replicaId = environment.randomUuid()
  environment.log('warn', 'This database is a copy of another one; it gets an identity of its own.', {
    from: known.replica_id,
    to: replicaId,
  })
  await db.transaction(async (tx) => {
    await tx.query('select sync.remint($1)', [replicaId])
    await tx.query('update sync.replica set guard = $1', [guard])
  })
  return replicaId
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
