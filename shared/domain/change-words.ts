/**
 * How a change in the outbox reads to a person, in the app and in the terminal. Pure.
 *
 *     Task “Call Ana”: title, status · New comment “Please look” · Deleted task “Old” · 14 rows in one step (tasks, comments)
 */
import type { TableName } from '../schema/tables.ts'

export interface ChangePatch {
  readonly table: TableName
  readonly id: string
  readonly op: 'insert' | 'update' | 'delete'
  readonly set: Readonly<Record<string, unknown>>
  readonly base: Readonly<Record<string, unknown>>
}

/** What the row is called now, for patches that do not touch its name. */
export type NameOf = (table: TableName, id: string) => string | undefined

const NOUNS: Partial<Record<TableName, string>> = {
  entity_links: 'deliverable or link',
  knowledge_items: 'page',
  task_relations: 'relation between tasks',
  notification_reads: 'read mark',
  agent_inbox_items: 'inbox item',
  agent_commands: 'command',
  agent_runs: 'run',
  people: 'person',
  workspace: 'workspace',
}

export const nounOf = (table: TableName): string =>
  NOUNS[table] ?? table.replaceAll('_', ' ').replace(/ies$/, 'y').replace(/s$/, '')

/** The columns by which a row is called, best first. */
export const NAME_COLUMNS = ['title', 'name', 'label', 'action', 'body'] as const

const MOST = 60

/** One line, at most `MOST` characters. */
export const shortened = (text: string): string => {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > MOST ? `${[...line].slice(0, MOST - 1).join('')}…` : line
}

export function nameIn(values: Readonly<Record<string, unknown>>): string | undefined {
  for (const key of NAME_COLUMNS) {
    const value = values[key]
    if (typeof value === 'string' && value.trim() !== '') return shortened(value)
  }
  return undefined
}

const wordsOf = (column: string): string => column.replace(/_(id|at)$/, '').replaceAll('_', ' ')
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
const isDelete = (patch: ChangePatch): boolean =>
  patch.op === 'delete' || (patch.op === 'update' && Boolean(patch.set['deleted_at']))

export function describeChange(patches: readonly ChangePatch[], nameOf: NameOf = () => undefined): string {
  const [first] = patches
  if (!first) return 'An empty change'
  if (patches.length > 1) {
    const kinds = new Set(patches.map((patch) => nounOf(patch.table)))
    const lead = nameIn(first.set) ?? nameOf(first.table, first.id)
    return `${patches.length.toLocaleString('en')} rows in one step (${[...kinds].join(', ')})${lead ? `, “${lead}” first` : ''}`
  }
  const noun = nounOf(first.table)
  // A refused new name is not what the row is called.
  const name =
    first.op === 'insert'
      ? (nameIn(first.set) ?? nameOf(first.table, first.id))
      : (nameOf(first.table, first.id) ?? nameIn(first.set) ?? nameIn(first.base))
  const called = name ? ` “${name}”` : ''
  if (isDelete(first)) return `Deleted ${noun}${called}`
  if (first.op === 'insert') return `New ${noun}${called}`
  return `${capital(noun)}${called}: ${Object.keys(first.set).map(wordsOf).join(', ')}`
}

/** How many changes a group of the same kind has: "Tasks", "Comments"; what touches several kinds is by its first row. */
export const groupOf = (patches: readonly ChangePatch[]): string => {
  const noun = patches[0] ? nounOf(patches[0].table) : 'change'
  return capital(
    noun.endsWith('y') && !/[aeiou]y$/.test(noun)
      ? `${noun.slice(0, -1)}ies`
      : noun === 'person'
        ? 'people'
        : noun === 'relation between tasks'
          ? 'relations between tasks'
          : noun === 'deliverable or link'
            ? 'deliverables and links'
            : `${noun}s`,
  )
}
