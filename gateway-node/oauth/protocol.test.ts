import { expect, test } from 'vitest'
import { authorizeUrl, challengeOf, readDevice, readPasted, readRefusal, readTokens, verifierOf } from './protocol.ts'

test('the challenge of RFC 7636, appendix B; verifiers are long enough for it', () => {
  expect(challengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk')).toBe('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM')
  expect(verifierOf(new Uint8Array(32))).toMatch(/^[\w-]{43}$/)
})

test('the link has the challenge, never the verifier', () => {
  const settings = { authorize_url: 'https://id.example/auth', token_url: 'https://id.example/t', client_id: 'a b&c' }
  const url = new URL(authorizeUrl(settings, 'state-1', 'the-verifier'))
  expect(Object.fromEntries(url.searchParams)).toEqual({
    response_type: 'code',
    client_id: 'a b&c',
    redirect_uri: 'http://localhost:8976/callback',
    state: 'state-1',
    code_challenge: challengeOf('the-verifier'),
    code_challenge_method: 'S256',
  })
  expect(url.href).not.toContain('the-verifier')
})

test.each([
  ['http://localhost:8976/callback?code=c-1&state=s', 'c-1'],
  ['  http://localhost/callback?state=s&code=c-1\n', 'c-1'],
  ['https://id.example/done#code=c-1&state=s', 'c-1'],
  ['?code=c-1&state=s', 'c-1'],
  ['code=c%2F1&state=s', 'c/1'],
  ['c-1#s', 'c-1'],
  ['c-1', 'c-1'],
  ['http://localhost/callback?code=c-1&state=other', undefined],
  ['http://localhost/callback?code=c-1', undefined],
  ['code=c-1', undefined],
  ['c-1#other', undefined],
  ['http://localhost/callback?state=s', undefined],
  ['http://localhost/callback?error=access_denied&state=s&code=c-1', undefined],
  ['http://', undefined],
  ['two words', undefined],
  ['', undefined],
])('pasted: %s', (text, code) => {
  const read = readPasted(text, 's')
  expect(read.ok ? read.value : undefined).toBe(code)
  if (!read.ok) expect(read.message).not.toContain('c-1')
})

test('tokens: the old refresh token stays when no new one comes; what is no token is none', () => {
  const before = { access_token: 'a', refresh_token: 'r', expires_at: 0, obtained_at: 0 }
  expect(readTokens({ access_token: 'b', token_type: 'bearer', expires_in: '60' }, 1_000, before)).toEqual({
    ok: true,
    value: { access_token: 'b', refresh_token: 'r', expires_at: 61_000, obtained_at: 1_000 },
  })
  expect(readTokens({ access_token: 'b' }, 1_000)).toMatchObject({
    ok: true,
    value: { expires_at: null, refresh_token: null },
  })
  for (const body of [
    undefined,
    null,
    'b',
    [],
    {},
    { access_token: '' },
    { access_token: 'a b' },
    { access_token: 'b', expires_in: -1 },
    { access_token: 'b', refresh_token: 7 },
  ])
    expect(readTokens(body, 0)).toMatchObject({ ok: false })
})

test('device codes: five seconds unless said otherwise; pages are web pages', () => {
  const body = { device_code: 'd', user_code: 'U-1', verification_uri: 'https://id.example/x', expires_in: 60 }
  expect(readDevice(body, 0)).toMatchObject({ ok: true, value: { interval: 5, expires_at: 60_000 } })
  expect(readDevice({ ...body, interval: 7 }, 0)).toMatchObject({ value: { interval: 7 } })
  for (const more of [
    { verification_uri: 'javascript:alert(1)' },
    { user_code: 'a\nb' },
    { expires_in: 0 },
    { device_code: undefined },
    { interval: 0 },
  ])
    expect(readDevice({ ...body, ...more }, 0)).toMatchObject({ ok: false })
})

test('a refusal is one short line', () => {
  expect(
    readRefusal({ error: 'invalid_grant', error_description: `long ${'x'.repeat(500)}\nand more` })?.words,
  ).toMatch(/^invalid_grant: long x{100,}…$/)
  expect(readRefusal('<html>')).toBeUndefined()
})
