import { expect, test } from 'vitest'
import { type Queued, reasonOf } from './queue.ts'

const NOW = Date.parse('2026-12-01T12:00:00Z')
const item: Queued = {
  id: 'i',
  action: null,
  status: 'pending',
  created_at: '2026-12-01T11:00:00Z',
  not_before: null,
  agent_name: 'Ann',
  task_id: 't',
  task_title: 'T',
  gate: null,
  gate_detail: null,
  error_message: null,
}
const say = (more: Partial<Queued>, key: 'online' | 'silent' | 'paused' | 'connecting' | 'error' = 'online') => {
  const { label, detail } = reasonOf({ ...item, ...more }, { key }, NOW)
  return detail === undefined ? label : `${label} ${detail}`
}

test('a silent gateway comes before everything, and runs nothing (Q1, Q2)', () => {
  expect(say({ status: 'running' }, 'silent')).toBe('Waits until the gateway is back')
  expect(say({ gate: 'budget', gate_detail: 'Used up.' }, 'connecting')).toBe('Waits until the gateway is back')
})

test('under way, paused, held by a gate, tried again, next (Q1)', () => {
  expect(say({ status: 'leased' })).toBe('Under way')
  expect(say({}, 'paused')).toBe('Waits the gateway is paused')
  expect(say({ action: 'provision' }, 'paused')).toBe('Waits for its turn')
  expect(say({ gate: 'budget', gate_detail: 'The budget is used up.' })).toBe('Waits The budget is used up.')
  expect(say({ status: 'failed', error_message: 'No answer.', not_before: '2026-12-01T12:05:00Z' })).toMatch(
    /^Waits tries again in 5 min.*: No answer\.$/,
  )
  expect(say({ gate: 'working' })).toBe('Waits for what the agent does first')
  expect(say({ gate: 'open' })).toBe('Waits for its turn')
})
