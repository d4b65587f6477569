import type { PGlite } from '@electric-sql/pglite'
import { openDatabase, PERSON, TENANT } from '@hq/shared/sync/testing/harness.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../replica/id.ts'
import type { Undoable } from '../../ui/undo.ts'
import { type TaskActions, taskActions } from './actions.ts'
import { groupsOf, linesOf } from './grouping.ts'
import type { TaskRow } from './model.ts'
import { allIds, groupCounts, type ListContext, windowRows } from './task-sql.ts'
import { type TaskSearch, viewOf } from './view.ts'

let db: PGlite
let actions: TaskActions
let undo: Undoable[] = []
const context: ListContext = {
  me: PERSON,
  now: '2026-11-30T12:00:00Z',
  today: '2026-12-01T00:00:00Z',
  week: '2026-12-07T00:00:00Z',
}

const rows = async <T>(sql: string, params: readonly unknown[] = []) => (await db.query<T>(sql, [...params])).rows
const list = async (search: TaskSearch, groups: string[], limit = 100, offset = 0) => {
  const query = windowRows(viewOf(search), context, groups, { limit, offset })
  return rows<TaskRow & { base: number }>(query.sql, query.params)
}
const counts = async (search: TaskSearch) => {
  const query = groupCounts(viewOf(search), context)
  return rows<{ key: string; count: number }>(query.sql, query.params)
}
const column = async (name: string) =>
  (await rows<Record<string, unknown>>(`select ${name} from tasks where deleted_at is null order by title`)).map(
    (row) => row[name],
  )

beforeAll(async () => {
  db = await openDatabase()
  // Only the tables, not the outbox: what is tested here is SQL that any replica runs.
  actions = taskActions({
    write: (statements) =>
      db.transaction(async (tx) => {
        const result: Record<string, unknown>[][] = []
        for (const { sql, params } of statements) {
          result.push((await tx.query<Record<string, unknown>>(sql, [...(params ?? [])])).rows)
        }
        return { result, seq: 1 }
      }),
    query: (sql, params) => rows(sql, params),
    newId,
    pushUndo: (entry) => undo.push(entry),
    tenantId: TENANT,
    me: PERSON,
  })
})
afterAll(() => db.close())
beforeEach(async () => {
  undo = []
  await db.exec('set sync.applying = on; delete from tasks; delete from task_relations; delete from entity_links')
})

describe('actions', () => {
  it('creates at the top, subtasks at the end', async () => {
    const a = await actions.create({ title: '  A\n task ' })
    await actions.create({ title: 'B', assignee: { type: 'human', id: PERSON } })
    await actions.create({ title: 'A1', parent_id: a })
    await actions.create({ title: 'A2', parent_id: a })
    expect((await list({}, ['todo'])).map((row) => [row.title, row.subtasks])).toEqual([
      ['B', 0],
      ['A task', 2],
    ])
    expect(await column('sort_order')).toEqual([0, 0, 1, -1])
  })

  it('U1 undo restores what was changed and leaves what somebody else has changed since', async () => {
    const ids = [await actions.create({ title: 'A' }), await actions.create({ title: 'B', priority: 'low' })]
    expect(await actions.setPriority(ids, 'urgent')).toBe(2)
    await rows(`update tasks set priority = 'high' where title = 'A'`)
    await undo.at(-1)?.undo()
    expect(await column('priority')).toEqual(['high', 'low'])
  })

  it('U2 what is already so is not written', async () => {
    const id = await actions.create({ title: 'A' })
    expect(await actions.setStatus([id], 'todo')).toBe(0)
    expect(undo).toHaveLength(1)
  })

  it('done has a time, and undoing it takes the time away', async () => {
    const id = await actions.create({ title: 'A' })
    await actions.setStatus([id], 'done')
    expect((await column('completed_at'))[0]).not.toBeNull()
    await undo.at(-1)?.undo()
    expect(await column('completed_at')).toEqual([null])
    expect(await column('status')).toEqual(['todo'])
  })

  it('assigning names one assignee and its type', async () => {
    const id = await actions.create({ title: 'A', assignee: { type: 'human', id: PERSON } })
    const agent = newId()
    await actions.assign([id], { type: 'agent', id: agent }, 'Ada')
    expect((await list({}, ['todo']))[0]).toMatchObject({
      assignee_type: 'agent',
      assignee_agent_id: agent,
      assignee_person_id: null,
    })
    await undo.at(-1)?.undo()
    expect((await list({}, ['todo']))[0]).toMatchObject({ assignee_type: 'human', assignee_agent_id: null })
  })

  it('deleting takes the subtasks along, and undo brings all back', async () => {
    const id = await actions.create({ title: 'A' })
    await actions.create({ title: 'A1', parent_id: id })
    await actions.remove([id])
    expect(await column('title')).toEqual([])
    await undo.at(-1)?.undo()
    expect(await column('title')).toEqual(['A', 'A1'])
  })

  it('a move changes order and status together, and back', async () => {
    const a = await actions.create({ title: 'A', status: 'blocked' })
    const b = await actions.create({ title: 'B' })
    await actions.move({ id: b, sort_order: 0 }, [{ id: a, sort_order: 0 }], 1, 'blocked')
    expect((await list({}, ['blocked'])).map((row) => row.title)).toEqual(['A', 'B'])
    await undo.at(-1)?.undo()
    expect((await list({}, ['todo'])).map((row) => row.title)).toEqual(['B'])
  })

  it('relates once, and a closed blocker no longer counts', async () => {
    const a = await actions.create({ title: 'A' })
    const b = await actions.create({ title: 'B' })
    await actions.relate(a, b, 'blocks')
    await actions.relate(a, b, 'blocks')
    const blockers = async () =>
      (await list({ sort: 'created' }, ['todo', 'done'])).find((row) => row.id === b)?.blockers
    expect(await blockers()).toBe(1)
    await actions.setStatus([a], 'done')
    expect(await blockers()).toBe(0)
  })
})

describe('lists', () => {
  const fill = (n: number) =>
    db.exec(`insert into tasks (id, tenant_id, title, status, priority, due_date, tags, sort_order)
      select uuidv7(), '${TENANT}', 'Task ' || i, (array['todo','in_progress','blocked','done','cancelled'])[1 + i % 5],
        (array['low','medium','high','urgent'])[1 + i % 4],
        case when i % 3 = 0 then timestamptz '2026-11-30' + (i % 20 - 10) * interval '1 day' end, array['t' || i % 7], 0
      from generate_series(1, ${n}) i`)

  it('S1, S3 windows over equal sort values neither overlap nor leave out, for every grouping and sorting', async () => {
    await fill(500)
    for (const group of ['status', 'priority', 'due', 'assignee', 'stream', 'none'] as const) {
      for (const sort of ['manual', 'priority', 'due', 'updated', 'created'] as const) {
        const groups = groupsOf(await counts({ group }), group, [], new Set())
        const lines = linesOf(groups, true)
        expect(lines.rows).toBe(500)
        const seen: string[] = []
        for (let offset = 0; offset < 500; offset += 120) {
          const page = await list(
            { group, sort },
            groups.map((g) => g.key),
            120,
            offset,
          )
          expect(page[0]?.base).toBe(offset)
          seen.push(...page.map((row) => row.id))
        }
        expect(new Set(seen).size, `${group} by ${sort}`).toBe(500)
      }
    }
  })

  it('S2 a closed group is not read, and groups come in the order given', async () => {
    await fill(20)
    const page = await list({ group: 'priority' }, ['urgent', 'low'])
    expect(page.map((row) => row.priority)).toEqual([...Array(5).fill('urgent'), ...Array(5).fill('low')])
  })

  it('filters: words in title, description and labels, taken literally; overdue is derived', async () => {
    await fill(60)
    await rows(`update tasks set title = '100% für Müller_東京' where title = 'Task 7'`)
    expect((await counts({ q: '東京 müller', group: 'none' }))[0]?.count).toBe(1)
    expect((await counts({ q: '0% f', group: 'none' }))[0]?.count).toBe(1)
    expect(await counts({ q: '%%_%', group: 'none' })).toEqual([])
    const overdue = await rows<{ n: number }>(
      `select count(*)::int as n from tasks where due_date < '${context.now}' and status not in ('done','cancelled')`,
    )
    expect((await counts({ overdue: true, group: 'none' }))[0]?.count).toBe(overdue[0]?.n)
    const all = allIds(viewOf({ status: 'todo,blocked' }), context)
    expect(await rows(all.sql, all.params)).toHaveLength(24)
  })
})
