/**
 * Brings a replica's database to the newest schema.
 *
 * Also used alone, to build the migrated data directory that a browser starts from: nothing of an identity is in it.
 *
 * M1 Each migration runs once, in one transaction, in file-name order, and only its replica's part.
 * M2 Running it again, also after a crash in between, does nothing twice.
 */
import type { PGlite } from '@electric-sql/pglite'
import { inOrder, type Migration, sqlFor } from '../schema/migrations.ts'
import { tables } from '../schema/tables.ts'
import { attachTables } from './attach.ts'

/** Returns the name of the newest migration. */
export async function migrateReplica(db: PGlite, migrations: readonly Migration[]): Promise<string> {
  await db.exec(
    `set timezone = 'UTC'; set bytea_output = 'hex'; set datestyle = 'ISO'; set extra_float_digits = 1;
     create schema if not exists sync;
     create table if not exists sync.migrations (name text primary key, applied_at timestamptz not null default now());`,
  )
  const done = new Set(
    (await db.query<{ name: string }>('select name from sync.migrations')).rows.map((row) => row.name),
  )
  const ordered = inOrder(migrations)
  for (const migration of ordered) {
    if (done.has(migration.name)) continue
    const sql = sqlFor('replica', migration.sql)
    await db.transaction(async (tx) => {
      if (sql !== '') await tx.exec(sql)
      await tx.query('insert into sync.migrations (name) values ($1)', [migration.name])
    })
  }
  await attachTables(db, Object.values(tables))
  const newest = ordered.at(-1)?.name
  if (newest === undefined) throw new Error('openReplica needs the migrations of this version, and got none.')
  return newest
}
