import { expect, test } from 'vitest'
import { gatewayState, type ListedToken, namesThisMachine, newcomerState, openTokens } from './gateway-state.ts'

const now = Date.parse('2026-11-30T12:00:00Z')
const fine = { status: 'ready', last_seen_at: '2026-11-30T11:59:50Z', pause_requested_at: null } as const

test.each([
  ['heard of lately', {}, 'online'],
  ['registered, never heard of', { last_seen_at: null, status: 'provisioning' }, 'connecting'],
  ['not heard of since', { last_seen_at: '2026-11-30T11:50:00Z' }, 'silent'],
  ['silent and paused', { last_seen_at: '2026-11-30T11:50:00Z', pause_requested_at: '2026-11-30T11:00:00Z' }, 'silent'],
  ['paused', { pause_requested_at: '2026-11-30T11:00:00Z' }, 'paused'],
  ['in error and paused', { status: 'error', pause_requested_at: '2026-11-30T11:00:00Z' }, 'error'],
] as const)('a gateway that is %s says so (G1)', (_what, more, key) => {
  expect(gatewayState({ ...fine, ...more }, now).key).toBe(key)
})

const token = { id: 't', expires_at: '2026-11-30T12:30:00Z' }
const listed = (more: Partial<ListedToken> = {}): ListedToken => ({
  ...token,
  label: 'Cellar',
  created_by: 'Ann',
  gateway_id: null,
  ...more,
})
const gateway = { ...fine, id: 'g', label: 'Cellar' }

test.each([
  ['was made just now', undefined, [gateway], 'waiting'],
  ['nobody used, whoever else came', [listed()], [gateway], 'waiting'],
  ['was used by one whose row is not here yet', [listed({ gateway_id: 'g' })], [], 'registered'],
  [
    'was used by one that was not heard of',
    [listed({ gateway_id: 'g' })],
    [{ ...gateway, last_seen_at: null }],
    'registered',
  ],
  ['was used by one that is heard of', [listed({ gateway_id: 'g' })], [gateway], 'connected'],
  ['the server lists no more', [listed({ id: 'other' })], [gateway], 'withdrawn'],
] as const)('a token that %s', (_what, list, gateways, key) => {
  expect(newcomerState(token, list, gateways, now).key).toBe(key)
})

test('an hour later a token has expired, unless it was used', () => {
  const later = now + 3_600_000
  expect(newcomerState(token, [], [gateway], later).key).toBe('expired')
  expect(newcomerState(token, [listed({ gateway_id: 'g' })], [], later).key).toBe('registered')
  expect(openTokens([listed(), listed({ gateway_id: 'g' })], now)).toEqual([listed()])
  expect(openTokens([listed()], later)).toEqual([])
})

test.each([
  ['http://127.0.0.1:3210', true],
  ['http://localhost:3210', true],
  ['http://[::1]:3210', true],
  ['https://hq.example.com', false],
  ['http://192.168.1.5:3210', false],
  ['http://127.example.com', false],
])('a command for %s works on this machine only: %s', (url, only) => {
  expect(namesThisMachine(`HQ_SERVER_URL=${url} HQ_REGISTRATION_TOKEN=hqreg_x npm run gateway:register`)).toBe(only)
})
