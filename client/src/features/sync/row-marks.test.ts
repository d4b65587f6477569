import { randomUUID } from 'node:crypto'
import { createFakeServer } from '@hq/shared/sync/testing/fake-server.ts'
import { openDatabase, openTestReplica, TENANT } from '@hq/shared/sync/testing/harness.ts'
import { expect, test } from 'vitest'
import { type ConflictRow, marksOf, nextDue, QUIET_MS, WAITING, type WaitingRow } from './row-marks.ts'

const NOW = Date.parse('2026-12-01T10:00:00.000Z')
const waiting = (row_id: string, ageMs: number, more: Partial<WaitingRow> = {}): WaitingRow => ({
  table_name: 'tasks',
  row_id,
  rejected: false,
  since: new Date(NOW - ageMs).toISOString(),
  seq: 7,
  message: null,
  ...more,
})
const conflict = (row_id: string): ConflictRow => ({ id: 'c1', table_name: 'tasks', row_id, column_name: 'stream_id' })

test('what has just been written has no mark, and gets it when it goes on waiting (M1)', () => {
  const rows = [waiting('young', 400), waiting('old', QUIET_MS)]
  expect([...marksOf('tasks', rows, [], NOW).keys()]).toEqual(['old'])
  expect(nextDue(rows, NOW)).toBe(NOW - 400 + QUIET_MS)
  expect([...marksOf('tasks', rows, [], NOW - 400 + QUIET_MS).keys()]).toEqual(['young', 'old'])
  expect(nextDue(rows, NOW - 400 + QUIET_MS)).toBeUndefined()
})

test('a refusal is shown at once, with its reason and its entry', () => {
  const marks = marksOf('tasks', [waiting('a', 0, { rejected: true, message: 'No.', seq: 12 })], [], NOW)
  expect(marks.get('a')).toEqual({ state: 'rejected', reason: 'No.', anchor: 'change-12' })
})

test('refused before changed twice before waiting (M2), and only rows of the table', () => {
  const rows = [
    waiting('a', 5_000, { rejected: true }),
    waiting('b', 5_000),
    waiting('x', 5_000, { table_name: 'agents' }),
  ]
  const marks = marksOf('tasks', rows, [conflict('a'), conflict('b')], NOW)
  expect([...marks].map(([id, { state }]) => [id, state])).toEqual([
    ['a', 'rejected'],
    ['b', 'conflict'],
  ])
  expect(marks.get('b')?.reason).toBe('stream')
})

test('the mark of an unchanged row is the same object (M3)', () => {
  const rows = [waiting('a', 5_000)]
  expect(marksOf('tasks', rows, [], NOW).get('a')).toBe(marksOf('tasks', [...rows], [], NOW + 9).get('a'))
})

test('M4: with thousands of changes waiting, the rows of a screen are looked up by the index, and only they', async () => {
  const server = createFakeServer({ tenantId: TENANT })
  server.faults.online = false
  const db = await openDatabase()
  const replica = await openTestReplica(server, { db })
  const ids = Array.from({ length: 3_000 }, () => randomUUID())
  const add = 'insert into tasks (id, tenant_id, title) select id, $2, $3 from unnest($1::uuid[]) id'
  for (let from = 0; from < ids.length; from += 100)
    await replica.write((tx) => tx.query(add, [ids.slice(from, from + 100), TENANT, 'x']))
  await db.exec('analyze sync.patches; analyze sync.outbox')
  const shown = [...ids.slice(1_000, 1_080), randomUUID()]
  const rows = await replica.query<WaitingRow>(WAITING, ['tasks', shown])
  expect(new Set(rows.map(({ row_id }) => row_id))).toEqual(new Set(shown.slice(0, 80)))
  const plan = await replica.query(`explain ${WAITING.replace('$1', `'tasks'`).replace('$2', `'{${shown}}'`)}`)
  expect(JSON.stringify(plan)).toContain('patches_row_idx')
  await replica.close()
})
