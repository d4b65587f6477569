/**
 * Where shapes come from and where they go: creation with its snapshot, retirement, restart.
 *
 *  1. Requests for one definition at the same moment get one shape.
 *  2. A shape follows the stream before its snapshot is taken; the snapshot must see every transaction whose changes the stream
 *     may have passed by before that. So snapshot and log meet without gap, and `Visibility` removes the overlap.
 *  3. A retired shape's handle is never served again; the next request for its definition mints another.
 *  4. After a restart exactly the shapes with a whole snapshot live on.
 */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { describeTables, sameTable, type Table } from './catalog.ts'
import { type Database, isMissingTable, isRequestError, isTransient } from './database.ts'
import {
  build,
  type Definition,
  type DefinitionSource,
  type Known,
  type LogMode,
  resolveDefinition,
} from './definition.ts'
import { quoteTable, type TableName } from './identifiers.ts'
import {
  compareOffsets,
  formatOffset,
  InvalidRequest,
  type Logger,
  type Offset,
  parseOffset,
  type ShapeDefinition,
  SNAPSHOT_END,
  Unavailable,
} from './protocol.ts'
import { rawKeyOf } from './request.ts'
import { type Generation, newest, type Shape, type Shapes, sees, type Visibility } from './shapes.ts'
import { chunkFile, removeChunks, TableChanged, takeSnapshot } from './snapshot.ts'
import type { Store } from './store.ts'
import { createTurns } from './turns.ts'

export interface LifecycleOptions {
  readonly database: Database
  readonly store: Store
  readonly shapes: Shapes
  readonly logger: Logger
  readonly chunkBytes: number
  /** Snapshots that are taken at the same time. */
  readonly snapshotsAtOnce: number
  /** False: the stream does not carry changes of this table. */
  readonly isPublished: (table: TableName) => boolean
  /** Resolves when the stream has begun, so that no change can be missed from then on. */
  readonly streaming: () => Promise<void>
  /** Ids of the transactions that the stream began most recently. */
  readonly recentTransactions: () => readonly number[]
  readonly reveal: (shape: Shape, visibility: Visibility) => void
}

export interface Wanted {
  readonly definition: ShapeDefinition
  readonly rawKey: string
  readonly log: LogMode
}

export type Lifecycle = ReturnType<typeof createLifecycle>

/** Thrown to whom waits on a shape that was retired before it could be served. */
export class Retired extends Error {}

const IDENTITY_WAIT_MS = 10_000
const MAX_REMEMBERED = 20_000

export const createLifecycle = (options: LifecycleOptions) => {
  const { database, store, shapes, logger } = options
  const definitions = new Map<string, Definition>()
  const pending = new Map<string, Promise<Shape>>()
  const identities = new Map<number, Promise<void>>()
  const turns = createTurns(options.snapshotsAtOnce)
  /** Wait for their turn to take a snapshot. Until then they are not followed, so that nothing has to be kept for them. */
  const queued = new WeakSet<Shape>()

  /** The living shape of a definition, a new one if need be. It may be `reserved` or `creating`. */
  const ensure = (wanted: Wanted): Promise<Shape> | Shape => {
    const living = find(wanted)
    if (living) return living
    let creation = pending.get(wanted.rawKey)
    if (!creation) {
      creation = resolveAndCreate(wanted).finally(() => pending.delete(wanted.rawKey))
      pending.set(wanted.rawKey, creation)
    }
    return creation
  }

  const find = ({ rawKey }: Wanted): Shape | undefined => {
    const definition = definitions.get(rawKey)
    return definition && shapes.byKey(definition.key)
  }

  const resolveAndCreate = async ({ definition: raw, rawKey, log }: Wanted): Promise<Shape> => {
    const definition = await resolveDefinition(database, raw, log, known).catch((error) => {
      if (error instanceof InvalidRequest) throw error
      throw new Unavailable(`the database can't be asked: ${messageOf(error)}`)
    })
    if (!options.isPublished(definition.table))
      throw new InvalidRequest({ table: [`Table ${quoteTable(definition.table)} is not served`] })
    if (definitions.size > MAX_REMEMBERED) definitions.clear()
    definitions.set(rawKey, definition)
    const living = shapes.byKey(definition.key)
    if (living && sameTable(living.definition.table, definition.table)) return living
    // The catalog knows better than the stream, which has not come to the change yet.
    if (living) retire(living, 'its table has changed')
    return create(definition)
  }

  /** The table as an object that shapes of it have already, so that thousands of shapes hold one. */
  const intern = (table: Table): Table =>
    shapes.ofTable(table.oid).find(({ definition }) => isDeepStrictEqual(definition.table, table))?.definition.table ??
    table

  const known: Known = {
    intern,
    table: (name) => shapes.named(quoteTable(name)),
    paramTypes: new WeakMap(),
  }

  const create = (definition: Definition): Shape => {
    const id = store.mintShape()
    const first = {
      handle: `${definition.key}-${store.mintStamp()}`,
      files: 0,
      chunks: [],
      from: SNAPSHOT_END,
      createdAt: Date.now(),
    }
    const shape = shapes.create(id, definition, [first])
    return shape
  }

  /**
   * Resolves when the shape can be served. The first call takes the snapshot: not before somebody comes with the handle, so
   * that who is sent back by a 409 finds what was written in between.
   */
  const begin = (shape: Shape): Promise<void> => {
    if (shape.state === 'dead') return Promise.reject(new Retired())
    if (shape.state === 'reserved' && !queued.has(shape)) {
      queued.add(shape)
      shape.ready = turns.run(() => {
        if (isDead(shape)) throw new Retired()
        shape.state = 'creating'
        return fill(shape, [...options.recentTransactions()])
      })
      // Whoever waits sees the failure; nobody need be waiting.
      shape.ready.catch(() => undefined)
    }
    return shape.ready
  }

  const fill = async (shape: Shape, mustSee: readonly number[]): Promise<void> => {
    const { definition } = shape
    try {
      await options.streaming()
      await ensureIdentity(definition.table)
      let visibility: Visibility | undefined
      const chunks = await takeSnapshot({
        database,
        definition,
        encoder: shape.encoder,
        chunkBytes: options.chunkBytes,
        fileOf: (chunk) => chunkFile(store.dataDir, shape.id, 0, chunk),
        onVisibility(seen) {
          if (isDead(shape)) throw new Retired()
          if (mustSee.some((xid) => !sees(seen, xid))) return false
          visibility = seen
          options.reveal(shape, seen)
          if (isDead(shape)) throw new Retired()
          return true
        },
      })
      if (isDead(shape)) {
        await removeChunks(store.dataDir, shape.id, 0, chunks.length)
        throw new Retired()
      }
      for (const generation of shape.generations) generation.chunks = chunks
      save(shape, visibility)
      shape.state = 'ready'
    } catch (error) {
      retire(shape, `its snapshot failed: ${messageOf(error)}`)
      if (error instanceof TableChanged) {
        for (const other of shapes.ofTable(definition.table.oid)) retire(other, 'its table has changed')
        throw new Retired()
      }
      if (isMissingTable(error)) throw new InvalidRequest({ table: ['Table does not exist'] })
      if (isRequestError(error) && definition.where) throw new InvalidRequest({ where: [messageOf(error)] })
      if (error instanceof Retired || error instanceof Unavailable) throw error
      throw new Unavailable(`the snapshot failed: ${messageOf(error)}`)
    }
  }

  const save = (shape: Shape, visibility = shape.visibility): void => {
    const seen = visibility && {
      ...visibility,
      xmin: `${visibility.xmin}`,
      xmax: `${visibility.xmax}`,
      running: [...visibility.running].map(String),
    }
    const generations = shape.generations.map((generation) => ({ ...generation, from: formatOffset(generation.from) }))
    const content: StoredContent = {
      source: shape.definition.source,
      generations,
      floor: formatOffset(shape.floor),
      visibility: seen,
    }
    store.saveShape({ id: shape.id, content: JSON.stringify(content), usedAt: shape.usedAt })
  }

  /** A further handle for a shape, to refuse its newest one to a client without taking it from the others. */
  const mintHandle = (shape: Shape): string => {
    const last = newest(shape)
    shapes.addGeneration(shape, {
      ...last,
      handle: `${shape.definition.key}-${store.mintStamp()}`,
      createdAt: Date.now(),
    })
    if (shape.state === 'ready') save(shape)
    return newest(shape).handle
  }

  /** Has the log hold whole old rows of a table. Waits for transactions that write to it now, but not for ever. */
  const ensureIdentity = (table: Table): Promise<void> => {
    if (table.hasFullIdentity) return Promise.resolve()
    let setting = identities.get(table.oid)
    if (!setting) {
      setting = setIdentity(table)
      identities.set(table.oid, setting)
      setting.catch(() => identities.delete(table.oid))
    }
    return setting
  }

  const setIdentity = async (table: Table): Promise<void> => {
    const deadline = Date.now() + IDENTITY_WAIT_MS
    const names = table.isPartitioned
      ? (
          await database.query(
            `select format('%I.%I', n.nspname, c.relname) from pg_partition_tree($1::oid::regclass) p
             join pg_class c on c.oid = p.relid join pg_namespace n on n.oid = c.relnamespace
             where c.relreplident <> 'f'`,
            [table.oid],
          )
        ).rows.map(([name]) => name as string)
      : [quoteTable(table)]
    for (const name of names) {
      for (;;) {
        try {
          await database.session(async (session) => {
            await session.query('begin')
            // Everybody else queues behind a lock that is waited for: so wait briefly, and often.
            await session.query(`set local lock_timeout = '300ms'`)
            await session.query(`alter table ${name} replica identity full`)
            await session.query('commit')
          })
          break
        } catch (error) {
          if (!isTransient(error)) throw error
          if (Date.now() > deadline) throw new Unavailable(`an open transaction keeps ${name} locked`)
          await sleep(50 + Math.random() * 150)
        }
      }
    }
  }

  const retire = (shape: Shape, reason: string): void => {
    if (isDead(shape)) return
    logger.info('a shape ends', { handle: newest(shape).handle, table: quoteTable(shape.definition.table), reason })
    identities.delete(shape.definition.table.oid)
    store.dropShapes([shape.id])
    const { id, generations } = shape
    shapes.remove(shape)
    removeFiles(id, generations)
  }

  const removeFiles = (shapeId: number, generations: readonly Generation[]): void => {
    for (const { files, chunks } of generations) {
      removeChunks(store.dataDir, shapeId, files, chunks.length).catch((error) =>
        logger.warn('a snapshot file could not be removed', { reason: messageOf(error) }),
      )
    }
  }

  return {
    ensure,
    begin,
    find,
    retire,
    mintHandle,
    save,

    /** Offsets before `floor` are refused from now on. Handles stay; the snapshots that begin before it are gone. */
    raiseFloor(shape: Shape, floor: Offset): void {
      shape.floor = floor
      const gone = shape.generations.filter(({ from, chunks }) => chunks.length > 0 && compareOffsets(from, floor) < 0)
      const kept = new Set(
        shape.generations.filter((generation) => !gone.includes(generation)).map(({ files }) => files),
      )
      removeFiles(
        shape.id,
        gone.filter(({ files }) => !kept.has(files)).map((generation) => ({ ...generation })),
      )
      for (const generation of gone) generation.chunks = []
      save(shape)
    },

    /** Shapes of the run before. Those whose files are not whole are left behind. */
    restore(): void {
      const whole = new Set<string>()
      for (const stored of store.loadShapes()) {
        try {
          const { source, visibility, floor, generations } = JSON.parse(stored.content) as StoredContent
          for (const { files, chunks } of generations) {
            for (const [chunk, size] of chunks.entries()) {
              const file = chunkFile(store.dataDir, stored.id, files, chunk)
              if (statSync(file).size !== size) throw new Error(`${file} is not whole`)
              whole.add(file)
            }
          }
          const restored = generations.map((generation) => ({
            ...generation,
            from: parseOffset(generation.from) ?? SNAPSHOT_END,
          }))
          const definition = build({ ...source, table: intern(source.table) })
          const shape = shapes.create(stored.id, definition, restored)
          definitions.set(rawKeyOf(source.raw, source.log), definition)
          shape.floor = parseOffset(floor) ?? shape.floor
          // A log that was deleted whole still ends where it ended.
          shape.end = stored.end ?? (shape.floor.tx > 0 ? shape.floor : undefined)
          shape.usedAt = stored.usedAt
          shape.growth.blocks = stored.blocks
          shape.state = 'ready'
          if (visibility && visibility.untilLsn > store.position()) {
            shape.visibility = {
              xmin: BigInt(visibility.xmin),
              xmax: BigInt(visibility.xmax),
              running: new Set(visibility.running.map(BigInt)),
              untilLsn: visibility.untilLsn,
            }
          }
        } catch (error) {
          logger.warn('a stored shape is left behind', { shape: stored.id, reason: messageOf(error) })
          store.dropShapes([stored.id])
        }
      }
      // What was being written when the process died belongs to nobody.
      const folder = join(store.dataDir, 'snapshots')
      for (const name of readdirSync(folder)) {
        const file = join(folder, name)
        if (!whole.has(file)) rmSync(file, { force: true })
      }
    },

    /** Retires the shapes of tables that have changed, also where nobody has written since. */
    async checkTables(): Promise<void> {
      const oids = shapes.tables()
      if (oids.length === 0) return
      const tables = await describeTables(database, await database.serverVersion(), oids)
      for (const oid of oids) {
        const table = tables.get(oid)
        for (const shape of shapes.ofTable(oid)) {
          if (!table) retire(shape, 'its table is gone')
          else if (!sameTable(table, shape.definition.table)) retire(shape, 'its table has changed')
        }
      }
    },
  }
}

interface StoredContent {
  readonly source: DefinitionSource
  readonly generations: readonly (Omit<Generation, 'from'> & { readonly from: string })[]
  readonly floor: string
  readonly visibility:
    | { readonly xmin: string; readonly xmax: string; readonly running: readonly string[]; readonly untilLsn: number }
    | undefined
}

const isDead = (shape: Shape): boolean => shape.state === 'dead'
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
