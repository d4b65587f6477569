/** How a change in the outbox reads to a person. Pure. */
import type { TableSpec } from '@hq/shared/schema/columns.ts'
import { tables } from '@hq/shared/schema/tables.ts'
import type { OutboxEntry } from '@hq/shared/sync/contract.ts'

type Patch = OutboxEntry['patches'][number]

const NOUNS: Partial<Record<Patch['table'], string>> = {
  entity_links: 'deliverable or link',
  knowledge_items: 'page',
  task_relations: 'relation between tasks',
  notification_reads: 'read mark',
  agent_inbox_items: 'inbox item',
  people: 'person',
}

const nounOf = (table: Patch['table']): string => NOUNS[table] ?? table.replaceAll('_', ' ').replace(/s$/, '')

const VERBS: Record<Patch['op'], string> = { insert: 'New', update: 'Changed', delete: 'Deleted' }

/** "Changed task “Call Ana”: status, due date", "New comment", "Changed 14 rows". */
export function describe(entry: OutboxEntry): string {
  const [first] = entry.patches
  if (!first) return 'An empty change'
  if (entry.patches.length > 1) {
    const kinds = new Set(entry.patches.map((patch) => nounOf(patch.table)))
    return `${entry.patches.length} rows in one step (${[...kinds].join(', ')})`
  }
  const name = nameIn(first.set) ?? nameIn(first.base)
  const deleted = first.op === 'update' && first.set.deleted_at
  const verb = deleted ? VERBS.delete : VERBS[first.op]
  const columns = first.op === 'update' && !deleted ? `: ${Object.keys(first.set).map(wordsOf).join(', ')}` : ''
  return `${verb} ${nounOf(first.table)}${name ? ` “${name}”` : ''}${columns}`
}

const wordsOf = (column: string): string => column.replace(/_(id|at)$/, '').replaceAll('_', ' ')

function nameIn(values: Record<string, unknown>): string | undefined {
  for (const key of ['title', 'name', 'label', 'body']) {
    const value = values[key]
    if (typeof value === 'string' && value !== '') return value.length > 60 ? `${value.slice(0, 59)}…` : value
  }
  return undefined
}

export interface FieldChange {
  readonly table: Patch['table']
  readonly id: string
  readonly column: string
  readonly before: unknown
  readonly after: unknown
  /** One line of text that a person can correct here and send again. */
  readonly editable: boolean
}

/** Of no interest to a person: who and where the row is. */
const TECHNICAL = new Set(['id', 'tenant_id', 'created_at', 'updated_at'])

/** Column by column, for the details of an entry. */
export function fieldsOf(entry: OutboxEntry): FieldChange[] {
  return entry.patches.flatMap((patch) => {
    const columns: TableSpec['columns'] = tables[patch.table].columns
    return Object.entries(patch.set)
      .filter(([column]) => !TECHNICAL.has(column))
      .map(([column, after]) => {
        const spec = columns[column]?.spec
        const editable =
          spec?.type === 'text' && spec.enum === undefined && (typeof after === 'string' || after === null)
        return { table: patch.table, id: patch.id, column, before: patch.base[column], after, editable }
      })
  })
}

/** A value as text. */
export function valueText(value: unknown): string {
  if (value === undefined || value === null || value === '') return 'empty'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** What the reasons of the server ask of a person. */
export function adviceOf(code: string): string {
  switch (code) {
    case 'forbidden':
      return 'Send it again when you may, or discard it.'
    case 'missing_row':
    case 'missing_reference':
      return 'Something it belongs to was removed. Copy what you need, then discard it.'
    case 'stale':
      return 'Somebody else changed this meanwhile. Look at it as it is now, then try again or discard this.'
    case 'not_unique':
      return 'That name is taken. Choose another one below and try again.'
    case 'immutable':
    case 'unknown_table':
    case 'unknown_column':
    case 'malformed':
      return 'This version of HQ may be too old. Reload, then try again.'
    case 'too_large':
      return 'It is too large to be sent at once. Copy it and make it in smaller pieces.'
    default:
      return 'Correct it and try again, or discard it.'
  }
}
