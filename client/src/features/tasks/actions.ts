/**
 * Everything that changes tasks. Each call is one local transaction (one mutation per 500 tasks), durable when it returns, and leaves
 * the way back on the undo stack.
 *
 * U1 Undo restores exactly the columns that were changed, and only where they still hold what was set: it never undoes somebody else.
 * U2 A value that is already there is not written.
 */
import { tables } from '@hq/shared/schema/tables.ts'
import type { SqlValue, Statement, WriteFunction } from '../../replica/hooks.ts'
import type { Undoable } from '../../ui/undo.ts'
import {
  type Assignee,
  cleanTitle,
  PRIORITY,
  plural,
  STATUS,
  type Task,
  type TaskPriority,
  type TaskStatus,
} from './model.ts'
import { type OrderChange, type Ordered, place } from './order.ts'

export interface ActionEnvironment {
  readonly write: WriteFunction
  readonly query: <T>(sql: string, params: readonly SqlValue[]) => Promise<T[]>
  readonly newId: () => string
  readonly pushUndo: (entry: Undoable) => void
  readonly tenantId: string
  readonly me: string
}

export type Settable = Partial<
  Pick<
    Task,
    | 'title'
    | 'description'
    | 'status'
    | 'priority'
    | 'stream_id'
    | 'parent_id'
    | 'assignee_type'
    | 'assignee_agent_id'
    | 'assignee_person_id'
    | 'due_date'
    | 'completed_at'
    | 'tags'
    | 'sort_order'
    | 'deleted_at'
  >
>

export interface NewTask {
  readonly title: string
  readonly status?: TaskStatus | undefined
  readonly priority?: TaskPriority | undefined
  readonly stream_id?: string | null | undefined
  readonly parent_id?: string | undefined
  readonly assignee?: Assignee | undefined
  readonly due_date?: string | null | undefined
}

const CHUNK = 500
const typeOf = (column: keyof Settable): string => tables.tasks.columns[column].spec.type

function chunks<T>(list: readonly T[]): T[][] {
  const result: T[][] = []
  for (let i = 0; i < list.length; i += CHUNK) result.push(list.slice(i, i + CHUNK))
  return result
}

export const assigneeColumns = (assignee: Assignee): Settable => ({
  assignee_type: assignee?.type ?? null,
  assignee_agent_id: assignee?.type === 'agent' ? assignee.id : null,
  assignee_person_id: assignee?.type === 'human' ? assignee.id : null,
})

export type TaskActions = ReturnType<typeof taskActions>

export function taskActions(env: ActionEnvironment) {
  /** Sets the same values on all of `ids` (U1, U2). Returns how many changed. */
  async function set(ids: readonly string[], values: Settable, label: string): Promise<number> {
    const columns = Object.keys(values) as (keyof Settable)[]
    if (ids.length === 0 || columns.length === 0) return 0
    const assignments = columns.map((column, i) => `"${column}" = $${i + 2}::${typeOf(column)}`)
    const differs = columns.map((column, i) => `"${column}" is distinct from $${i + 2}::${typeOf(column)}`)
    const params = columns.map((column) => values[column] as SqlValue)
    const before = await env.query<Pick<Task, 'id'> & Settable>(
      `select id, ${columns.map((column) => `"${column}"`).join(', ')} from tasks
       where id = any($1::uuid[]) and (${differs.join(' or ')})`,
      [ids, ...params],
    )
    if (before.length === 0) return 0
    for (const part of chunks(before)) {
      await env.write([
        {
          sql: `update tasks set ${assignments.join(', ')} where id = any($1::uuid[])`,
          params: [part.map((row) => row.id), ...params],
        },
      ])
    }
    env.pushUndo({ label, undo: () => restore(before, columns, values) })
    return before.length
  }

  async function restore(
    before: readonly (Pick<Task, 'id'> & Settable)[],
    columns: readonly (keyof Settable)[],
    values: Settable,
  ): Promise<void> {
    const same = Map.groupBy(before, (row) => JSON.stringify(columns.map((column) => row[column] ?? null)))
    const statements: Statement[] = []
    for (const rows of same.values()) {
      for (const part of chunks(rows)) {
        const first = part[0]
        if (!first) continue
        const old = columns.map((column, i) => `"${column}" = $${i + 2}::${typeOf(column)}`)
        // completed_at carries a clock and follows the status, so it is no test of who wrote last.
        const tested = columns.filter((column) => column !== 'completed_at' && column !== 'deleted_at')
        const still = tested.map(
          (column) =>
            `"${column}" is not distinct from $${columns.length + 2 + tested.indexOf(column)}::${typeOf(column)}`,
        )
        statements.push({
          sql: `update tasks set ${old.join(', ')} where id = any($1::uuid[])${still.length > 0 ? ` and ${still.join(' and ')}` : ''}`,
          params: [
            part.map((row) => row.id),
            ...columns.map((column) => (first[column] ?? null) as SqlValue),
            ...tested.map((column) => (values[column] ?? null) as SqlValue),
          ],
        })
      }
    }
    for (const statement of statements) await env.write([statement])
  }

  const many = (ids: readonly string[], what: string): string =>
    ids.length === 1 ? what : `${plural(ids.length, 'task')}: ${what}`

  const statusColumns = (status: TaskStatus): Settable => ({
    status,
    completed_at: status === 'done' ? new Date().toISOString() : null,
  })

  return {
    set,
    setStatus: (ids: readonly string[], status: TaskStatus) =>
      set(ids, statusColumns(status), many(ids, STATUS[status].label)),
    setPriority: (ids: readonly string[], priority: TaskPriority) =>
      set(ids, { priority }, many(ids, `priority ${PRIORITY[priority].label}`)),
    assign: (ids: readonly string[], assignee: Assignee, name: string) =>
      set(ids, assigneeColumns(assignee), many(ids, assignee ? `assigned to ${name}` : 'assigned to nobody')),
    setDue: (ids: readonly string[], due_date: string | null) =>
      set(ids, { due_date }, many(ids, due_date ? 'due date' : 'no due date')),
    setStream: (ids: readonly string[], stream_id: string | null, name: string) =>
      set(ids, { stream_id }, many(ids, stream_id ? `stream ${name}` : 'no stream')),
    setTags: (id: string, tags: readonly string[]) => set([id], { tags: [...tags] }, 'labels'),
    rename: (id: string, title: string) => {
      const clean = cleanTitle(title)
      return clean === '' ? Promise.resolve(0) : set([id], { title: clean }, `renamed to “${clean}”`)
    },
    /** Saves text without an entry per keystroke on the undo stack: the browser's own undo works inside the field. */
    async saveText(id: string, column: 'title' | 'description', text: string | null): Promise<void> {
      await env.write([
        {
          sql: `update tasks set ${column} = $2::text where id = $1::uuid and ${column} is distinct from $2::text`,
          params: [id, text],
        },
      ])
    },

    /** Subtasks go with their task. */
    async remove(ids: readonly string[]): Promise<number> {
      const all = await env.query<{ id: string }>(
        'select id from tasks where (id = any($1::uuid[]) or parent_id = any($1::uuid[])) and deleted_at is null',
        [ids],
      )
      return set(
        all.map((row) => row.id),
        { deleted_at: new Date().toISOString() },
        `deleted ${plural(ids.length, 'task')}`,
      )
    },

    /** Returns the id. A new task stands at the top of its status; a new subtask at the end of its list. */
    async create(task: NewTask): Promise<string> {
      const id = env.newId()
      const status = task.status ?? 'todo'
      const assignee = assigneeColumns(task.assignee ?? null)
      const order = task.parent_id
        ? `coalesce((select max(sort_order) + 1 from tasks where parent_id = $7::uuid and deleted_at is null), 0)`
        : `coalesce((select min(sort_order) - 1 from tasks where status = $4::text and deleted_at is null), 0)`
      await env.write([
        {
          sql: `insert into tasks (id, tenant_id, title, status, priority, stream_id, parent_id, assignee_type, assignee_agent_id,
              assignee_person_id, due_date, created_by_type, created_by_id, sort_order)
            values ($1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::uuid, $7::uuid, $8::text, $9::uuid,
              $10::uuid, $11::timestamptz, 'human', $12::uuid, ${order})`,
          params: [
            id,
            env.tenantId,
            cleanTitle(task.title),
            status,
            task.priority ?? 'medium',
            task.stream_id ?? null,
            task.parent_id ?? null,
            assignee.assignee_type ?? null,
            assignee.assignee_agent_id ?? null,
            assignee.assignee_person_id ?? null,
            task.due_date ?? null,
            env.me,
          ],
        },
      ])
      env.pushUndo({
        label: `created “${cleanTitle(task.title)}”`,
        undo: async () => {
          await env.write([{ sql: 'update tasks set deleted_at = now() where id = $1::uuid', params: [id] }])
        },
      })
      return id
    },

    /** Puts a task before `index` of `others` (its new list without itself), into another status if one is given. */
    async move(task: Ordered, others: readonly Ordered[], index: number, status?: TaskStatus): Promise<void> {
      const changes = place(task, others, index)
      const old = await env.query<Pick<Task, 'id' | 'sort_order' | 'status' | 'completed_at'>>(
        'select id, sort_order, status, completed_at from tasks where id = any($1::uuid[])',
        [changes.map((change) => change.id)],
      )
      const reorder = (list: readonly OrderChange[]): Statement => ({
        sql: `update tasks t set sort_order = n.sort_order
          from unnest($1::uuid[], $2::double precision[]) as n(id, sort_order) where t.id = n.id`,
        params: [list.map((change) => change.id), list.map((change) => change.sort_order)],
      })
      const own = old.find((row) => row.id === task.id)
      const moves = status !== undefined && own !== undefined && own.status !== status
      const toStatus = (to: TaskStatus, completed: string | null): Statement => ({
        sql: 'update tasks set status = $2::text, completed_at = $3::timestamptz where id = $1::uuid',
        params: [task.id, to, completed],
      })
      await env.write([
        reorder(changes),
        ...(moves ? [toStatus(status, status === 'done' ? new Date().toISOString() : null)] : []),
      ])
      env.pushUndo({
        label: moves ? `moved to ${STATUS[status].label}` : 'moved',
        undo: async () => {
          await env.write([reorder(old), ...(moves ? [toStatus(own.status, own.completed_at)] : [])])
        },
      })
    },

    /** `source` blocks `target`, or relates to it. Nothing happens when the relation is there already. */
    async relate(source: string, target: string, type: 'blocks' | 'relates_to'): Promise<void> {
      const id = env.newId()
      const { result } = await env.write([
        {
          sql: `insert into task_relations (id, tenant_id, source_task_id, target_task_id, relation_type)
            select $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::text
            where not exists (select from task_relations where source_task_id = $3::uuid and target_task_id = $4::uuid
              and relation_type = $5::text and deleted_at is null) returning id`,
          params: [id, env.tenantId, source, target, type],
        },
      ])
      if ((result[0]?.length ?? 0) > 0) env.pushUndo({ label: 'relation', undo: () => unrelate(id) })
    },
    async removeRelation(id: string): Promise<void> {
      await unrelate(id)
      env.pushUndo({
        label: 'removed a relation',
        undo: async () => {
          await env.write([{ sql: 'update task_relations set deleted_at = null where id = $1::uuid', params: [id] }])
        },
      })
    },
  }

  async function unrelate(id: string): Promise<void> {
    await env.write([{ sql: 'update task_relations set deleted_at = now() where id = $1::uuid', params: [id] }])
  }
}
