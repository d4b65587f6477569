/**
 * The rows that a push works on, in memory: what the database has (locked, where the push changes it), and on top what the mutations planned so far do.
 *
 *  1. A mutation that is refused leaves no trace (`begin` … `commit` or `rollback`).
 *  2. Reading is synchronous: whatever a plan may ask for was loaded before (`load.ts`).
 */

import type { AgentFacts, World } from '@hq/shared/domain/derive.ts'
import type { Deliverable } from '@hq/shared/domain/review.ts'
import { type TableName, tables } from '@hq/shared/schema/tables.ts'
import { literalDefault } from './defaults.ts'
import type { Clocks, Values } from './merge.ts'

export interface Store extends World {
  get(table: TableName, id: string): Values | undefined
  all(table: TableName): Iterable<Values>
  put(table: TableName, id: string, row: Values): void
  clocks(table: TableName, id: string): Clocks
  addClocks(table: TableName, id: string, clocks: Clocks): void
  begin(): void
  commit(): void
  rollback(): void
  /** What the loader found. `whole`: may replace what is there (a locked row over a row read in passing). */
  fill(table: TableName, row: Values, whole: boolean): void
  fillClocks(table: TableName, id: string, clocks: Clocks): void
  fillDepth(runId: string, depth: number): void
}

export function createStore(tenantId: string): Store {
  const loaded = new Map<TableName, Map<string, Values>>()
  const staged = new Map<string, { table: TableName; id: string; row: Values | undefined }>()
  const clocks = new Map<string, Clocks>()
  const stagedClocks = new Map<string, Clocks>()
  const depths = new Map<string, number>()
  const keyOf = (table: string, id: string): string => `${table}/${id}`
  const rowsOf = (table: TableName): Map<string, Values> => {
    const rows = loaded.get(table) ?? new Map<string, Values>()
    if (!loaded.has(table)) loaded.set(table, rows)
    return rows
  }

  const store: Store = {
    tenantId,
    get: (table, id) => staged.get(keyOf(table, id))?.row ?? loaded.get(table)?.get(id),
    *all(table) {
      for (const [id, row] of rowsOf(table)) if (!staged.has(keyOf(table, id))) yield row
      for (const change of staged.values()) if (change.table === table && change.row) yield change.row
    },
    put: (table, id, row) => void staged.set(keyOf(table, id), { table, id, row }),
    clocks: (table, id) => ({ ...clocks.get(keyOf(table, id)), ...stagedClocks.get(keyOf(table, id)) }),
    addClocks(table, id, more) {
      const key = keyOf(table, id)
      stagedClocks.set(key, { ...stagedClocks.get(key), ...more })
    },
    begin() {
      staged.clear()
      stagedClocks.clear()
    },
    commit() {
      for (const { table, id, row } of staged.values()) if (row) rowsOf(table).set(id, row)
      for (const [key, more] of stagedClocks) clocks.set(key, { ...clocks.get(key), ...more })
      store.begin()
    },
    rollback: () => store.begin(),
    fill(table, row, whole) {
      const id = String(row['id'])
      if (whole || !rowsOf(table).has(id)) rowsOf(table).set(id, row)
    },
    fillClocks: (table, id, found) => void clocks.set(keyOf(table, id), found),
    fillDepth: (runId, depth) => void depths.set(runId, depth),

    // World (shared/domain/derive.ts)
    agent: (id) => store.get('agents', id) as AgentFacts | undefined,
    agentBySlug(slug) {
      for (const agent of store.all('agents'))
        if (agent['slug'] === slug && !agent['deleted_at']) return agent as unknown as AgentFacts
      return undefined
    },
    task: (id) => store.get('tasks', id),
    blockersOf: (id) =>
      blocks(store, (relation) => relation['target_task_id'] === id).map((relation) =>
        String(relation['source_task_id']),
      ),
    blockedBy: (id) =>
      blocks(store, (relation) => relation['source_task_id'] === id).map((relation) =>
        String(relation['target_task_id']),
      ),
    deliverablesOf(taskId) {
      const links: (Values & Deliverable)[] = []
      for (const link of store.all('entity_links')) {
        if (
          link['owner_type'] === 'task' &&
          link['owner_id'] === taskId &&
          link['is_deliverable'] === true &&
          !link['deleted_at']
        ) {
          links.push(link as Values & Deliverable)
        }
      }
      return links
    },
    depthOfRun(runId) {
      const known = depths.get(runId)
      if (known !== undefined) return known
      const item = store.get('agent_runs', runId)?.['inbox_item_id']
      const context = item
        ? (store.get('agent_inbox_items', String(item))?.['context'] as { depth?: unknown } | undefined)
        : undefined
      return Number(context?.depth ?? 0) || 0
    },
  }
  return store
}

function blocks(store: Store, matches: (relation: Values) => boolean): Values[] {
  const found: Values[] = []
  for (const relation of store.all('task_relations')) {
    if (relation['relation_type'] === 'blocks' && !relation['deleted_at'] && matches(relation)) found.push(relation)
  }
  return found
}

/** A new row as the database will have it: what was left out has its default, where that is a plain value, or null. */
export function withDefaults(table: TableName, row: Values): Values {
  const whole: Values = {}
  for (const [column, { spec }] of Object.entries(tables[table].columns))
    whole[column] = row[column] ?? literalDefault(spec)
  return whole
}
