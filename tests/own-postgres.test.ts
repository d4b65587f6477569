/** What docs/install.md says about a Postgres of one's own: which rights are enough, and what the server says when one is missing. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningServer, startServer } from '@hq/sync-server/server.ts'
import { startTestPostgres, type TestPostgres } from '@hq/sync-server/shapes/testing/postgres.ts'
import pg from 'pg'
import { expect, test } from 'vitest'
import { OWNER } from './support/browser.ts'

interface Own {
  readonly url: string
  readonly postgres: TestPostgres
  query(sql: string): Promise<Record<string, unknown>[]>
  start(electricUrl?: string): Promise<RunningServer>
}

/** A Postgres with a database `shop` of the role `app`, which has the `attribute`, and is no superuser. */
async function withOwnPostgres(
  { attribute, settings = {} }: { attribute: 'replication' | 'noreplication'; settings?: Record<string, string> },
  check: (own: Own) => Promise<void>,
): Promise<void> {
  const postgres = await startTestPostgres({ settings })
  const home = await mkdtemp(join(tmpdir(), 'hq-own-'))
  const admin = new pg.Client({ connectionString: postgres.url })
  try {
    await admin.connect()
    await admin.query(`create role app login ${attribute} password 'secret'`)
    await admin.query('create database shop owner app')
    const url = new URL(postgres.url)
    Object.assign(url, { username: 'app', password: 'secret', pathname: '/shop' })
    await check({
      url: url.href,
      postgres,
      query: async (sql) => (await admin.query<Record<string, unknown>>(sql)).rows,
      start: (electricUrl) => startServer({ databaseUrl: url.href, home, ...(electricUrl && { electricUrl }) }),
    })
  } finally {
    await admin.end()
    await postgres.stop()
    await rm(home, { recursive: true, force: true })
  }
}

const setUp = ({ url }: RunningServer): Promise<Response> => {
  const { workspace: workspace_name, ...who } = OWNER
  return fetch(`${url}/v1/setup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...who, workspace_name, timezone: 'Europe/Berlin' }),
  })
}

test('a role that owns its database and may replicate is enough; one slot and one publication, both hq_shapes', () =>
  withOwnPostgres({ attribute: 'replication' }, async ({ start, query, url }) => {
    const server = await start()
    expect((await setUp(server)).status).toBeLessThan(300)
    expect(await query('select slot_name, active from pg_replication_slots')).toEqual([
      { slot_name: 'hq_shapes', active: true },
    ])
    await server.stop()
    // As docs/install.md says it for the end.
    const app = new pg.Client({ connectionString: url })
    await app.connect()
    await app.query(`select pg_drop_replication_slot('hq_shapes')`)
    await app.query('drop publication hq_shapes')
    await app.end()
    expect(await query('select slot_name from pg_replication_slots')).toEqual([])
    // And what was given up is made anew by the next start.
    const again = await start()
    await again.stop()
  }))

test('without the right to replicate the server does not start, and says which right is missing', () =>
  withOwnPostgres({ attribute: 'noreplication' }, async ({ start }) => {
    await expect(start()).rejects.toThrow('ALTER ROLE … REPLICATION')
  }))

test('with an Electric the server itself needs no right to replicate', () =>
  withOwnPostgres({ attribute: 'noreplication' }, async ({ start, query }) => {
    const server = await start('http://127.0.0.1:9')
    expect((await setUp(server)).status).toBeLessThan(300)
    expect(await query('select slot_name from pg_replication_slots')).toEqual([])
    await server.stop()
  }))

test('without logical decoding the server does not start, and says how to turn it on', () =>
  withOwnPostgres({ attribute: 'replication', settings: { wal_level: 'replica' } }, async ({ start }) => {
    await expect(start()).rejects.toThrow(`wal_level = 'logical'`)
  }))
