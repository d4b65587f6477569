/**
 * `npm run backup -- FILE` and `npm run restore -- FILE`: a whole workspace (workspace.ts). Backs up while HQ runs or not; restores into an install that is empty and
 * doesn't run. Environment: HQ_HOME (.hq), DATABASE_URL, and the passphrase from the file that HQ_BACKUP_PASSPHRASE_FILE names, from HQ_BACKUP_PASSPHRASE, or
 * from the terminal (not shown).
 *
 * Exit codes: 0 done · 1 a defect · 2 something a person has to put right.
 */
import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { BackupError } from '@hq/shared/backup/sealed-file.ts'
import pg from 'pg'
import { PostgresStartError, startEmbeddedPostgres } from '../database/embedded.ts'
import { MigrationError } from '../database/migrate.ts'
import { VERSION } from '../server.ts'
import { backupWorkspace, restoreWorkspace } from './workspace.ts'

const { env } = process
const home = resolve(env['HQ_HOME'] || join(import.meta.dirname, '../../.hq'))
const [what, file, ...more] = process.argv.slice(2)
const stop = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort(new Error(signal)))

try {
  if ((what !== 'backup' && what !== 'restore') || !file || more.length > 0)
    throw new BackupError('refused', 'Usage: npm run backup -- FILE, or npm run restore -- FILE')
  await (what === 'backup' ? backup(resolve(file)) : restore(resolve(file)))
} catch (error) {
  const known = [BackupError, PostgresStartError, MigrationError].some((kind) => error instanceof kind)
  console.error(stop.signal.aborted ? 'Stopped; there is no file.' : known ? (error as Error).message : error)
  process.exitCode = known || stop.signal.aborted ? 2 : 1
}

async function backup(path: string): Promise<void> {
  if (existsSync(path))
    throw new BackupError('refused', `${path} is there already. Choose another name; a backup never replaces a file.`)
  if (!env['DATABASE_URL'] && !existsSync(join(home, 'postgres')))
    throw new BackupError(
      'refused',
      `There is no HQ in ${home}. Name its folder in HQ_HOME, or its database in DATABASE_URL.`,
    )
  const passphrase = await passphraseOf(true)
  const { size } = await withDatabase((pool) =>
    backupWorkspace({ pool, home, file: path, passphrase }, { version: VERSION, now: Date.now(), signal: stop.signal }),
  )
  console.log(
    `The workspace is in ${path} (${Math.ceil(size / 1024 / 1024)} MiB). Without the passphrase nobody can read it, you neither. Gateways have backups of their own.`,
  )
}

async function restore(path: string): Promise<void> {
  if (!existsSync(path)) throw new BackupError('not_a_backup', `There is no file ${path}.`)
  const passphrase = await passphraseOf(false)
  const { at, rows, tables } = await withDatabase((pool) => restoreWorkspace({ pool, home, file: path, passphrase }))
  console.log(`Restored: the workspace of ${at}, ${rows} rows in ${tables} tables. Start it with: npm start`)
}

/** On the database that DATABASE_URL names, the one of an HQ that runs on this folder, or one that is started for it. */
async function withDatabase<T>(work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  await mkdir(home, { recursive: true })
  const known = env['DATABASE_URL'] || (await runningPostgres(home))
  const own = known ? undefined : await startEmbeddedPostgres({ home })
  const pool = new pg.Pool({
    connectionString: known ?? own?.url,
    max: 3,
    options: '-c TimeZone=UTC -c DateStyle=ISO',
    application_name: 'hq backup',
  })
  pool.on('error', () => undefined) // told by the statement that needed it
  try {
    return await work(pool)
  } finally {
    await pool.end()
    await own?.stop()
  }
}

/** Its address, when one answers. */
async function runningPostgres(home: string): Promise<string | undefined> {
  try {
    const port = Number((await readFile(join(home, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[3])
    const password = (await readFile(join(home, 'server', 'postgres-password'), 'utf8')).trim()
    const url = `postgres://hq:${encodeURIComponent(password)}@127.0.0.1:${port}/hq`
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.end()
    return url
  } catch {
    return undefined // none was started, or it was killed: one is started then
  }
}

async function passphraseOf(isNew: boolean): Promise<string> {
  const path = env['HQ_BACKUP_PASSPHRASE_FILE']
  if (path) return (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
  const given = env['HQ_BACKUP_PASSPHRASE']
  if (given) return given
  if (!process.stdin.isTTY)
    throw new BackupError('refused', 'A passphrase is needed: name a file with it in HQ_BACKUP_PASSPHRASE_FILE.')
  const first = await askUnseen('Passphrase of the backup (not shown): ')
  if (isNew && (await askUnseen('Once more: ')) !== first)
    throw new BackupError('refused', 'Those were two different ones.')
  return first
}

async function askUnseen(question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  try {
    return await terminal.question('', { signal: stop.signal })
  } finally {
    terminal.close()
    process.stderr.write('\n')
  }
}
