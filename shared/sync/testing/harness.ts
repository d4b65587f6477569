/** What tests of replicas share: PGlite from one migrated image (initdb once per process), replicas on it, and waiting for a condition. Node only. */
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import type { Migration } from '../../schema/migrations.ts'
import type { Replica } from '../contract.ts'
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
  ms = 10_000,
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
