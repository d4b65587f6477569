/**
 * The database of a workspace as files, and back: no pg_dump, which the embedded Postgres does not bring.
 *
 *  D1 All tables are read in one REPEATABLE READ transaction: as the database was at one moment, whatever is written meanwhile.
 *  D2 Every value travels as Postgres writes it as text, and is read by the type it had. Null stays null. Each row is one JSON array per line.
 *  D3 The schema is that of the migrations which the backup names, and comes from this program's files; what is newer here is applied at the next start.
 *  D4 Into an empty install only, in one transaction: all of it or nothing. Tables are filled in the order of their references.
 *  D5 The restored database has a new epoch: replicas fetch it anew, and send what they still have.
 */
import { createHash } from 'node:crypto'
import type { ArchiveEntry } from '@hq/shared/backup/archive.ts'
import { BackupError } from '@hq/shared/backup/sealed-file.ts'
import type { Migration } from '@hq/shared/schema/migrations.ts'
import { quote } from '@hq/shared/schema/sql.ts'
import { z } from 'zod'
import { migrate } from '../database/migrate.ts'
import { type Client, type Pool, transaction } from '../database/pool.ts'
import { renewEpoch } from '../database/seed.ts'

const columnSchema = z.object({ name: z.string(), type: z.string() })
export const databaseSchema = z.object({
  migrations: z.array(z.object({ name: z.string(), hash: z.string() })),
  tables: z.array(z.object({ name: z.string(), columns: z.array(columnSchema), rows: z.int() })),
})
export type DatabaseFacts = z.infer<typeof databaseSchema>
type Column = z.infer<typeof columnSchema>

const BATCH = 1_000
const MIGRATIONS = '_migrations'

/** Entries `tables/<name>/<n>.jsonl`, and last `database.json`, which says how many rows each had. */
export async function* exportDatabase(pool: Pool): AsyncGenerator<ArchiveEntry> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    await client.query('begin isolation level repeatable read read only')
    const names = await tablesOf(client)
    if (names.length === 0)
      throw new BackupError('refused', 'There is no workspace in this database. Check HQ_HOME and DATABASE_URL.')
    const { rows: migrations } = await client.query<{ name: string; hash: string }>(
      `select name, hash from ${MIGRATIONS} order by name`,
    )
    const tables: DatabaseFacts['tables'] = []
    for (const name of names) {
      const columns = await columnsOf(client, name)
      let rows = 0
      const texts = columns.map(({ name: column }) => `${quote(column)}::text`).join(', ')
      await client.query(
        `declare backup no scroll cursor for select json_build_array(${texts})::text as line from ${quote(name)}`,
      )
      for (let part = 1; ; part++) {
        const { rows: lines } = await client.query<{ line: string }>(`fetch ${BATCH} from backup`)
        if (lines.length === 0) break
        rows += lines.length
        yield {
          name: `tables/${name}/${String(part).padStart(6, '0')}.jsonl`,
          content: lines.map(({ line }) => `${line}\n`).join(''),
        }
      }
      await client.query('close backup')
      tables.push({ name, columns, rows })
    }
    await client.query('commit')
    yield { name: 'database.json', content: JSON.stringify({ migrations, tables } satisfies DatabaseFacts) }
  } catch (error) {
    await client.query('rollback').catch((failure: unknown) => {
      broken = failure instanceof Error ? failure : new Error(String(failure))
    })
    throw error
  } finally {
    client.release(broken)
  }
}

/** Those of the application, in the schema that it works in. */
async function tablesOf(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'public' and c.relkind = 'r' and c.relname <> $1 order by 1`,
    [MIGRATIONS],
  )
  return rows.map(({ name }) => name)
}

async function columnsOf(client: Client, table: string): Promise<Column[]> {
  const { rows } = await client.query<Column>(
    `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
      where attrelid = ('public.' || quote_ident($1))::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [table],
  )
  return rows
}

/** What a start of the server has put there before anybody came. */
const MADE_BY_A_START = ['tenants', 'workspace', 'server_state', 'gateway_registration_tokens']

/** Throws unless nobody has used this database. An install that was only started counts as empty. */
export async function assertEmpty(pool: Pool): Promise<void> {
  const client = await pool.connect()
  try {
    for (const name of await tablesOf(client)) {
      const used =
        name === 'workspace'
          ? ' where initialized'
          : name === 'gateway_registration_tokens'
            ? ' where created_by is not null'
            : ''
      if (used === '' && MADE_BY_A_START.includes(name)) continue
      const { rowCount } = await client.query(`select from ${quote(name)}${used} limit 1`)
      if (rowCount)
        throw new BackupError(
          'refused',
          `This install is in use (there is something in “${name}”), and a backup is restored into an empty one only. Name a new folder: HQ_HOME=/path/to/new npm run restore -- FILE. Nothing was changed.`,
        )
    }
  } finally {
    client.release()
  }
}

/** The schema that the backup was made with (D3). */
export async function prepareSchema(pool: Pool, facts: DatabaseFacts, migrations: readonly Migration[]): Promise<void> {
  const known = new Set(migrations.map(({ name }) => name))
  const foreign = facts.migrations.find(({ name }) => !known.has(name))
  if (foreign)
    throw new BackupError(
      'newer',
      `This backup was made by a newer HQ: it has the migration ${foreign.name}, which this version doesn’t know. Restore it with that version. Nothing was changed.`,
    )
  const wanted = new Set(facts.migrations.map(({ name }) => name))
  await migrate(
    pool,
    migrations.filter(({ name }) => wanted.has(name)),
  )
  const { rows } = await pool.query<{ name: string; hash: string }>(`select name, hash from ${MIGRATIONS}`)
  const here = new Map(rows.map(({ name, hash }) => [name, hash]))
  const other = facts.migrations.find(({ name, hash }) => here.get(name) !== hash)
  if (other || here.size !== facts.migrations.length)
    throw new BackupError(
      'refused',
      `The database was started by another version of HQ than made this backup${other ? ` (migrations/${other.name} differs)` : ''}. Name a new, empty folder in HQ_HOME. Nothing was restored.`,
    )
}

/** The lines of a table, in pieces. */
export type TableReader = (table: string) => AsyncIterable<string>

/** (D4, D5) The number of rows. */
export async function importDatabase(pool: Pool, facts: DatabaseFacts, read: TableReader): Promise<number> {
  let total = 0
  await transaction(pool, async (client) => {
    const names = await tablesOf(client)
    const missing = facts.tables.find(({ name }) => !names.includes(name))
    if (missing)
      throw new BackupError('refused', `This version of HQ has no table ${missing.name}. Nothing was restored.`)
    await client.query('set constraints all deferred')
    for (const name of MADE_BY_A_START.toReversed()) await client.query(`delete from ${quote(name)}`)
    for (const { name, columns, rows } of await inOrder(client, facts.tables)) {
      const have = new Map((await columnsOf(client, name)).map((column) => [column.name, column.type]))
      const strange = columns.find((column) => have.get(column.name) !== column.type)
      if (strange)
        throw new BackupError(
          'refused',
          `The column ${name}.${strange.name} is another one here. Nothing was restored.`,
        )
      let count = 0
      for await (const lines of read(name)) count += await insertLines(client, name, columns, lines)
      if (count !== rows)
        throw new BackupError(
          'damaged',
          `The backup should have ${rows} rows of ${name} and has ${count}. Nothing was restored.`,
        )
      total += count
    }
    await client.query('set constraints all immediate')
  })
  await renewEpoch(pool)
  return total
}

async function insertLines(client: Client, table: string, columns: readonly Column[], lines: string): Promise<number> {
  const rows = lines.split('\n').filter((line) => line !== '')
  if (rows.length === 0) return 0
  // Types are the database's own words (`strange`, above), never the file's alone.
  const values = columns.map(({ type }, index) => `(r->>${index})::${type}`).join(', ')
  const { rowCount } = await client.query(
    `insert into ${quote(table)} (${columns.map(({ name }) => quote(name)).join(', ')})
     overriding system value select ${values} from json_array_elements($1::json) r`,
    [`[${rows.join(',')}]`],
  )
  return rowCount ?? 0
}

/** References that are checked at once want their target first. */
async function inOrder(client: Client, tables: DatabaseFacts['tables']): Promise<DatabaseFacts['tables']> {
  const { rows } = await client.query<{ from: string; to: string }>(
    `select f.relname as from, t.relname as to from pg_constraint c join pg_class f on f.oid = c.conrelid join pg_class t on t.oid = c.confrelid
      where c.contype = 'f' and not c.condeferrable and f.oid <> t.oid`,
  )
  const ordered: DatabaseFacts['tables'] = []
  const left = new Map(tables.map((table) => [table.name, table]))
  while (left.size > 0) {
    const free = [...left.values()].filter(({ name }) => !rows.some(({ from, to }) => from === name && left.has(to)))
    if (free.length === 0) throw new Error(`Tables refer to one another in a circle: ${[...left.keys()].join(', ')}`)
    for (const table of free) {
      ordered.push(table)
      left.delete(table.name)
    }
  }
  return ordered
}

/** All of a table in an order of its own: for comparing two databases. */
export async function fingerprintOf(pool: Pool, table: string): Promise<string> {
  const { rows } = await pool.query<{ line: string }>(
    `select to_jsonb(t)::text as line from ${quote(table)} t order by 1`,
  )
  return createHash('sha256')
    .update(rows.map(({ line }) => line).join('\n'))
    .digest('hex')
}
