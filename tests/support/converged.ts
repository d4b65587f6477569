/**
 * The final check of everything that was cut and killed: every synced table of a replica is what the authority has for it, and no change waits.
 */
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { type TableName, tableNames, tables } from '@hq/shared/schema/tables.ts'
import type { Replica } from '@hq/shared/sync/contract.ts'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { eventually, query, statusOf } from './browser.ts'
import type { Gateway, Row, System } from './system.ts'

interface Identity {
  readonly replica_id: string
  readonly owner_id: string
}
type Ask = (sql: string) => Promise<Row[]>
type Kind = 'browser' | 'gateway'

/** One text for the same value on both sides, whatever their time zone. */
const asText = (column: string, type: string): string =>
  type === 'timestamptz'
    ? `to_char("${column}" at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')`
    : type === 'bytea'
      ? `encode("${column}", 'hex')`
      : `"${column}"::text`

/** What is written all the time and says nothing about people's data. */
const RESTLESS: Partial<Record<TableName, readonly string[]>> = {
  replicas: ['last_seen_at', 'updated_at'],
  gateways: ['last_seen_at', 'updated_at'],
}

function rowsOf(table: TableName, where: string, without: readonly string[] = []): string {
  const left = new Set([...(RESTLESS[table] ?? []), ...without])
  const columns = Object.entries(tables[table].columns as Record<string, { spec: { type: string } }>)
    .filter(([name]) => !left.has(name))
    .map(([name, { spec }]) => `coalesce(${asText(name, spec.type)}, '∅')`)
  return `select '${table}' as t, id::text, md5(concat_ws('|', ${columns.join(', ')})) as h from ${table} where ${where}`
}

const visible = (kind: Kind): TableName[] => tableNames.filter((name) => tables[name].visibility[kind] !== 'none')

function scope(table: TableName, kind: Kind, { replica_id, owner_id }: Identity): string {
  switch (tables[table].visibility[kind]) {
    case 'person':
      return `person_id = '${owner_id}'`
    case 'replica':
      return `replica_id = '${replica_id}'`
    case 'own':
      return `gateway_id = '${owner_id}'`
    default:
      return 'true'
  }
}

/** Rows that differ between a replica and what the authority has for it, as text. */
async function differences(system: System, kind: Kind, ask: Ask, identity: Identity, without: readonly string[] = []) {
  const names = visible(kind)
  const all = (where: (name: TableName) => string): string =>
    names.map((name) => rowsOf(name, where(name), without)).join(' union all ')
  const here = await ask(all(() => 'true'))
  const there = await system.rows(all((name) => scope(name, kind, identity)))
  const keyed = (rows: Row[]): Map<string, unknown> => new Map(rows.map(({ t, id, h }) => [`${t} ${id}`, h]))
  const [local, authority] = [keyed(here), keyed(there)]
  const wrong = [...new Set([...local.keys(), ...authority.keys()])].filter((k) => local.get(k) !== authority.get(k))
  const details: string[] = []
  for (const key of wrong.slice(0, 4)) {
    const [table, id] = key.split(' ')
    const sql = `select to_jsonb(x)::text as row from ${table} x where id = '${id}'`
    const [[a], [b]] = await Promise.all([ask(sql), system.rows(sql)])
    details.push(`${key}\n  here ${a?.['row'] ?? 'nothing'}\n  authority ${b?.['row'] ?? 'nothing'}`)
  }
  return { wrong, details, rows: local.size }
}

/** Waits until the browser has what the authority has and nothing waits to be sent; `rejected`: how many refusals wait for a person. */
export async function browserConverged(
  system: System,
  page: Page,
  { rejected = 0, ms = 60_000 }: { rejected?: number; ms?: number } = {},
): Promise<void> {
  const [identity] = await query<Identity & Row>(page, 'select replica_id, owner_id from sync.replica')
  if (!identity) throw new Error('This page has no replica.')
  await eventually(
    'the browser has what the authority has',
    async () => {
      const status = (await statusOf(page))?.status
      if (status?.connection !== 'online' || status.pending > 0) throw new Error(JSON.stringify(status))
      const open = await query<Row>(page, `select state from sync.outbox`)
      if (open.some(({ state }) => state !== 'rejected')) throw new Error(`outbox: ${JSON.stringify(open)}`)
      const { wrong, details, rows } = await differences(system, 'browser', (sql) => query(page, sql), identity)
      // What was refused still stands here, until a person decides.
      const held = new Set(
        (await query<Row>(page, `select table_name || ' ' || row_id as k from sync.row_states`)).map(({ k }) => k),
      )
      const unexplained = wrong.filter((key) => !held.has(key))
      if (unexplained.length > 0) throw new Error(`${unexplained.length} rows differ:\n${details.join('\n')}`)
      expect(open).toHaveLength(rejected)
      expect(rows).toBeGreaterThan(0)
      return true
    },
    ms,
  )
}

/** Waits until a replica in this process has what the authority has and nothing waits to be sent. */
export async function replicaConverged(system: System, replica: Replica, ms = 60_000): Promise<void> {
  const { kind, replicaId: replica_id, ownerId: owner_id } = replica.identity
  await eventually(
    'the replica has what the authority has',
    async () => {
      const { pending, connection } = replica.status()
      if (pending > 0) throw new Error(`${pending} changes wait, ${connection}`)
      const { wrong, details, rows } = await differences(system, kind, (sql) => replica.query(sql), {
        replica_id,
        owner_id,
      })
      if (wrong.length > 0) throw new Error(`${wrong.length} rows differ:\n${details.join('\n')}`)
      return rows > 0
    },
    ms,
  )
}

/** The same for a gateway that has been stopped in order: opens its database. What only the server's echo brings is left out. */
export async function gatewayConverged(system: System, gateway: Gateway): Promise<void> {
  const db = await PGlite.create({ dataDir: join(gateway.home, 'replica') })
  try {
    const ask: Ask = async (sql) => (await db.query<Row>(sql)).rows
    const [identity] = (await ask('select replica_id, owner_id from sync.replica')) as unknown as Identity[]
    if (!identity) throw new Error('The gateway has no replica.')
    const { wrong, details } = await differences(system, 'gateway', ask, identity, ['updated_at'])
    const late = /^(audit_log|client_progress|mutation_results|replicas|notifications) /
    expect(
      wrong.filter((key) => !late.test(key)),
      details.join('\n'),
    ).toEqual([])
  } finally {
    await db.close()
  }
}

/** Ids that appear more than once under what should be one cause: nothing may have been done twice. */
export async function nothingDoubled(system: System): Promise<void> {
  for (const [table, key] of [
    ['agent_inbox_items', 'dedup_key'],
    ['notifications', 'dedup_key'],
    ['comments', "entity_id::text || '|' || actor_type || '|' || body"],
    ['entity_links', "owner_id::text || '|' || coalesce(label, '') || '|' || coalesce(supersedes_id::text, '')"],
  ] as const) {
    const twice = await system.rows(
      `select ${key} as k, count(*)::int as n from ${table} where ${key} is not null and deleted_at is null group by 1 having count(*) > 1`,
    )
    expect(twice, table).toEqual([])
  }
}
