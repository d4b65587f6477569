import { STILL_COUNTS, WAITING_FOR_SIGN_IN } from '@hq/shared/domain/oauth-settings.ts'
import { expect, test } from 'vitest'
import { inputProblems } from './connection.ts'
import { faceOf } from './sign-in.ts'

const NOW = Date.parse('2026-05-01T12:00:00Z')
const LATER = '2026-05-01T12:10:00Z'
const waiting = { status: 'unchecked', status_detail: WAITING_FOR_SIGN_IN } as const
const command = (status: 'pending' | 'running' | 'done' | 'failed', result: Record<string, unknown> | null = null) => ({
  status,
  result: result as never,
  error_message: status === 'failed' ? 'It was refused.' : null,
})
const device = (more: Record<string, unknown> = {}) =>
  command('done', {
    flow: 'device',
    user_code: 'A-1',
    verification_url: 'https://id.example/activate',
    expires_at: LATER,
    ...more,
  })
const paste = (more: Record<string, unknown> = {}) =>
  command('done', { flow: 'paste', authorize_url: 'https://id.example/auth?state=1', expires_at: LATER, ...more })

test('from the two commands and the connection: every face', () => {
  expect(faceOf(undefined, undefined, waiting, false, NOW)).toEqual({ key: 'asking', away: false })
  expect(faceOf(command('pending'), undefined, waiting, true, NOW)).toEqual({ key: 'asking', away: true })
  expect(faceOf(command('failed'), undefined, waiting, false, NOW)).toEqual({ key: 'failed', why: 'It was refused.' })
  expect(faceOf(paste(), undefined, waiting, false, NOW)).toMatchObject({ key: 'link', problem: null })
  expect(faceOf(paste(), command('running'), waiting, true, NOW)).toEqual({ key: 'sending', away: true })
  expect(faceOf(paste(), command('failed'), waiting, false, NOW)).toMatchObject({
    key: 'link',
    problem: 'It was refused.',
  })
  expect(faceOf(paste({ expires_at: '2026-05-01T11:59:00Z' }), undefined, waiting, false, NOW)).toEqual({
    key: 'expired',
  })
  const tried = { status: 'unchecked', status_detail: 'Signed in; it is tried now.' } as const
  expect(faceOf(paste(), command('done'), tried, false, NOW)).toEqual({ key: 'trying', away: false })
  expect(faceOf(paste(), command('done'), { status: 'ok', status_detail: '2 models' }, false, NOW)).toEqual({
    key: 'done',
    detail: '2 models',
  })
  expect(faceOf(device(), undefined, waiting, false, NOW)).toMatchObject({
    key: 'code',
    userCode: 'A-1',
    complete: null,
  })
  expect(faceOf(device({ expires_at: '2026-05-01T11:59:00Z' }), undefined, waiting, false, NOW).key).toBe('expired')
  for (const row of [
    { status: 'failed', status_detail: 'The sign-in was refused at the provider.' },
    { status: 'ok', status_detail: `${STILL_COUNTS} The sign-in was refused at the provider.` },
  ] as const)
    expect(faceOf(device(), undefined, row, false, NOW)).toEqual({ key: 'failed', why: row.status_detail })
})

test('a page that a gateway names is opened only where it is one', () => {
  for (const url of ['javascript:alert(1)', 'http://id.example/', 'data:text/html,x', 7, null]) {
    expect(faceOf(paste({ authorize_url: url }), undefined, waiting, false, NOW).key).toBe('failed')
    expect(faceOf(device({ verification_url: url }), undefined, waiting, false, NOW).key).toBe('failed')
    expect(faceOf(device({ verification_url_complete: url }), undefined, waiting, false, NOW)).toMatchObject({
      complete: null,
    })
  }
})

test('a connection that is signed in to needs no key, and addresses that are safe', () => {
  const input = { provider: 'openai', label: 'A', baseUrl: '', model: 'm', key: '' } as const
  const oauth = { token_url: 'https://id.example/token', client_id: 'c', device_url: 'http://127.0.0.1:9/device' }
  expect(inputProblems({ ...input, oauth })).toEqual({})
  expect(Object.keys(inputProblems({ ...input, oauth: { token_url: 'http://id.example/t', client_id: '' } }))).toEqual([
    'token_url',
    'client_id',
    'authorize_url',
  ])
})
