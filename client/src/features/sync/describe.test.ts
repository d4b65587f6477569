import type { OutboxEntry } from '@hq/shared/sync/contract.ts'
import { expect, test } from 'vitest'
import { fieldsOf, describe as words } from './describe.ts'

const entry = (...patches: OutboxEntry['patches']): OutboxEntry => ({
  seq: 1,
  mutationId: '0190a000-0000-7000-8000-000000000000',
  state: 'pending',
  createdAt: '2026-01-01T00:00:00.000Z',
  actor: { type: 'human', id: null },
  runId: null,
  patches,
  rejection: null,
})

const id = '0190a000-0000-7000-8000-000000000001'

test('one row: what was done to what, and which columns', () => {
  expect(words(entry({ table: 'tasks', id, op: 'insert', set: { title: 'Call Ana' }, base: {} }))).toBe(
    'New task “Call Ana”',
  )
  expect(
    words(
      entry({ table: 'tasks', id, op: 'update', set: { status: 'done', due_date: null }, base: { status: 'todo' } }),
    ),
  ).toBe('Changed task: status, due date')
})

test('a soft delete reads as deleting', () => {
  const set = { deleted_at: '2026-01-01' }
  expect(words(entry({ table: 'tasks', id, op: 'update', set, base: {} }))).toBe('Deleted task')
})

test('several rows are counted and their kinds named', () => {
  const patch = { id, op: 'update' as const, set: { name: 'x' }, base: {} }
  expect(words(entry({ ...patch, table: 'tasks' }, { ...patch, table: 'contacts' }))).toBe(
    '2 rows in one step (task, contact)',
  )
})

test('only free text can be corrected in place; ids are not shown', () => {
  const fields = fieldsOf(
    entry({ table: 'agents', id, op: 'update', set: { id, name: 'Ana', status: 'ready', settings: {} }, base: {} }),
  )
  expect(fields.map(({ column, editable }) => [column, editable])).toEqual([
    ['name', true],
    ['status', false],
    ['settings', false],
  ])
})
