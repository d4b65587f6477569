/**
 * Notices that the database was put back to an older state, where no engine of ours follows its log (ELECTRIC_URL): the server leaves a mark in the
 * database and the same in a file beside it.
 *
 *  1. A mark is a number that only rises and a random word. It is written to the database first, then to the file; a crash in between leaves the
 *     file one behind, which is no sign of anything.
 *  2. Restored is: another cluster or timeline, a mark of a lower number or another word under the same one, or a write-ahead log that ends before the
 *     place where it has been seen already. `onRestored` is called once for it, before the next mark.
 *  3. What a backup does not have is at most what came within `everyMs` of it: a database put back by less, that has already gone on as far, is not
 *     noticed.
 *  4. A database that can't be asked is no older one: it is asked again.
 */
import { randomBytes } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import type { Pool } from './pool.ts'

export interface PastOptions {
  readonly pool: Pool
  /** Where the server keeps its half. */
  readonly file: string
  readonly onRestored: (reason: string) => Promise<void>
  readonly onError: (error: unknown) => void
  /** Default 30 s. */
  readonly everyMs?: number
}

export interface Past {
  /** Looks, and leaves the next mark. */
  look(): Promise<void>
  stop(): Promise<void>
}

const markSchema = z.object({ number: z.int().nonnegative(), word: z.string() })
const seenSchema = markSchema.extend({ system: z.string(), timeline: z.int(), lsn: z.string() })
type Mark = z.infer<typeof markSchema>
type Seen = z.infer<typeof seenSchema>

/** Looks once before it resolves. */
export async function watchPast({ pool, file, onRestored, onError, everyMs = 30_000 }: PastOptions): Promise<Past> {
  const look = async (): Promise<void> => {
    const before = await readSeen(file)
    const present = await ask(pool)
    const reason = before && (await whyRestored(pool, before, present))
    if (reason) await onRestored(reason)
    await writeSeen(file, await leave(pool, Math.max(present.mark?.number ?? 0, before?.number ?? 0) + 1))
  }
  await look()

  let stopped = false
  let looking: Promise<void> = Promise.resolve()
  const timer = setInterval(() => {
    looking = looking.then(() => (stopped ? undefined : look())).catch(onError)
  }, everyMs)
  return {
    look: () => {
      const done = looking.then(look)
      looking = done.catch(() => undefined) // its caller is told
      return done
    },
    async stop() {
      stopped = true
      clearInterval(timer)
      await looking
    },
  }
}

interface Present {
  readonly system: string
  readonly timeline: number
  readonly mark: Mark | undefined
}

const PLACE = `select s.system_identifier::text as system, c.timeline_id as timeline from pg_control_system() s, pg_control_checkpoint() c`

async function ask(pool: Pool): Promise<Present> {
  const { rows } = await pool.query<{ system: string; timeline: number; mark: unknown }>(
    `select p.*, (select value from server_state where key = 'mark') as mark from (${PLACE}) p`,
  )
  const row = rows[0]
  if (!row) throw new Error('Postgres said nothing about itself.')
  return { ...row, mark: markSchema.safeParse(row.mark).data }
}

async function whyRestored(pool: Pool, before: Seen, { system, timeline, mark }: Present): Promise<string | undefined> {
  if (system !== before.system) return 'this is another database'
  if (timeline !== before.timeline) return 'the database was restored or promoted'
  if (!mark || mark.number < before.number) return 'the database is older than what it was seen to be'
  if (mark.number === before.number && mark.word !== before.word) return 'the database has another past'
  const { rows } = await pool.query<{ behind: boolean }>('select pg_current_wal_insert_lsn() < $1::pg_lsn as behind', [
    before.lsn,
  ])
  return rows[0]?.behind ? 'the log of the database ends before a place that it was at already' : undefined
}

async function leave(pool: Pool, number: number): Promise<Seen> {
  const mark = { number, word: randomBytes(12).toString('base64url') }
  await pool.query(
    `insert into server_state (key, value) values ('mark', $1::jsonb) on conflict (key) do update set value = excluded.value`,
    [JSON.stringify(mark)],
  )
  const { rows } = await pool.query<{ system: string; timeline: number; lsn: string }>(
    `select p.*, pg_current_wal_flush_lsn()::text as lsn from (${PLACE}) p`,
  )
  return seenSchema.parse({ ...mark, ...rows[0] })
}

async function readSeen(file: string): Promise<Seen | undefined> {
  try {
    return seenSchema.safeParse(JSON.parse(await readFile(file, 'utf8'))).data
  } catch (error) {
    // The first start; or half a file, from which nothing can be told.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function writeSeen(file: string, seen: Seen): Promise<void> {
  await writeFile(`${file}.new`, `${JSON.stringify(seen)}\n`, { mode: 0o600, flush: true })
  await rename(`${file}.new`, file)
}
