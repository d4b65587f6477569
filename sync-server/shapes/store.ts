/**
 * The durable change log: SQLite in WAL mode, one writer, one process.
 *
 *  1. `commit` is atomic: log blocks, dropped shapes and the stream position change together or not at all.
 *  2. A commit survives the death of the process; after `sync` it survives the death of the machine. Only what was synced
 *     may be acknowledged to Postgres.
 *  3. Blocks beyond the stored position are the beginning of a transaction whose end never came: `open` deletes them.
 *  4. The file is locked: a second process on the same folder is refused.
 *  5. A handle is never given out twice: the clock part of the last one is stored, and only grows.
 */
import { closeSync, fdatasync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
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
    'select tx, op, op_last, xid, body, marks from log where shape = ? and tx >= ? and tx <= ? and (tx > ? or op_last > ?) order by tx, op limit 200',
  )
  const replaceShape = database.prepare('insert or replace into shapes values (?, ?, ?)')
  const deleteShape = database.prepare('delete from shapes where id = ?')
  const meta = (name: string): string | undefined => (getMeta.get(name) as { value: string } | undefined)?.value
  const numberOf = (name: string): number => Number(meta(name) ?? 0)

  let position = numberOf('position')
  let restart = numberOf('restart')
  let durable = 0
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
      })
      position = at
      restart = at
      durable = 0
    },

    /** Log blocks of a transaction that has not ended, or of a snapshot's filter; readers don't see them yet. */
    append: (blocks: Commit['blocks']): void => transact(() => insertAll(blocks)),

    commit(commit: Commit): void {
      transact(() => {
        insertAll(commit.blocks)
        setMeta.run('position', String(commit.position))
        setMeta.run('restart', String(commit.restart))
      })
      position = commit.position
      restart = commit.restart
    },

    /** Deletes what a broken stream left behind its last whole transaction. */
    discardUnfinished: (): void => void database.prepare('delete from log where tx > ?').run(position),

    /** A new shape id and the clock part of a new handle. */
    mint(): { id: number; stamp: number } {
      lastStamp = Math.max(now() * 1000, lastStamp + 1)
      lastShape++
      transact(() => {
        setMeta.run('stamp', String(lastStamp))
        setMeta.run('shape', String(lastShape))
      })
      return { id: lastShape, stamp: lastStamp }
    },

    /** From here on the shape, as it is now, survives a restart. */
    saveShape: ({ id, content, usedAt }: StoredShape): void => void replaceShape.run(id, content, usedAt),

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
      transact(() => {
        for (const id of ids) deleteShape.run(id)
      })
    },

    /** Blocks that hold something after `after`, up to and including transaction `untilTx`; at most 200. */
    read: (shape: number, after: Offset, untilTx: number): LogBlock[] =>
      readBlocks.all(shape, after.tx, untilTx, after.tx, finite(after.op)).map((row) => {
        const marks = row['marks'] as Uint8Array
        return {
          tx: row['tx'] as number,
          xid: row['xid'] as number,
          op: row['op'] as number,
          opLast: row['op_last'] as number,
          body: row['body'] as Uint8Array,
          marks: new Uint32Array(marks.buffer, marks.byteOffset, marks.byteLength / 4),
        }
      }),

    select: (sql: string, ...values: SQLInputValue[]): Record<string, unknown>[] =>
      database.prepare(sql).all(...values),
    run: (sql: string, ...values: SQLInputValue[]): number => Number(database.prepare(sql).run(...values).changes),

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

// SQLite has no integer for infinity; no transaction has this many operations.
const UNBOUNDED = 2 ** 52
const finite = (op: number): number => (op === Infinity ? UNBOUNDED : op)
