import { expect, test } from 'vitest'
import { type ChangePatch, groupOf, describeChange as words } from './change-words.ts'

const id = '0190a000-0000-7000-8000-000000000001'
const patch = (part: Partial<ChangePatch>): ChangePatch => ({
  table: 'tasks',
  id,
  op: 'update',
  set: {},
  base: {},
  ...part,
})

test('one row: what was done to what, and which columns', () => {
  expect(words([patch({ op: 'insert', set: { title: 'Call Ana' } })])).toBe('New task “Call Ana”')
  expect(words([patch({ set: { status: 'done', due_date: null } })])).toBe('Task: status, due date')
  expect(words([patch({ set: { status: 'done', stream_id: null } })], () => 'Call Ana')).toBe(
    'Task “Call Ana”: status, stream',
  )
})

test('a row is called what it is called now, not what a refused change would call it', () => {
  const renamed = patch({ table: 'streams', set: { name: 'Sales' }, base: { name: 'Support' } })
  expect(words([renamed], () => 'Support')).toBe('Stream “Support”: name')
})

test('a soft delete reads as deleting, with the name the row still has', () => {
  expect(words([patch({ set: { deleted_at: '2026-01-01' } })], () => 'Old')).toBe('Deleted task “Old”')
})

test('several rows are counted and their kinds named', () => {
  expect(words([patch({ set: { name: 'x' } }), patch({ table: 'contacts', set: { name: 'y' } })])).toBe(
    '2 rows in one step (task, contact), “x” first',
  )
})

test('a long text becomes one short line', () => {
  const text = words([patch({ table: 'comments', op: 'insert', set: { body: `Line\nbreak ${'ä'.repeat(200)}` } })])
  expect(text).toMatch(/^New comment “Line break ä+…”$/)
  expect(text.length).toBeLessThan(80)
})

test('groups are named in the plural', () => {
  expect(groupOf([patch({})])).toBe('Tasks')
  expect(groupOf([patch({ table: 'people' })])).toBe('People')
  expect(groupOf([patch({ table: 'entity_links' })])).toBe('Deliverables and links')
})
