/**
 * Takes the snapshot of a shape and keeps it in files, each a complete response body.
 *
 *  1. One REPEATABLE READ transaction, with a lock that keeps the table's form, reads all rows; `onVisibility` hears what
 *     it sees before any row is read, and may refuse: then another snapshot is taken.
 *  2. Memory holds about one batch of rows, whatever the table's size.
 *  3. The files are on disk for good before the snapshot counts as taken.
 */
import { type FileHandle, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describeTables, sameTable } from './catalog.ts'
import type { Database, Session } from './database.ts'
import type { Definition } from './definition.ts'
import { quoteIdentifier, quoteTable } from './identifiers.ts'
import type { Encoder } from './messages.ts'
import { parseLsn } from './protocol.ts'
import type { Visibility } from './shapes.ts'

export class TableChanged extends Error {}

export const chunkFile = (dataDir: string, shapeId: number, generation: number, chunk: number): string =>
  join(dataDir, 'snapshots', `${shapeId}-${generation}-${chunk}.json`)

export interface SnapshotTask {
  readonly database: Database
  readonly definition: Definition
  readonly encoder: Encoder
  readonly chunkBytes: number
  readonly fileOf: (chunk: number) => string
  /** False: something is not visible that must be; take another snapshot. Throws to give up. */
  readonly onVisibility: (visibility: Visibility) => boolean
}

/** A commit is in the log a little before it is visible; much longer only while it waits for a standby. */
const INVISIBLE_MS = 15_000
const BATCH_BYTES = 512 * 1024
const MAX_BATCH_ROWS = 1000

/** Returns the sizes of the chunk files. */
export const takeSnapshot = async (task: SnapshotTask): Promise<number[]> => {
  const { database, definition } = task
  const version = await database.serverVersion()
  return database.session(async (session) => {
    for (const deadline = Date.now() + INVISIBLE_MS; ; ) {
      await session.script(
        'begin isolation level repeatable read read only',
        `set local lock_timeout = '5s'`,
        `lock table ${quoteTable(definition.table)} in access share mode`,
      )
      const visibility = await readVisibility(session)
      const table = (await describeTables(session, version, [definition.table.oid])).get(definition.table.oid)
      if (!table || !sameTable(table, definition.table)) throw new TableChanged()
      if (task.onVisibility(visibility)) {
        const chunks = await writeChunks(session, task, visibility)
        await session.query('commit')
        return chunks
      }
      await session.query('rollback')
      if (Date.now() > deadline) throw new Error('a transaction is in the log and not visible yet')
      await sleep(3)
    }
  })
}

const readVisibility = async (session: Session): Promise<Visibility> => {
  const { rows } = await session.query('select pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text')
  const [snapshot, lsn] = rows[0] as [string, string]
  const [xmin, xmax, running] = snapshot.split(':') as [string, string, string]
  return {
    xmin: BigInt(xmin),
    xmax: BigInt(xmax),
    running: new Set(running === '' ? [] : running.split(',').map(BigInt)),
    untilLsn: parseLsn(lsn),
  }
}

const writeChunks = async (session: Session, task: SnapshotTask, visibility: Visibility): Promise<number[]> => {
  const { definition, encoder, chunkBytes, fileOf } = task
  const sizes: number[] = []
  let file: FileHandle | undefined
  let size = 0
  const write = async (text: string): Promise<void> => {
    const bytes = Buffer.from(text)
    file ??= await open(fileOf(sizes.length), 'w')
    await file.appendFile(bytes)
    size += bytes.length
  }
  const endChunk = async (): Promise<void> => {
    await file?.datasync()
    await file?.close()
    file = undefined
    sizes.push(size)
    size = 0
  }
  try {
    let pending = ''
    for await (const rows of definition.log === 'full' ? batches(session, definition) : []) {
      for (const row of rows) {
        const begun = size > 0 || pending !== ''
        pending += (begun ? ',' : '[') + encoder.snapshotRow(row)
        if (pending.length < BATCH_BYTES && size + pending.length < chunkBytes) continue
        await write(pending)
        pending = ''
        if (size >= chunkBytes) {
          await write(']')
          await endChunk()
        }
      }
    }
    const { xmin, xmax, running } = visibility
    const control = { control: 'snapshot-end', xmin: `${xmin}`, xmax: `${xmax}`, xip_list: [...running].map(String) }
    pending += `${size > 0 || pending !== '' ? ',' : '['}{"headers":${JSON.stringify(control)}}]`
    await write(pending)
    await endChunk()
    return sizes
  } finally {
    await (file as FileHandle | undefined)?.close()
  }
}

/** Rows in table order of columns; columns that neither the shape nor its keys need are null. */
async function* batches(session: Session, { table, columns, where }: Definition): AsyncGenerator<(string | null)[][]> {
  const needed = new Set(columns)
  for (const index of table.primaryKey.length > 0 ? table.primaryKey : table.columns.keys()) needed.add(index)
  const list = table.columns.map(({ name }, index) => (needed.has(index) ? quoteIdentifier(name) : 'null'))
  const condition = where ? ` where ${where.sql}` : ''
  let count = 50
  let rows = await session.script(
    `declare hq_rows no scroll cursor for select ${list.join(', ')} from ${quoteTable(table)}${condition}`,
    `fetch ${count} from hq_rows`,
  )
  for (;;) {
    if (rows.length > 0) yield rows
    if (rows.length < count) return
    const bytes = rows.reduce((sum, row) => sum + row.reduce((length, value) => length + (value?.length ?? 0), 0), 1)
    count = Math.max(1, Math.min(MAX_BATCH_ROWS, Math.floor((BATCH_BYTES * rows.length) / bytes)))
    rows = (await session.query(`fetch ${count} from hq_rows`)).rows
  }
}

const PIECE = 256 * 1024

/** A chunk as a response body: at once when small, else as a stream that reads on as its reader does. */
export const readChunk = async (
  path: string,
  size: number,
): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>> => {
  if (size <= PIECE) return readFile(path)
  const file = await open(path, 'r')
  let at = 0
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const { bytesRead, buffer } = await file.read(new Uint8Array(PIECE), 0, PIECE, at)
        at += bytesRead
        if (bytesRead > 0) controller.enqueue(bytesRead === PIECE ? buffer : buffer.subarray(0, bytesRead))
        if (bytesRead === 0 || at >= size) {
          await file.close()
          controller.close()
        }
      },
      cancel: () => file.close(),
    },
    // Nothing is read before somebody wants it: answers that wait must not hold a piece each.
    { highWaterMark: 0 },
  )
}

export const removeChunks = async (
  dataDir: string,
  shapeId: number,
  generation: number,
  count: number,
): Promise<void> => {
  for (let chunk = 0; chunk < count; chunk++) await rm(chunkFile(dataDir, shapeId, generation, chunk), { force: true })
}
