import { mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { startEmbeddedPostgres } from './embedded.ts'
import { isReachable, reachableCopy } from './reachable.ts'

/** A private folder, as a clone in root's own home is. */
async function inPrivateFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'hq-private-'))
  try {
    await run(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const asRoot = process.getuid?.() === 0

test('R1, R2: what everybody can reach is used as it is, a private folder is copied once', () =>
  inPrivateFolder(async (folder) => {
    expect(await isReachable('/usr/bin/env')).toBe(true)
    const program = join(folder, 'program')
    await mkdir(program)
    await writeFile(join(program, 'run'), 'contents')
    expect(await isReachable(join(program, 'run'))).toBe(false)
    if (!asRoot) return // Only root has somewhere to copy it to.
    const version = folder.slice(-6)
    const copy = await reachableCopy(program, version)
    try {
      expect(copy).not.toBe(program)
      expect(await readFile(join(copy, 'run'), 'utf8')).toBe('contents')
      expect(await reachableCopy(program, version)).toBe(copy)
    } finally {
      await rm(copy, { recursive: true, force: true })
    }
  }))

test.runIf(asRoot)(
  'R3: as root, Postgres starts with a home below a private folder, keeps its data, and the home shows it',
  () =>
    inPrivateFolder(async (folder) => {
      const home = join(folder, 'deep', '.hq')
      const query = async (sql: string) => {
        const postgres = await startEmbeddedPostgres({ home, settings: { fsync: 'off' } })
        const client = new pg.Client({ connectionString: postgres.url })
        try {
          await client.connect()
          return (await client.query(sql)).rows
        } finally {
          await client.end()
          await postgres.stop()
        }
      }
      try {
        await query('create table kept as select 42 as answer')
        expect(await query('select answer from kept')).toEqual([{ answer: 42 }])
        expect((await stat(join(home, 'postgres'))).isDirectory()).toBe(true)
      } finally {
        await rm(await realpath(join(home, 'postgres')), { recursive: true, force: true })
      }
    }),
)
