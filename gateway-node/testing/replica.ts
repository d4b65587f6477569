/** A replica over PGlite without a server behind it: writes, reads and change notices as the contract says; it never goes online. */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { PGlite, types } from '@electric-sql/pglite'
import { sqlFor } from '@hq/shared/schema/migrations.ts'
import { type TableName, tableNames } from '@hq/shared/schema/tables.ts'
import type { Changes, Replica, ReplicaIdentity, SqlValue, SyncStatus, Tx, Written } from '@hq/shared/sync/contract.ts'

const iso = (text: string): string => new Date(text).toISOString()

const STATUS: SyncStatus = {
  connection: 'offline',
  pending: 0,
  oldestPendingAt: null,
  rejected: 0,
  parked: null,
  initial: { done: true, rows: 0, tablesDone: 0, tables: 0 },
  lastHeardAt: null,
  stalledSince: null,
}

let shared: Promise<PGlite> | undefined

/** In memory, one database per test file: a new replica empties it, so only one may be in use at a time. */
export async function openTestReplica(identity: Partial<ReplicaIdentity> & { ownerId: string }): Promise<Replica> {
  shared ??= createDatabase()
  const db = await shared
  await db.exec(`truncate ${tableNames.map((name) => `"${name}"`).join(', ')}`)
  const listeners = new Set<(changes: Changes) => void>()
  let seq = 0

  async function write<T>(work: (tx: Tx) => Promise<T>): Promise<Written<T>> {
    const changes = new Map<TableName, Set<string>>()
    const result = await db.transaction(async (tx) => {
      await tx.exec('truncate test_changes')
      const value = await work({
        query: async (sql, params) => (await tx.query(sql, params?.map(plain))).rows as never,
      })
      for (const { tab, id } of (await tx.query<{ tab: TableName; id: string }>('select * from test_changes')).rows) {
        changes.set(tab, (changes.get(tab) ?? new Set()).add(id))
      }
      return value
    })
    if (changes.size === 0) return { result, seq: undefined }
    seq += 1
    for (const listener of listeners) listener(changes)
    return { result, seq }
  }

  return {
    identity: { replicaId: randomUUID(), tenantId: randomUUID(), kind: 'gateway', ...identity },
    query: async (sql, params) => (await db.query(sql, params?.map(plain))).rows as never,
    write,
    writeAll: (statements) =>
      write(async (tx) => {
        const results: Record<string, unknown>[][] = []
        for (const { sql, params } of statements) results.push(await tx.query(sql, params))
        return results
      }),
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    status: () => STATUS,
    onStatus: () => () => undefined,
    outbox: async () => [],
    retry: async () => undefined,
    discard: async () => undefined,
    close: async () => listeners.clear(),
  }
}

const plain = (value: SqlValue): unknown => (value instanceof Date ? value.toISOString() : value)

async function createDatabase(): Promise<PGlite> {
  const db = await PGlite.create({
    parsers: { [types.TIMESTAMPTZ]: iso, [types.INT8]: Number, [types.NUMERIC]: Number, [types.DATE]: (text) => text },
  })
  const schema = await readFile(new URL('../../migrations/0001_schema.sql', import.meta.url), 'utf8')
  await db.exec(sqlFor('replica', schema))
  await db.exec(`create table test_changes (tab text, id uuid);
    create function test_note() returns trigger language plpgsql as $$
    begin insert into test_changes values (tg_table_name, new.id); return null; end $$;`)
  await db.exec(
    tableNames
      .map(
        (name) =>
          `create trigger test_note after insert or update on "${name}" for each row execute function test_note();`,
      )
      .join('\n'),
  )
  return db
}
