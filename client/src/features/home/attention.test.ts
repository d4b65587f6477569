import { expect, test } from 'vitest'
import { auditSentence, greeting } from './attention.ts'

test('a line of the audit log reads as a sentence', () => {
  expect(auditSentence({ action: 'created', entity_type: 'task', summary: 'Brief' })).toBe('created the task “Brief”')
  expect(auditSentence({ action: 'commented', entity_type: 'comment', summary: 'Looks good' })).toBe(
    'commented: Looks good',
  )
  expect(auditSentence({ action: 'deleted', entity_type: 'comment', summary: null })).toBe('deleted a comment')
  expect(auditSentence({ action: 'exported', entity_type: 'odd_things', summary: null })).toBe('exported odd things')
})

test.each([
  [4, 'Still up, Ada?'],
  [9, 'Good morning, Ada'],
  [14, 'Good afternoon, Ada'],
  [20, 'Good evening, Ada'],
])('at %i it says %s', (hour, words) => expect(greeting(hour, 'Ada')).toBe(words))
