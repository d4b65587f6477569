import { expect, test } from 'vitest'
import { adviceOf, fieldsOf, inputOf, valueText } from './describe.ts'

const id = '0190a000-0000-7000-8000-000000000001'

test('text, numbers, days and choices can be corrected in place; ids and structures are only shown', () => {
  const set = { id, title: 'Ana', status: 'todo', stream_id: id, due_date: null }
  const fields = fieldsOf({ patches: [{ table: 'tasks', id, op: 'update', set, base: { title: 'An' } }] })
  expect(fields.map(({ column, before, input }) => [column, before, input.kind])).toEqual([
    ['title', 'An', 'line'],
    ['status', undefined, 'choice'],
    ['stream_id', undefined, 'none'],
    ['due_date', undefined, 'line'],
  ])
  expect(inputOf('tasks', 'description').kind).toBe('text')
  expect(inputOf('tasks', 'no_such_column').kind).toBe('none')
})

test('a value reads as a person would say it', () => {
  expect(valueText(null)).toBe('empty')
  expect(valueText('in_progress', { table: 'tasks', column: 'status' })).toBe('in progress')
  expect(valueText(id, { table: 'tasks', column: 'stream_id' }, () => 'Sales')).toBe('Sales')
  expect(valueText(id, { table: 'tasks', column: 'stream_id' }, () => undefined)).toBe('something that is not here')
  expect(valueText('snake_case', { table: 'tasks', column: 'title' })).toBe('snake_case')
})

test('every refusal says what to do next', () => {
  for (const code of ['forbidden', 'missing_row', 'stale', 'not_unique', 'malformed', 'too_large', 'what_is_this'])
    expect(adviceOf(code)).toMatch(/\.$/)
})
