import { expect, it } from 'vitest'
import { syncWords } from './sync-pill.tsx'

const now = 1_800_000_000_000
const words = (props: Parameters<typeof syncWords>[0]) => {
  const { title, detail } = syncWords(props, now)
  return [title, detail]
}

it('says the most urgent truth first', () => {
  expect(words({ state: 'synced', pending: 0, needYou: 0 })).toEqual(['Synced', null])
  expect(words({ state: 'offline', pending: 3, needYou: 0, oldestAt: now - 12 * 60_000 })).toEqual([
    'Working offline',
    '3 changes waiting, oldest 12 min',
  ])
  expect(words({ state: 'offline', pending: 0, needYou: 0 })).toEqual(['Working offline', null])
  expect(words({ state: 'offline', pending: 1, needYou: 2 })).toEqual(['2 need you', 'Working offline'])
  expect(words({ state: 'synced', pending: 1, needYou: 1 })).toEqual(['1 needs you', '1 change waiting'])
  expect(words({ state: 'syncing', pending: 0, needYou: 0, progress: { done: 4120, total: 9800 } })).toEqual([
    'Syncing',
    '4,120 of 9,800 rows',
  ])
})

it('says that the server brings nothing, once that lasts', () => {
  const stalled = { state: 'syncing', pending: 0, needYou: 0 } as const
  expect(words({ ...stalled, stalledAt: now - 2_000 })).toEqual(['Syncing', null])
  expect(words({ ...stalled, stalledAt: now - 30_000 })).toEqual(['Server busy', 'No changes for less than a minute'])
  expect(words({ ...stalled, stalledAt: now - 5 * 60_000 })).toEqual(['Server busy', 'No changes for 5 min'])
  expect(words({ ...stalled, stalledAt: now - 5 * 60_000, pending: 2 })).toEqual(['Server busy', '2 changes waiting'])
  expect(words({ ...stalled, state: 'offline', stalledAt: now - 5 * 60_000 })).toEqual(['Working offline', null])
})

it('never calls unsent changes synced', () => {
  expect(words({ state: 'synced', pending: 1, needYou: 0 })).toEqual(['Syncing', '1 change waiting'])
})
