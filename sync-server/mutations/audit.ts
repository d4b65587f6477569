/**
 * Who did what: one row of `audit_log` for each patch that changed something a person cares about.
 * What gateways stream (runs, output, usage, files, heartbeats, queue states) has its own tables and is not audited once more.
 */
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { TableName } from '@hq/shared/schema/tables.ts'
import type { Values } from './merge.ts'

const ENTITY: Partial<Record<TableName, Enum<'entity_type'> | string>> = {
  workspace: 'workspace',
  people: 'person',
  gateways: 'gateway',
  agents: 'agent',
  agent_commands: 'command',
  agent_budgets: 'agent',
  streams: 'stream',
  contacts: 'contact',
  tasks: 'task',
  task_relations: 'task',
  comments: 'comment',
  entity_links: 'deliverable',
  knowledge_items: 'knowledge_item',
  secrets: 'secret',
  model_connections: 'model_connection',
  approvals: 'approval',
}

/** Columns whose change alone is no act: what a gateway reports of itself and its agents, and where a card lies on a board. */
const QUIET: Partial<Record<TableName, ReadonlySet<string>>> = {
  gateways: new Set(['last_seen_at', 'started_at', 'meta', 'status']),
  agents: new Set(['last_seen_at', 'gate', 'gate_detail', 'gate_until', 'status_reason']),
  agent_commands: new Set(['lease_owner', 'lease_token', 'leased_until', 'progress', 'attempt_count', 'started_at']),
  tasks: new Set(['sort_order']),
  secrets: new Set(['sync_status', 'synced_version', 'last_synced_at', 'sync_error']),
  model_connections: new Set(['status', 'status_detail', 'checked_at']),
  approvals: new Set(['applied_at', 'error_message']),
}

export interface AuditEntry {
  readonly entity_type: string
  readonly entity_id: string
  readonly action: Enum<'audit_action'>
  readonly summary: string | null
  readonly changes: Values
}

export function auditOf(
  table: TableName,
  before: Values | undefined,
  after: Values,
  changed: Values,
): AuditEntry | undefined {
  const entity = ENTITY[table]
  if (!entity) return undefined
  const columns = Object.keys(changed).filter((column) => column !== 'updated_at')
  if (before && columns.every((column) => QUIET[table]?.has(column))) return undefined
  const changes: Values = {}
  if (before) for (const column of columns) changes[column] = [short(before[column]), short(changed[column])]
  return {
    entity_type: entity,
    entity_id: String(
      table === 'agent_budgets'
        ? after['agent_id']
        : table === 'task_relations'
          ? after['source_task_id']
          : after['id'],
    ),
    action: actionOf(table, before, changed),
    summary: summaryOf(after),
    changes,
  }
}

function actionOf(table: TableName, before: Values | undefined, changed: Values): Enum<'audit_action'> {
  if (!before) return table === 'comments' ? 'commented' : table === 'entity_links' ? 'attached' : 'created'
  const has = (column: string): boolean => Object.hasOwn(changed, column)
  if (has('deleted_at')) return changed['deleted_at'] ? 'deleted' : 'restored'
  if (has('review_status')) return 'reviewed'
  if (has('assignee_agent_id') || has('assignee_person_id')) return 'assigned'
  if (has('status')) return 'status_changed'
  if (has('archived_at') && changed['archived_at']) return 'archived'
  return 'updated'
}

function summaryOf(row: Values): string | null {
  for (const column of ['title', 'name', 'label', 'action', 'body', 'url']) {
    const value = row[column]
    if (typeof value === 'string' && value) return value.slice(0, 200)
  }
  return null
}

/** Enough of a value to recognise it; the whole is in the row. */
function short(value: unknown): unknown {
  if (typeof value === 'string') return value.length > 300 ? `${value.slice(0, 299)}…` : value
  if (typeof value === 'object' && value !== null) return JSON.stringify(value).length > 600 ? '…' : value
  return value ?? null
}
