/**
 * Brings a replica's database to the newest schema.
 *
 * Also used alone, to build the migrated data directory that a browser starts from: nothing of an identity is in it.
 *
 * B1 Each migration runs once, in one transaction, in file-name order, and only its replica's part.
 * B2 Running it again, also after a crash in between, does nothing twice.
 * B3 A database that was made by another text of a migration than the one of this version is refused, untouched: nobody knows what is in it. Its owner
 *    makes a new one and carries over what waited (adapter-node.ts, the browser's engine.ts).
 */
import type { PGlite } from '@electric-sql/pglite'
import { inOrder, type Migration, sqlFor } from '../schema/migrations.ts'
import { tables } from '../schema/tables.ts'
import { attachTables, fingerprintOf } from './attach.ts'

/** B3 */
export class EditedMigrationError extends Error {
  override name = 'EditedMigrationError'
  constructor(migration: string) {
    super(`This database was made by another version of ${migration} than the one here, so it cannot be used with it.`)
  }
}

/** Returns the name of the newest migration. */
export async function migrateReplica(db: PGlite, migrations: readonly Migration[]): Promise<string> {
  await db.exec(
    `set timezone = 'UTC'; set bytea_output = 'hex'; set datestyle = 'ISO'; set extra_float_digits = 1;
     create schema if not exists sync;
     create table if not exists sync.migrations (name text primary key, applied_at timestamptz not null default now());
     alter table sync.migrations add column if not exists fingerprint text not null default '';`,
  )
  const { rows } = await db.query<{ name: string; fingerprint: string }>(
    'select name, fingerprint from sync.migrations',
  )
  const done = new Map(rows.map(({ name, fingerprint }) => [name, fingerprint]))
  const ordered = inOrder(migrations)
  for (const migration of ordered) {
    const sql = sqlFor('replica', migration.sql)
    const fingerprint = fingerprintOf(sql)
    const known = done.get(migration.name)
    if (known !== undefined && known !== fingerprint) throw new EditedMigrationError(migration.name)
    if (known !== undefined) continue
    await db.transaction(async (tx) => {
      if (sql !== '') await tx.exec(sql)
      await tx.query('insert into sync.migrations (name, fingerprint) values ($1, $2)', [migration.name, fingerprint])
    })
  }
  await attachTables(db, Object.values(tables))
  const newest = ordered.at(-1)?.name
  if (newest === undefined) throw new Error('openReplica needs the migrations of this version, and got none.')
  return newest
}
