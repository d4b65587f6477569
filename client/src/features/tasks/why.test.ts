import { describe, expect, it } from 'vitest'
import type { AgentState } from '../agents/agent-state.ts'
import { type WhyFacts, whyOf } from './why.ts'

const ready: AgentState = { key: 'ready', meaning: 'good', shape: 'check', label: 'Ready', detail: 'Nothing to do' }
const silent: AgentState = {
  key: 'silent',
  meaning: 'waiting',
  shape: 'off',
  label: 'Waiting',
  detail: 'Gateway “mac-mini” last heard 3 h ago',
}
const facts = (more: Partial<WhyFacts> = {}): WhyFacts => ({
  status: 'todo',
  agent: { name: 'Ada', state: ready },
  blockers: [],
  wake: { status: 'pending', attempt_count: 0, max_attempts: 3, error_message: null },
  running: false,
  reviews: 0,
  ...more,
})

describe('why an agent is not working on a task', () => {
  it('W1 the nearest reason', () => {
    expect(whyOf(facts({ status: 'done', blockers: ['x'] }))).toBeUndefined()
    expect(whyOf(facts({ blockers: ['Budget', 'Plan'], agent: { name: 'Ada', state: silent } }))?.detail).toBe(
      'by “Budget” and 1 more',
    )
    expect(whyOf(facts({ agent: { name: 'Ada', state: silent } }))?.detail).toBe(
      'Gateway “mac-mini” last heard 3 h ago',
    )
    const dead = { status: 'dead_letter', attempt_count: 3, max_attempts: 3, error_message: 'no model' } as const
    expect(whyOf(facts({ wake: dead }))).toMatchObject({ label: 'Gave up', meaning: 'danger' })
  })

  it('W2 assigned is queued, not started', () => {
    expect(whyOf(facts())).toMatchObject({ label: 'Queued', detail: 'Ada is about to start' })
    expect(whyOf(facts({ wake: undefined }))).toMatchObject({ label: 'Queued' })
    expect(whyOf(facts({ running: true }))).toMatchObject({ label: 'Working' })
  })

  it('a silent gateway’s running work is not called running', () => {
    expect(whyOf(facts({ running: true, agent: { name: 'Ada', state: silent } }))?.label).toBe('Waiting')
  })

  it('busy elsewhere', () => {
    const working: AgentState = { key: 'working', meaning: 'busy', shape: 'arc', label: 'Working', detail: 'Other' }
    expect(whyOf(facts({ agent: { name: 'Ada', state: working } }))?.detail).toBe('Ada first works on “Other”')
  })
})
