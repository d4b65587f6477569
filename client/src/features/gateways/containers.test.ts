import { expect, it } from 'vitest'
import { containersIn, usageOf } from './containers.ts'

const one = {
  id: '1',
  name: 'one',
  image: 'x',
  state: 'running',
  memory_mb: 12.5,
  memory_limit_mb: 64,
  cpu_pct: 3,
  cpu_limit: 2,
  exit_code: null,
}

it('shows what a later deed said, not what an earlier one did', () => {
  const stopped = { result: { container: { ...one, state: 'exited' } }, completed_at: '2026-01-01T00:00:02Z' }
  expect(containersIn({ containers: [one] }, stopped, '2026-01-01T00:00:01Z')[0]?.state).toBe('exited')
  expect(containersIn({ containers: [one] }, stopped, '2026-01-01T00:00:03Z')[0]?.state).toBe('running')
})

it('leaves out what it can’t read', () => {
  expect(containersIn(undefined, undefined, null)).toEqual([])
  expect(containersIn({ containers: [{ id: 1 }, one] }, undefined, null)).toEqual([one])
})

it('says use and limits', () => {
  expect(usageOf(one)).toBe('12.5 of 64 MB · 3% of 2 cores')
  expect(usageOf({ ...one, memory_mb: null, cpu_pct: null, cpu_limit: null })).toBe('at most 64 MB')
  expect(usageOf({ ...one, memory_limit_mb: null, cpu_limit: null })).toBe('12.5 MB, no limit · 3%')
  expect(usageOf({ ...one, memory_mb: null, memory_limit_mb: null, cpu_pct: null })).toBe(
    'no memory limit · at most 2 cores',
  )
})
