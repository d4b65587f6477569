import { expect, test } from 'vitest'
import { factsOf, megabytes, runtimesOf } from './gateway-meta.ts'

test('sizes as people say them', () => {
  expect([0.4, 120, 1_024, 4_000, 24_576].map(megabytes)).toEqual(['0 MB', '120 MB', '1.0 GB', '3.9 GB', '24 GB'])
})

test('what is missing is left out, what is low is marked', () => {
  expect(factsOf({})).toEqual([])
  expect(factsOf({ hostname: 'box', git: null, disk_free_mb: 300 })).toEqual([
    { name: 'Host', value: 'box' },
    { name: 'git', value: 'not installed', low: true },
    { name: 'Free on its disk', value: '300 MB', low: true },
  ])
})

test('runtimes: what is there, what could be, what an older gateway does not say', () => {
  const claw = (openclaw: { version: string; installed: boolean; state: string }) => runtimesOf({ openclaw })[1]
  expect(runtimesOf({})[1]).toMatchObject({ state: 'unknown', installable: false })
  expect(claw({ version: '1', installed: false, state: 'stopped' })).toMatchObject({
    state: 'missing',
    installable: true,
  })
  expect(claw({ version: '1', installed: true, state: 'stopped' })?.detail).toBe('1, starts with the first run')
  expect(claw({ version: '1', installed: true, state: 'ready' })?.detail).toBe('1, running')
})
