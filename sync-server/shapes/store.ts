/**
 * The durable change log: SQLite in WAL mode, one writer, one process.
 *
 *  1. `commit` is atomic: log blocks, dropped shapes and the stream position change together or not at all.
 *  2. A commit survives the death of the process; after `sync` it survives the death of the machine. Only what was synced
 *     may be acknowledged to Postgres.
 *  3. Blocks beyond the stored position are the beginning of a transaction whose end never came: `open` deletes them.
 *  4. The file is locked: a second process on the same folder is refused.
 *  5. A handle is never given out twice: the clock part of the last one is stored, and only grows.
 *  6. A folder that was copied or restored is told by its file: inode and time of birth, which no copy keeps.
 */
import { closeSync, fdatasync, mkdirSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TransactionId } from './pgoutput.ts'
import type { Offset } from './protocol.ts'

/** Consecutive messages of one transaction in one shape, as JSON joined by commas. */
export interface LogBlock {
  readonly tx: number
  readonly xid: number
  readonly op: number
  readonly opLast: number
  readonly body: Uint8Array
  /** Pairs of op and byte position in `body`, one per message. */
  readonly marks: Uint32Array
}

export interface StoredShape {
  readonly id: number
  /** JSON that `lifecycle.ts` writes and reads back. */
  readonly content: string
  readonly usedAt: number
}

export interface Epoch {
  readonly systemId: string
  readonly timeline: string
  readonly database: string
  readonly slot: string
}

export interface Commit {
  readonly position: number
  /** Where the stream goes on. */
  readonly restart: number
  /** The last whole transaction, if there is a further one. */
  readonly last?: TransactionId | undefined
  readonly blocks: ReadonlyMap<number, readonly LogBlock[]>
}

export type Store = ReturnType<typeof openStore>

const SCHEMA = `
create table if not exists meta (name text primary key, value text not null) without rowid;
create table if not exists shapes (id integer primary key, content text not null, used_at integer not null);
create table if not exists log (
  shape integer not null, tx integer not null, op integer not null, op_last integer not null,
  xid integer not null, at integer not null, body blob not null, marks blob not null);
create index if not exists log_position on log (shape, tx, op);
create index if not exists log_age on log (at);
`

export const openStore = (dataDir: string, now: () => number = Date.now) => {
  mkdirSync(join(dataDir, 'snapshots'), { recursive: true })
  const file = join(dataDir, 'log.db')
  const database = new DatabaseSync(file)
  try {
    database.exec('pragma locking_mode = exclusive; pragma journal_mode = wal; pragma synchronous = normal')
    database.exec('pragma cache_size = -16000; pragma wal_autocheckpoint = 2000; pragma journal_size_limit = 67108864')
    database.exec(SCHEMA)
    database.exec('begin immediate; commit')
  } catch (error) {
    database.close()
    const reason = error instanceof Error ? error.message : String(error)
    if (/locked|busy/i.test(reason)) {
      throw new Error(
        `The data directory ${dataDir} is in use by another shape engine. Stop it, or choose another --data-dir.`,
      )
    }
    throw new Error(
      `The change log in ${dataDir} can't be opened (${reason}). If it is damaged, delete the directory: clients then fetch anew.`,
    )
  }
  // SQLite keeps one write-ahead file open for as long as the database is; syncing it from here is what makes commits last.
  const walFile = openSync(`${file}-wal`, 'r+')

  const getMeta = database.prepare('select value from meta where name = ?')
  const setMeta = database.prepare('insert or replace into meta values (?, ?)')
  const insertBlock = database.prepare('insert into log values (?, ?, ?, ?, ?, ?, ?, ?)')
  const readBlocks = database.prepare(
    'select tx, op, op_last, xid, body, marks from log where shape = ? and tx >= ? and tx <= ? and (tx > ? or op_last > ?) order by tx, op',
  )
  const replaceShape = database.prepare('insert or replace into shapes values (?, ?, ?)')
  const lastTransactions = database.prepare(
    'select distinct tx, xid from log where shape = ? and tx <= ? order by tx desc limit ?',
  )
  const lastBlock = database.prepare(
    'select tx, op_last from log where shape = ? and tx <= ? order by tx desc, op desc limit 1',
  )
  const deleteBlocks = database.prepare(
    'delete from log where rowid in (select rowid from log where shape = ? and tx <= ? order by tx limit ?)',
  )
  const updateUse = database.prepare('update shapes set used_at = ?1 where id = ?2 and used_at < ?1')
  const first = (sql: string, ...values: number[]): number =>
    Number(
      Object.values((database.prepare(sql).get(...values) as Record<string, number | null> | undefined) ?? {})[0] ?? 0,
    )
  /** Shapes that have a log already and are not saved yet. */
  const unsaved = new Set<number>()
  const deleteShape = database.prepare('delete from shapes where id = ?')
  const meta = (name: string): string | undefined => (getMeta.get(name) as { value: string } | undefined)?.value
  const numberOf = (name: string): number => Number(meta(name) ?? 0)

  let position = numberOf('position')
  let restart = numberOf('restart')
  let durable = 0
  let last = readLast(meta('last'))
  const { ino, birthtimeNs } = statSync(file, { bigint: true })
  const guard = `${ino}-${birthtimeNs}`
  let lastStamp = numberOf('stamp')
  let lastShape = Math.max(
    numberOf('shape'),
    (database.prepare('select max(id) as id from shapes').get() as { id: number | null }).id ?? 0,
  )
  database.prepare('delete from log where tx > ?').run(position)

  const transact = <T>(work: () => T): T => {
    database.exec('begin immediate')
    try {
      const result = work()
      database.exec('commit')
      return result
    } catch (error) {
      if (database.isTransaction) database.exec('rollback')
      throw error
    }
  }

  const insertAll = (blocks: Commit['blocks']): void => {
    const at = now()
    for (const [shape, list] of blocks) {
      for (const { tx, op, opLast, xid, body, marks } of list) {
        insertBlock.run(
          shape,
          tx,
          op,
          opLast,
          xid,
          at,
          body,
          new Uint8Array(marks.buffer, marks.byteOffset, marks.byteLength),
        )
      }
    }
  }

  return {
    dataDir,
    position: () => position,
    restartLsn: () => restart,
    /** The last whole transaction that was applied in this epoch. */
    lastTransaction: (): TransactionId | undefined => last,
    /** Whether the folder is another than the one that the epoch began in (6). */
    isCopy: (): boolean => {
      const known = meta('guard')
      return known !== undefined && known !== guard
    },

    epoch: (): Epoch | undefined => {
      const text = meta('epoch')
      return text === undefined ? undefined : (JSON.parse(text) as Epoch)
    },

    /** Forgets every shape: the database is another one, or its stream has a gap. */
    beginEpoch(epoch: Epoch, at: number): void {
      transact(() => {
        database.exec('delete from shapes')
        setMeta.run('epoch', JSON.stringify(epoch))
        setMeta.run('position', String(at))
        setMeta.run('restart', String(at))
        setMeta.run('last', '')
        setMeta.run('guard', guard)
      })
      position = at
      restart = at
      last = undefined
      durable = 0
    },

    /** Log blocks of a transaction that has not ended, or of a snapshot's filter; readers don't see them yet. */
    append: (blocks: Commit['blocks']): void => transact(() => insertAll(blocks)),

    commit(commit: Commit): void {
      transact(() => {
        insertAll(commit.blocks)
        setMeta.run('position', String(commit.position))
        setMeta.run('restart', String(commit.restart))
        if (commit.last) setMeta.run('last', JSON.stringify(commit.last))
      })
      position = commit.position
      restart = commit.restart
      last = commit.last ?? last
    },

    /** Deletes what a broken stream left behind its last whole transaction. */
    discardUnfinished: (): void => void database.prepare('delete from log where tx > ?').run(position),

    /** The clock part of a new handle. */
    mintStamp(): number {
      lastStamp = Math.max(now() * 1000, lastStamp + 1)
      setMeta.run('stamp', String(lastStamp))
      return lastStamp
    },

    /** The id of a new shape. */
    mintShape(): number {
      lastShape++
      setMeta.run('shape', String(lastShape))
      unsaved.add(lastShape)
      return lastShape
    },

    /** From here on the shape, as it is now, survives a restart. */
    saveShape({ id, content, usedAt }: StoredShape): void {
      replaceShape.run(id, content, usedAt)
      unsaved.delete(id)
    },

    /** Each with the last offset of its log. */
    loadShapes: (): (StoredShape & { end: Offset | undefined; blocks: number })[] =>
      database
        .prepare(
          `select s.*, l.tx as end_tx, l.op_last as end_op, (select count(*) from log where shape = s.id) as blocks from shapes s
           left join log l on l.rowid = (select rowid from log where shape = s.id order by tx desc, op desc limit 1)`,
        )
        .all()
        .map((row) => ({
          id: row['id'] as number,
          content: row['content'] as string,
          usedAt: row['used_at'] as number,
          blocks: row['blocks'] as number,
          end: row['end_tx'] === null ? undefined : { tx: row['end_tx'] as number, op: row['end_op'] as number },
        })),

    dropShapes(ids: readonly number[]): void {
      if (ids.length === 0) return
      for (const id of ids) unsaved.delete(id)
      transact(() => {
        for (const id of ids) deleteShape.run(id)
      })
    },

    /** Blocks that hold something after `after`, up to and including transaction `untilTx`, to about `maxBytes`. */
    read(shape: number, after: Offset, untilTx: number, maxBytes: number): LogBlock[] {
      const blocks: LogBlock[] = []
      let size = 0
      for (const row of readBlocks.iterate(shape, after.tx, untilTx, after.tx, finite(after.op))) {
        const marks = row['marks'] as Uint8Array
        const body = row['body'] as Uint8Array
        blocks.push({
          tx: row['tx'] as number,
          xid: row['xid'] as number,
          op: row['op'] as number,
          opLast: row['op_last'] as number,
          body,
          marks: new Uint32Array(marks.buffer, marks.byteOffset, marks.byteLength / 4),
        })
        size += body.length
        if (size >= maxBytes) break
      }
      return blocks
    },

    /** The last `limit` transactions of a shape up to an LSN, ascending. */
    transactions: (shape: number, untilTx: number, limit: number): { tx: number; xid: number }[] =>
      (lastTransactions.all(shape, untilTx, limit) as { tx: number; xid: number }[]).reverse(),

    /** Offset of a shape's last message up to an LSN. */
    lastUntil(shape: number, untilTx: number): Offset | undefined {
      const row = lastBlock.get(shape, untilTx) as { tx: number; op_last: number } | undefined
      return row && { tx: row.tx, op: row.op_last }
    },

    /** The transaction up to which the log is older than `before`, or further on where the log is larger than `maxBytes`. */
    cutoff(before: number, maxBytes: number): number {
      const byAge = first('select tx from log where at < ? order by at desc limit 1', before)
      const bytes = first(
        'select (page_count - freelist_count) * page_size from pragma_page_count, pragma_freelist_count, pragma_page_size',
      )
      if (bytes <= maxBytes) return byAge
      const rows = first('select max(rowid) - min(rowid) from log')
      const share = Math.min(1, (bytes - maxBytes) / bytes + 0.1)
      return Math.max(byAge, first('select tx from log order by rowid limit 1 offset ?', Math.floor(rows * share)))
    },

    /** Deletes up to `limit` blocks of a shape, up to and including a transaction. Returns how many. */
    deleteLog: (shape: number, untilTx: number, limit: number): number =>
      Number(deleteBlocks.run(shape, untilTx, limit).changes),

    /** Shapes that have left blocks behind. */
    deadShapes: (): number[] =>
      database
        .prepare(
          `with recursive s (id) as (select min(shape) from log union all
             select (select min(shape) from log where shape > s.id) from s where s.id is not null)
           select id from s where id is not null and id <= ? and id not in (select id from shapes)`,
        )
        .all(lastShape)
        .map((row) => row['id'] as number)
        .filter((id) => !unsaved.has(id)),

    saveUse(used: readonly { id: number; usedAt: number }[]): void {
      transact(() => {
        for (const { id, usedAt } of used) updateUse.run(usedAt, id)
      })
    },

    /** The stream position that is safe to acknowledge. */
    durable: () => durable,

    /** Makes every commit so far survive the machine, and moves `durable`. */
    async sync(): Promise<void> {
      const safe = restart
      if (safe === durable) return
      await new Promise<void>((resolve, reject) => fdatasync(walFile, (error) => (error ? reject(error) : resolve())))
      durable = Math.max(durable, safe)
    },

    close(): void {
      closeSync(walFile)
      database.close()
    },
  }
}

const readLast = (text: string | undefined): TransactionId | undefined =>
  text ? (JSON.parse(text) as TransactionId) : undefined

// SQLite has no integer for infinity; no transaction has this many operations.
const UNBOUNDED = 2 ** 52
const finite = (op: number): number => (op === Infinity ? UNBOUNDED : op)
