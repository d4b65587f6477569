/**
 * Loads what planning a push may ask for: few queries, whatever the number of mutations.
 *
 *  1. Rows that the push changes are locked (`hq_load`), tables in the order of their names, rows in that of their ids.
 *  2. Around tasks: blockers, what they block, deliverables, parents and children; and for new `blocks` relations all that can be reached from
 *     them, so that circles are seen. Whoever adds such a relation or a parent takes the tenant's lock first: two halves of a circle can't pass at once.
 *  3. Clocks are read only for rows where some base differs from what is there.
 */

import { isUuid } from '@hq/shared/domain/ids.ts'
import type { ColumnSpec } from '@hq/shared/schema/columns.ts'
import { isTableName, type TableName, tables } from '@hq/shared/schema/tables.ts'
import type { Mutation } from '@hq/shared/sync/protocol.ts'
import type { Queryable } from '../database/pool.ts'
import type { Clocks, Values } from './merge.ts'
import { createStore, type Store } from './store.ts'
import { sameValue, TRAVELS_AS_TEXT } from './values.ts'

interface LoadedRow {
  table_name: TableName
  data: Values
}

export async function loadStore(db: Queryable, tenantId: string, mutations: readonly Mutation[]): Promise<Store> {
  const store = createStore(tenantId)
  const needs = needsOf(mutations)
  if (needs.structure)
    await db.query(`select pg_advisory_xact_lock(hashtextextended('structure ' || $1, 0))`, [tenantId])

  if (needs.rows.size > 0) {
    const refs = [...needs.rows]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([table, ids]) => ({ table, ids: [...ids], texts: textColumns(table) }))
    const { rows } = await db.query<LoadedRow>({
      name: 'push_rows',
      text: 'select table_name, data from hq_load($1, $2)',
      values: [tenantId, JSON.stringify(refs)],
    })
    for (const { table_name, data } of rows) store.fill(table_name, data, true)
  }
  await loadAround(db, tenantId, store, needs, mutations)
  await loadClocks(db, store, mutations)
  return store
}

interface Needs {
  readonly rows: Map<TableName, Set<string>>
  readonly tasks: Set<string>
  /** Targets of new `blocks` relations. */
  readonly reach: Set<string>
  readonly runs: Set<string>
  structure: boolean
  people: boolean
  moved: Set<string>
}

function needsOf(mutations: readonly Mutation[]): Needs {
  const needs: Needs = {
    rows: new Map(),
    tasks: new Set(),
    reach: new Set(),
    runs: new Set(),
    structure: false,
    people: false,
    moved: new Set(),
  }
  const addTask = (id: unknown): void => {
    if (isUuid(id)) needs.tasks.add(id.toLowerCase())
  }
  for (const { patches, run_id, actor } of mutations) {
    if (run_id && actor.type !== 'human') needs.runs.add(run_id)
    for (const { table, id, op, set } of patches) {
      if (!isTableName(table)) continue
      const ids = needs.rows.get(table) ?? new Set<string>()
      needs.rows.set(table, ids.add(id.toLowerCase()))
      if (table === 'people') needs.people = true
      if (table === 'tasks') {
        if (op === 'delete' || ['status', 'deleted_at', 'parent_id'].some((column) => column in set)) addTask(id)
        if (set['parent_id']) {
          addTask(set['parent_id'])
          needs.structure = true
        }
      } else if (table === 'comments' && set['entity_type'] === 'task') addTask(set['entity_id'])
      else if (table === 'entity_links') addTask(set['owner_id'])
      else if (table === 'task_relations') {
        needs.structure = true
        addTask(set['source_task_id'])
        addTask(set['target_task_id'])
        if (isUuid(set['target_task_id'])) needs.reach.add(set['target_task_id'])
      } else if (table === 'agents' && 'gateway_id' in set) needs.moved.add(id.toLowerCase())
    }
  }
  return needs
}

const textColumns = (table: TableName): string[] =>
  Object.entries(tables[table].columns)
    .filter(([, { spec }]) => TRAVELS_AS_TEXT.has((spec as ColumnSpec).type))
    .map(([column]) => column)

const AROUND = `
with near as (
  select * from task_relations where tenant_id = $1 and deleted_at is null and (source_task_id = any ($2) or target_task_id = any ($2))
), beyond as (
  select r.* from task_relations r
   where r.tenant_id = $1 and r.deleted_at is null and r.relation_type = 'blocks'
     and r.target_task_id in (select target_task_id from near where relation_type = 'blocks')
), relations as (select * from near union select * from beyond)
select 'task_relations' as table_name, to_jsonb(r) as data from relations r
union all
select 'tasks', to_jsonb(t) from tasks t
 where t.tenant_id = $1 and (t.id = any ($2) or t.parent_id = any ($2)
    or t.id in (select source_task_id from relations union select target_task_id from relations))
union all
select 'entity_links', to_jsonb(l) from entity_links l
 where l.tenant_id = $1 and l.owner_id = any ($2) and l.owner_type = 'task' and l.is_deliverable and l.deleted_at is null`

const REACHABLE = `
with recursive reach (id) as (
  select unnest($2::uuid[])
  union
  select r.target_task_id from task_relations r join reach on r.source_task_id = reach.id
   where r.tenant_id = $1 and r.relation_type = 'blocks' and r.deleted_at is null
)
select 'task_relations' as table_name, to_jsonb(r) as data from task_relations r
 where r.tenant_id = $1 and r.relation_type = 'blocks' and r.deleted_at is null and r.source_task_id in (select id from reach)`

async function loadAround(
  db: Queryable,
  tenantId: string,
  store: Store,
  needs: Needs,
  mutations: readonly Mutation[],
): Promise<void> {
  const fill = (rows: readonly LoadedRow[]): void => {
    for (const { table_name, data } of rows) store.fill(table_name, data, false)
  }
  const load = async (name: string, text: string, values: unknown[]): Promise<void> => {
    const { rows } = await db.query<LoadedRow>({ name, text, values })
    fill(rows)
  }
  await load('push_agents', `select 'agents' as table_name, to_jsonb(a) as data from agents a where a.tenant_id = $1`, [
    tenantId,
  ])
  // What an update of a link or a relation is about stands in the row, not in the patch.
  for (const { patches } of mutations) {
    for (const { table, id } of patches) {
      const row = isTableName(table) ? store.get(table, id.toLowerCase()) : undefined
      if (!row) continue
      if (table === 'entity_links') needs.tasks.add(String(row['owner_id']))
      if (table === 'task_relations') {
        needs.tasks.add(String(row['source_task_id'])).add(String(row['target_task_id']))
        needs.reach.add(String(row['target_task_id']))
      }
    }
  }
  if (needs.tasks.size > 0) await load('push_around', AROUND, [tenantId, [...needs.tasks]])
  if (needs.reach.size > 0) await load('push_reach', REACHABLE, [tenantId, [...needs.reach]])
  if (needs.people)
    await load(
      'push_people',
      `select 'people' as table_name, to_jsonb(p) as data from people p where p.tenant_id = $1`,
      [tenantId],
    )
  if (needs.moved.size > 0) {
    await load(
      'push_moved',
      `select 'agent_inbox_items' as table_name, to_jsonb(i) as data from agent_inbox_items i
        where i.tenant_id = $1 and i.agent_id = any ($2) and i.status in ('pending', 'leased', 'failed')`,
      [tenantId, [...needs.moved]],
    )
    // Without what is in them: only whose they are changes.
    await load(
      'push_moved_files',
      `select 'agent_files' as table_name, to_jsonb(f) - 'content' as data from agent_files f
        where f.tenant_id = $1 and f.agent_id = any ($2)`,
      [tenantId, [...needs.moved]],
    )
    await load(
      'push_gateways',
      `select 'gateways' as table_name, to_jsonb(g) as data from gateways g where g.tenant_id = $1`,
      [tenantId],
    )
  }
  if (needs.runs.size > 0) {
    const { rows } = await db.query<{ id: string; depth: number }>({
      name: 'push_runs',
      text: `select r.id, coalesce((i.context->>'depth')::int, 0) as depth from agent_runs r
               join agent_inbox_items i on i.id = r.inbox_item_id where r.tenant_id = $1 and r.id = any ($2)`,
      values: [tenantId, [...needs.runs]],
    })
    for (const { id, depth } of rows) store.fillDepth(id, depth)
  }
}

/** (3) */
async function loadClocks(db: Queryable, store: Store, mutations: readonly Mutation[]): Promise<void> {
  const wanted: [string, string][] = []
  for (const { patches } of mutations) {
    for (const { table, id, set, base } of patches) {
      const row = isTableName(table) ? store.get(table, id.toLowerCase()) : undefined
      if (!row || !isTableName(table)) continue
      const columns: Readonly<Record<string, { spec: ColumnSpec }>> = tables[table].columns
      const differs = Object.keys(set).some((column) => {
        const spec = columns[column]?.spec
        return (
          (spec?.merge === 'lww' || spec?.merge === 'last') &&
          !(Object.hasOwn(base, column) && sameValue(spec.type, row[column], base[column]))
        )
      })
      if (differs) wanted.push([table, id])
    }
  }
  if (wanted.length === 0) return
  const { rows } = await db.query<{ table_name: TableName; row_id: string; clocks: Clocks }>({
    name: 'push_clocks',
    text: `select table_name, row_id, clocks from row_clocks
            where (table_name, row_id) in (select * from unnest($1::text[], $2::uuid[]))`,
    values: [wanted.map(([table]) => table), wanted.map(([, id]) => id)],
  })
  for (const { table_name, row_id, clocks } of rows) store.fillClocks(table_name, row_id, clocks)
}
