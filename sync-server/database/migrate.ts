/**
 * Brings a database to the schema of this program.
 *
 *  1. Each file of `migrations/` is applied once, in the order of names, in one transaction with its entry in `_migrations`.
 *  2. A file that was edited after it had been applied is an error that names it: what is in the database would no longer be what the
 *     file says.
 *  3. A database that has migrations this program doesn't know (it was opened by a newer HQ) is refused, untouched.
 *  4. Two servers that start at once don't apply twice: an advisory lock is held meanwhile.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inOrder, type Migration, sqlFor } from '@hq/shared/schema/migrations.ts'
import { type Pool, transaction } from './pool.ts'

export interface MigrationReport {
  readonly applied: readonly string[]
  /** Name of the newest migration in the database. */
  readonly version: string
}

export class MigrationError extends Error {}

export const migrationsFolder = join(import.meta.dirname, '../../migrations')

export async function readMigrations(folder = migrationsFolder): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql'))
  return inOrder(
    await Promise.all(names.map(async (name) => ({ name, sql: await readFile(join(folder, name), 'utf8') }))),
  )
}

const LOCK = 7_305_001

export async function migrate(pool: Pool, migrations: readonly Migration[]): Promise<MigrationReport> {
  const client = await pool.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [LOCK])
    await client.query(
      `create table if not exists _migrations (name text primary key, hash text not null, applied_at timestamptz not null default now())`,
    )
    const { rows } = await client.query<{ name: string; hash: string }>('select name, hash from _migrations')
    const present = new Map(rows.map(({ name, hash }) => [name, hash]))
    check(present, migrations)
    const applied: string[] = []
    for (const migration of migrations) {
      if (present.has(migration.name)) continue
      await apply(pool, migration)
      applied.push(migration.name)
    }
    return { applied, version: migrations.at(-1)?.name ?? '' }
  } finally {
    // The lock is the connection's: closing it frees the lock even when the unlock fails.
    await client.query('select pg_advisory_unlock($1)', [LOCK]).then(
      () => client.release(),
      (error: Error) => client.release(error),
    )
  }
}

const hashOf = ({ sql }: Migration): string => createHash('sha256').update(sqlFor('server', sql)).digest('hex')

function check(present: ReadonlyMap<string, string>, migrations: readonly Migration[]): void {
  const known = new Map(migrations.map((migration) => [migration.name, migration]))
  for (const [name, hash] of present) {
    const migration = known.get(name)
    if (!migration) {
      throw new MigrationError(
        `This database was last opened by a newer HQ: it has the migration ${name}, which this version doesn't know. ` +
          'Nothing was changed. Start the newer version, or use another HQ_HOME or DATABASE_URL.',
      )
    }
    if (hashOf(migration) !== hash) {
      throw new MigrationError(
        `migrations/${name} was edited after it had been applied to this database. Put the old text back and write the change ` +
          'as a new file with a higher number. (For a throw-away database: delete it and start again.)',
      )
    }
  }
}

async function apply(pool: Pool, migration: Migration): Promise<void> {
  const sql = sqlFor('server', migration.sql)
  try {
    await transaction(pool, async (client) => {
      if (sql) await client.query(sql)
      await client.query('insert into _migrations (name, hash) values ($1, $2)', [migration.name, hashOf(migration)])
    })
  } catch (error) {
    throw new MigrationError(
      `migrations/${migration.name} failed: ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    )
  }
}
