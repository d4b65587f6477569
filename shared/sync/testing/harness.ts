/** What tests of replicas share: PGlite from one migrated image (initdb once per process), replicas on it, and waiting for a condition. Node only. */
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import type { Migration } from '../../schema/migrations.ts'
import type { Replica, SqlValue } from '../contract.ts'
import { migrateReplica } from '../migrate.ts'
import { type OpenOptions, openReplica } from '../replica.ts'
import { PGLITE_PARSERS } from '../values.ts'
import type { FakeServer } from './fake-server.ts'

const folder = new URL('../../../migrations/', import.meta.url)

export const migrations: Migration[] = readdirSync(folder)
  .filter((name) => name.endsWith('.sql'))
  .map((name) => ({ name, sql: readFileSync(new URL(name, folder), 'utf8') }))

export const TENANT = '0197f000-0000-7000-8000-000000000001'
export const PERSON = '0197f000-0000-7000-8000-000000000002'

const parsers = { ...PGLITE_PARSERS }
let image: Promise<Blob> | undefined

const makeImage = async (): Promise<Blob> => {
  const db = await PGlite.create()
  await migrateReplica(db, migrations)
  const blob = await db.dumpDataDir('none')
  await db.close()
  return blob
}

/** An empty, migrated database: in memory, or in `dataDir` (opened as it is when it exists already). */
export async function openDatabase(dataDir?: string, exists = false): Promise<PGlite> {
  if (exists && dataDir) return PGlite.create({ dataDir, parsers })
  image ??= makeImage()
  return PGlite.create({ ...(dataDir && { dataDir }), loadDataDir: await image, parsers })
}

/** The database as a process killed at this moment leaves it: everything committed, nothing closed. */
export async function killedCopy(db: PGlite): Promise<PGlite> {
  return PGlite.create({ loadDataDir: await db.dumpDataDir('none'), parsers })
}

/** A database that dies at its n-th statement: that one and all later ones throw. Statements are counted from `arm`. */
export function mortal(db: PGlite): { readonly db: PGlite; arm(statements: number): void; statements(): number } {
  let left = Number.POSITIVE_INFINITY
  let count = 0
  const step = (): void => {
    count++
    if (--left < 0) throw new Error('killed')
  }
  const dying = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, name) {
        const value: unknown = Reflect.get(object, name, object)
        if (typeof value !== 'function') return value
        if (name === 'transaction') {
          return async (work: (tx: object) => Promise<unknown>) => {
            step()
            return value.call(object, async (tx: object) => {
              const result = await work(dying(tx))
              step()
              return result
            })
          }
        }
        if (name !== 'query' && name !== 'exec') return value.bind(object)
        return async (...args: unknown[]) => {
          step()
          return value.apply(object, args)
        }
      },
    })
  return {
    db: dying(db),
    arm(statements) {
      left = statements
      count = 0
    },
    statements: () => count,
  }
}

/** Small seeded generator (mulberry32): the same seed gives the same test. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

export interface TestReplica extends Replica {
  readonly db: PGlite
  readonly logged: string[]
}

export async function openTestReplica(
  server: FakeServer,
  options: Partial<OpenOptions> & { now?: () => number } = {},
): Promise<TestReplica> {
  const db = options.db ?? (await openDatabase())
  const logged: string[] = []
  const replica = await openReplica({
    migrations,
    identity: { kind: 'browser', ownerId: PERSON, tenantId: TENANT },
    serverUrl: 'http://server.test',
    transport: server.signals,
    environment: {
      now: options.now ?? Date.now,
      randomUuid: randomUUID,
      fetch: server.fetch,
      log: (level, message) => {
        if (level !== 'debug') logged.push(`${level}: ${message}`)
      },
    },
    ...options,
    db,
  })
  return Object.assign(replica, { db, logged })
}

/** Waits until `condition` gives a value other than undefined, null and false. */
export async function until<T>(
  condition: () => T | Promise<T>,
  what = 'the condition',
  ms = 30_000,
): Promise<NonNullable<T>> {
  const end = Date.now() + ms
  for (;;) {
    const value = await condition()
    if (value !== undefined && value !== null && value !== false) return value as NonNullable<T>
    if (Date.now() > end) throw new Error(`Waited ${ms} ms in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

export const settled = (replica: Replica): Promise<unknown> =>
  until(() => replica.status().initial.done && replica.status().pending === 0, 'an empty outbox')

/** Inserts a task by plain columns; returns its id. */
export async function addTask(replica: Replica, title: string, more: Record<string, SqlValue> = {}): Promise<string> {
  const row: Record<string, SqlValue> = { id: randomUUID(), tenant_id: TENANT, title, ...more }
  const names = Object.keys(row)
  const values = names.map((_, index) => `$${index + 1}`)
  await replica.write((tx) =>
    tx.query(`insert into tasks (${names.join(', ')}) values (${values.join(', ')})`, Object.values(row)),
  )
  return String(row['id'])
}

export const titles = async (replica: Replica): Promise<string[]> =>
  (await replica.query<{ title: string }>('select title from tasks order by title')).map(({ title }) => title)
