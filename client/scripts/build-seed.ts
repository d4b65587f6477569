/**
 * Makes the database that a browser starts from: `client/dist-seed/seed.tar.gz` and `seed.json`.
 *
 * A fresh Postgres costs a browser 8 to 14 seconds; a data directory that is already migrated costs one or two. This one
 * holds the replica's schema and nothing else: no rows, no identity. It is slim (small WAL segments, no template
 * databases), because every file of it becomes an open file handle in the browser.
 *
 * Made anew only when something it is made of has changed (`seed.json` names the hash), so that builds stay fast.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { PGlite } from '@electric-sql/pglite'
import type { Migration } from '@hq/shared/schema/migrations.ts'
import { migrateReplica } from '@hq/shared/sync/migrate.ts'
import { CLIENT_SCHEMA_SQL } from '../src/replica/writes.ts'

const root = join(import.meta.dirname, '../..')
const out = join(import.meta.dirname, '../dist-seed')

/** What the client needs to know of the seed. */
export interface SeedInfo {
  /** Of everything that the seed is made of. */
  readonly hash: string
  /** Files in it, which decides how many handles the browser opens beforehand. */
  readonly files: number
  /** Newest migration in it. */
  readonly schemaVersion: string
}

/** Makes the seed unless it is up to date. */
export async function buildSeed(): Promise<SeedInfo> {
  const migrations = await readMigrations()
  const hash = await hashOfInputs(migrations)
  const known = await readSeedInfo()
  if (known?.hash === hash) return known
  const started = performance.now()
  const { tar, schemaVersion } = await makeDataDirectory(migrations)
  const info: SeedInfo = { hash, files: countFiles(tar), schemaVersion }
  const archive = gzipSync(tar, { level: 9 })
  await mkdir(out, { recursive: true })
  await replaceFile('seed.tar.gz', archive)
  await replaceFile('seed.json', JSON.stringify(info))
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  console.log(`seed.tar.gz: ${info.files} files, ${(archive.length / 1e6).toFixed(2)} MB, made in ${seconds} s`)
  return info
}

async function makeDataDirectory(
  migrations: readonly Migration[],
): Promise<{ tar: Uint8Array; schemaVersion: string }> {
  const db = await PGlite.create({ initDbStartParams: ['--wal-segsize=1'] })
  try {
    const schemaVersion = await migrateReplica(db, migrations)
    await db.exec(CLIENT_SCHEMA_SQL)
    await db.exec(`alter system set min_wal_size = '2MB'`)
    // Saves writing each segment of the log twice; it is for file systems that allocate late.
    await db.exec(`alter system set wal_init_zero = 'off'`)
    // Not VACUUM: it would add free-space and visibility files for every table.
    await db.exec('select pg_reload_conf(); analyze; checkpoint; select pg_switch_wal();')
    await db.exec(`update pg_database set datistemplate = false where datname in ('template0', 'template1')`)
    await db.exec('drop database template0')
    await db.exec('drop database template1')
    await db.exec('checkpoint')
    const dump = await db.dumpDataDir('none')
    return { tar: new Uint8Array(await dump.arrayBuffer()), schemaVersion }
  } finally {
    await db.close()
  }
}

async function readMigrations(): Promise<Migration[]> {
  const folder = join(root, 'migrations')
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql'))
  return Promise.all(names.map(async (name) => ({ name, sql: await readFile(join(folder, name), 'utf8') })))
}

async function hashOfInputs(migrations: readonly Migration[]): Promise<string> {
  const hash = createHash('sha256')
  for (const { name, sql } of [...migrations].sort((a, b) => a.name.localeCompare(b.name)))
    hash.update(name).update(sql)
  const sources = ['schema', 'sync'].map((folder) => join(root, 'shared', folder))
  for (const folder of sources) {
    const names = (await readdir(folder)).filter((name) => name.endsWith('.ts') && !name.includes('.test.'))
    // Of shared/sync only what makes the schema; the rest changes often and is not in the seed.
    const used = folder.endsWith('sync') ? names.filter((name) => ['attach.ts', 'migrate.ts'].includes(name)) : names
    for (const name of used.sort()) hash.update(name).update(await readFile(join(folder, name)))
  }
  const pglite = dirname(createRequire(import.meta.url).resolve('@electric-sql/pglite'))
  hash.update(await readFile(join(pglite, '../package.json')))
  hash.update(await readFile(import.meta.filename)).update(CLIENT_SCHEMA_SQL)
  return hash.digest('hex').slice(0, 32)
}

async function readSeedInfo(): Promise<SeedInfo | undefined> {
  try {
    return JSON.parse(await readFile(join(out, 'seed.json'), 'utf8')) as SeedInfo
  } catch {
    return undefined // never built, or half written: it is built now
  }
}

async function replaceFile(name: string, data: string | Uint8Array): Promise<void> {
  const temporary = join(out, `.${name}.${process.pid}`)
  await writeFile(temporary, data)
  await rename(temporary, join(out, name))
}

/** Regular files in an uncompressed tar. */
export function countFiles(tar: Uint8Array): number {
  let files = 0
  const text = (from: number, length: number): string => String.fromCharCode(...tar.subarray(from, from + length))
  for (let at = 0; at + 512 <= tar.length && tar[at] !== 0; ) {
    const size = Number.parseInt(text(at + 124, 12), 8) || 0
    const type = text(at + 156, 1)
    if (type === '0' || type === '\0') files += 1
    at += 512 + Math.ceil(size / 512) * 512
  }
  return files
}

if (import.meta.main) await buildSeed()
