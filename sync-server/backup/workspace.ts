/**
 * A whole workspace in one file, and back: the database, gateways' backups, and the secret that sessions are signed with. Encrypted with a passphrase.
 *
 *  W1 While people and gateways write: the database is that of one moment (tables.ts, D1).
 *  W2 A file is restored into an install that nobody uses yet, and only after all of it was read and found sound. Otherwise nothing is changed.
 *  W3 Not in it: the change log and the database's password, which the new install makes itself; and what lives on gateways (they have backups of their own). The
 *     gateway beside the server is such a gateway: after a restore it registers as a new one, or is restored with its recovery key.
 *  W4 Who had a session keeps it. Replicas notice the new epoch, fetch everything anew and send what still waits; what the server had acknowledged after the
 *     backup was made is gone.
 */
import { createReadStream } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type ArchiveEntry, extractArchive, type WrittenArchive, writeArchive } from '@hq/shared/backup/archive.ts'
import { BackupError } from '@hq/shared/backup/sealed-file.ts'
import { z } from 'zod'
import { readMigrations } from '../database/migrate.ts'
import type { Pool } from '../database/pool.ts'
import {
  assertEmpty,
  type DatabaseFacts,
  databaseSchema,
  exportDatabase,
  importDatabase,
  prepareSchema,
} from './tables.ts'

export interface WorkspaceOptions {
  readonly pool: Pool
  /** HQ_HOME. */
  readonly home: string
  readonly file: string
  readonly passphrase: string
}

const manifestSchema = z.object({ format: z.literal(1), version: z.string(), at: z.string() })

/** Only these of `HQ_HOME/server`, and everything in `blobs/`. */
const SERVER_FILES = ['auth-secret']
export const MIN_PASSPHRASE = 12

export function backupWorkspace(
  { pool, home, file, passphrase }: WorkspaceOptions,
  { version, now, signal }: { readonly version: string; readonly now: number; readonly signal?: AbortSignal },
): Promise<WrittenArchive> {
  if (passphrase.length < MIN_PASSPHRASE)
    throw new BackupError(
      'refused',
      `That passphrase is short. Take ${MIN_PASSPHRASE} characters or more: whoever has the file can guess for years.`,
    )
  const at = new Date(now).toISOString()
  return writeArchive(file, entriesOf(pool, join(home, 'server'), { format: 1, version, at }), {
    kind: 'workspace',
    secret: { passphrase },
    at,
    ...(signal && { signal }),
  })
}

async function* entriesOf(
  pool: Pool,
  folder: string,
  manifest: z.infer<typeof manifestSchema>,
): AsyncGenerator<ArchiveEntry> {
  yield { name: 'manifest.json', content: JSON.stringify(manifest) }
  yield* exportDatabase(pool)
  for (const name of SERVER_FILES) yield* fileOf(folder, name)
  // After the rows: a file whose row is not there is no harm, and a gateway may clear one away meanwhile.
  for (const name of await filesBelow(join(folder, 'blobs')))
    if (!name.endsWith('.new')) yield* fileOf(folder, `blobs/${name}`)
}

async function* fileOf(folder: string, name: string): AsyncGenerator<ArchiveEntry> {
  const path = join(folder, ...name.split('/'))
  const found = await stat(path).catch(absent)
  if (found) yield { name: `server/${name}`, content: { path, size: found.size }, mode: found.mode & 0o755 }
}

export interface RestoredWorkspace {
  /** When the backup was made, ISO. */
  readonly at: string
  readonly tables: number
  readonly rows: number
}

export async function restoreWorkspace({ pool, home, file, passphrase }: WorkspaceOptions): Promise<RestoredWorkspace> {
  await assertNoServer(pool)
  await assertEmpty(pool)
  const folder = join(home, 'server')
  const content = join(folder, 'restoring')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    await extractArchive(createReadStream(file), { kind: 'workspace', secret: { passphrase } }, content)
    const manifest = manifestSchema.safeParse(await json(content, 'manifest.json'))
    const facts = databaseSchema.safeParse(await json(content, 'database.json'))
    if (!manifest.success || !facts.success)
      throw new BackupError('newer', 'This backup was made by another version of HQ. Restore it with that version.')
    await prepareSchema(pool, facts.data, await readMigrations())
    // Files first: without its rows a file is no harm, and all of this can be done again.
    await moveFiles(join(content, 'server'), folder)
    const rows = await importDatabase(pool, facts.data, (table) => linesOf(content, table))
    return { at: manifest.data.at, tables: countUsed(facts.data), rows }
  } finally {
    await rm(content, { recursive: true, force: true })
  }
}

const countUsed = ({ tables }: DatabaseFacts): number => tables.filter(({ rows }) => rows > 0).length

/** A server that runs has the old epoch in its memory, and a change log of what is there now. */
async function assertNoServer(pool: Pool): Promise<void> {
  const { rowCount } = await pool.query(
    `select from pg_stat_activity where application_name = 'hq sync-server' and datname = current_database()`,
  )
  if (rowCount)
    throw new BackupError(
      'refused',
      'HQ is running on this database. Stop it (Ctrl-C in its window), then restore. Nothing was changed.',
    )
}

async function* linesOf(content: string, table: string): AsyncGenerator<string> {
  const folder = join(content, 'tables', table)
  for (const name of ((await readdir(folder).catch(absent)) ?? []).sort())
    yield await readFile(join(folder, name), 'utf8')
}

async function moveFiles(from: string, to: string): Promise<void> {
  for (const name of await filesBelow(from)) {
    const target = join(to, ...name.split('/'))
    await mkdir(dirname(target), { recursive: true, mode: 0o700 })
    await rename(join(from, ...name.split('/')), target)
  }
}

async function filesBelow(folder: string): Promise<string[]> {
  const all = (await readdir(folder, { recursive: true, withFileTypes: true }).catch(absent)) ?? []
  return all
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll('\\', '/'),
    )
    .sort()
}

const json = async (folder: string, name: string): Promise<unknown> =>
  JSON.parse((await readFile(join(folder, name), 'utf8').catch(absent)) ?? 'null') as unknown

function absent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
}
