import { expect, test } from 'vitest'
import { type AgentFacts, agentState } from './agent-state.ts'

const now = Date.parse('2026-11-30T12:00:00Z')
const fine: AgentFacts = {
  status: 'ready',
  status_reason: null,
  pause_requested_at: null,
  paused_by_name: null,
  gate: 'no_work',
  gate_detail: 'There is nothing to do.',
  gate_until: null,
  gateway_label: 'mac-mini',
  gateway_status: 'ready',
  gateway_seen_at: '2026-11-30T11:59:50Z',
  removing: false,
  run_started_at: null,
  run_task_title: null,
  reviews: 0,
}

const cases: [string, Partial<AgentFacts>, string, RegExp?][] = [
  ['a healthy one is ready', {}, 'ready', /Nothing to do/],
  ['what it delivered waits for a person', { reviews: 2 }, 'ready', /2 reviews/],
  [
    'a run makes it work, on something',
    { run_started_at: '2026-11-30T11:59:00Z', run_task_title: 'Brief' },
    'working',
    /Brief/,
  ],
  [
    'a run that waits for a person says what it asks',
    { run_started_at: '2026-11-30T11:59:00Z', run_task_title: 'Brief', question: 'Run “git push”' },
    'asking',
    /git push/,
  ],
  [
    'pause wins over a run that is ending',
    { pause_requested_at: '2026-11-30T11:00:00Z', paused_by_name: 'Ana', run_started_at: 'x' },
    'paused',
    /Ana/,
  ],
  [
    'A2: a silent gateway is not working',
    { gateway_seen_at: '2026-11-30T09:00:00Z', run_started_at: 'x' },
    'silent',
    /3 h/,
  ],
  ['A1: removal comes before all', { removing: true, status: 'error' }, 'removing'],
  ['a failed set-up gives its reason', { status: 'error', status_reason: 'agent.json is not JSON' }, 'error', /JSON/],
  ['without a gateway it says so', { gateway_label: null }, 'homeless'],
  [
    'set-up on a gateway that was never heard of',
    { status: 'provisioning', gateway_seen_at: null },
    'provisioning',
    /not been heard/,
  ],
  [
    'a gate is the reason',
    { gate: 'budget_exceeded', gate_detail: 'Budget reached, resets 1 Dec' },
    'held',
    /resets 1 Dec/,
  ],
  ['a paused gateway holds its agents', { gateway_status: 'paused' }, 'held', /paused/],
]

test.each(cases)('%s', (_name, change, key, detail) => {
  const state = agentState({ ...fine, ...change }, now)
  expect(state.key).toBe(key)
  if (detail) expect(state.detail).toMatch(detail)
})
