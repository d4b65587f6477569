import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkServerUrl, type GatewayConfig, readConfig, SetupError } from './config.ts'
import { obtainCredentials } from './registration.ts'
import { temporaryFolder } from './testing/folder.ts'

const URL = 'http://127.0.0.1:4400'
const ANSWER = {
  gateway_id: '0199aaaa-0000-7000-8000-000000000001',
  tenant_id: '0199aaaa-0000-7000-8000-000000000002',
  slug: 'local-2',
  token: 'hqgw_the-token',
}
const KNOWN = { url: URL, ...ANSWER, slug: 'local' }

type Answer = { status: number; body: unknown } | Error

interface Asked {
  url: string
  body: unknown
  authorization: string | null
}

async function setUp(answers: Answer[], files: Record<string, unknown> = {}, more: Partial<GatewayConfig> = {}) {
  const home = await temporaryFolder()
  for (const [name, value] of Object.entries(files)) {
    await writeFile(join(home, name), typeof value === 'string' ? value : JSON.stringify(value))
  }
  const asked: Asked[] = []
  const config: GatewayConfig = { ...readConfig({}), home, slug: 'host', label: 'Host', ...more }
  const abort = new AbortController()
  const obtain = () =>
    obtainCredentials({
      config,
      log: () => undefined,
      signal: abort.signal,
      lookMs: 1,
      patienceMs: 300,
      now: () => 0,
      fetch: async (input, init) => {
        const { body, headers } = init ?? {}
        asked.push({
          url: String(input),
          body: typeof body === 'string' ? JSON.parse(body) : undefined,
          authorization: new Headers(headers).get('authorization'),
        })
        const answer = answers.length > 1 ? answers.shift() : answers[0]
        if (!answer || answer instanceof Error) throw answer ?? new TypeError('fetch failed')
        return Response.json(answer.body, { status: answer.status })
      },
    })
  return { home, asked, obtain, abort }
}

const session = (principal: unknown): Answer => ({
  status: 200,
  body: { principal, setup_required: false, server: { version: '1', schema_version: 'x', epoch: 'y' } },
})
const offer = { url: URL, token: 'hqreg_offer', slug: 'local', label: 'This machine' }

it('takes the offer beside it, keeps what it became, and deletes the offer', async () => {
  const { home, asked, obtain } = await setUp([{ status: 201, body: ANSWER }], { 'registration.json': offer })
  expect(await obtain()).toEqual({ url: URL, ...ANSWER })
  expect(asked).toEqual([
    {
      url: `${URL}/v1/gateways/register`,
      body: { token: 'hqreg_offer', slug: 'local', label: 'This machine' },
      authorization: null,
    },
  ])
  expect(await readdir(home)).toEqual(['credentials.json'])
  expect((await stat(join(home, 'credentials.json'))).mode & 0o777).toBe(0o600)
})

it('waits for an offer, and for a server that is not up yet (C3)', async () => {
  const { home, asked, obtain } = await setUp([
    new TypeError('refused'),
    { status: 503, body: {} },
    { status: 201, body: ANSWER },
  ])
  const waiting = obtain()
  setTimeout(() => void writeFile(join(home, 'registration.json'), JSON.stringify(offer)), 30)
  expect((await waiting).slug).toBe('local-2')
  expect(asked).toHaveLength(3)
})

it('with a token from the environment needs the address as well', async () => {
  const token = { registrationToken: 'hqreg_env' }
  const without = await setUp([], {}, token)
  await expect(without.obtain()).rejects.toMatchObject({ code: 'server_url' })
  const { asked, obtain } = await setUp(
    [{ status: 201, body: ANSWER }],
    {},
    { ...token, serverUrl: 'https://hq.example.com' },
  )
  expect((await obtain()).url).toBe('https://hq.example.com')
  expect(asked[0]?.body).toEqual({ token: 'hqreg_env', slug: 'host', label: 'Host' })
})

it.each([
  ['nothing comes', [], {}, 'not_registered', /set HQ_SERVER_URL/],
  ['the offer is torn', [], { 'registration.json': '{"tok' }, 'not_registered', /not JSON/],
  [
    'the token is used',
    [{ status: 410, body: { code: 'token_used', message: 'Already used.' } }],
    { 'registration.json': offer },
    'registration_refused',
    /Already used\./,
  ],
  ['its own file is torn', [], { 'credentials.json': '{' }, 'credentials', /Restore it from a backup/],
])('says what to do when %s', async (_what, answers, files, code, message) => {
  const { obtain } = await setUp(answers as Answer[], files)
  await expect(obtain()).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
})

describe('once registered', () => {
  it('starts without asking anybody (C1)', async () => {
    const { asked, obtain } = await setUp([], { 'credentials.json': KNOWN })
    expect(await obtain()).toEqual(KNOWN)
    expect(asked).toEqual([])
  })

  it('follows the server to another address', async () => {
    const { home, obtain } = await setUp([], { 'credentials.json': KNOWN }, { serverUrl: 'http://127.0.0.1:9999' })
    expect((await obtain()).url).toBe('http://127.0.0.1:9999')
    expect(JSON.parse(await readFile(join(home, 'credentials.json'), 'utf8')).url).toBe('http://127.0.0.1:9999')
  })

  it.each([
    ['cannot be reached', new TypeError('refused')],
    ['has trouble', { status: 500, body: {} }],
    ['is something else', { status: 200, body: { hello: 'world' } }],
    ['knows it', session({ kind: 'gateway', tenant_id: KNOWN.tenant_id, gateway_id: KNOWN.gateway_id, slug: 'local' })],
  ])('stays who it is although an offer lies there, when the server %s (C2)', async (_what, answer) => {
    const { asked, obtain } = await setUp([answer], { 'credentials.json': KNOWN, 'registration.json': offer })
    expect(await obtain()).toEqual(KNOWN)
    expect(asked).toEqual([{ url: `${URL}/v1/session`, body: undefined, authorization: 'Bearer hqgw_the-token' }])
  })

  it.each([
    ['with a 401', { status: 401, body: {} }],
    ['by knowing nobody', session(null)],
  ])(
    'becomes somebody new when the server says %s that it forgot it, and keeps all it had (C2)',
    async (_how, answer) => {
      const { home, obtain } = await setUp([answer, { status: 201, body: { ...ANSWER, token: 'hqgw_new-token' } }], {
        'credentials.json': KNOWN,
        'registration.json': offer,
        'gateway.lock': '{}',
      })
      await mkdir(join(home, 'replica'))
      expect((await obtain()).token).toBe('hqgw_new-token')
      expect((await readdir(home)).sort()).toEqual(['credentials.json', 'former-19700101T000000000Z', 'gateway.lock'])
      expect((await readdir(join(home, 'former-19700101T000000000Z'))).sort()).toEqual(['credentials.json', 'replica'])
    },
  )

  it('can be stopped while it waits', async () => {
    const { obtain, abort } = await setUp([], { 'registration.json': offer })
    const waiting = obtain()
    abort.abort(new Error('stop'))
    await expect(waiting).rejects.toThrow()
  })
})

it.each(['', 'hq', 'ftp://x', 'http://user:secret@x', 'javascript:1'])(
  'refuses %j as the address of a server',
  (url) => {
    expect(() => checkServerUrl(url)).toThrow(SetupError)
  },
)

it('reads its configuration', () => {
  const config = readConfig({
    HQ_HOME: '/srv/hq',
    HQ_SERVER: 'https://hq.example.com/x',
    HQ_GATEWAY_SLUG: 'My Mac_Book.local!',
  })
  expect(config).toMatchObject({
    home: '/srv/hq/gateway',
    serverUrl: 'https://hq.example.com',
    slug: 'my-mac-book-local',
  })
  expect(readConfig({ HQ_GATEWAY_HOME: '/elsewhere', HQ_GATEWAY_SLUG: '!!' })).toMatchObject({
    home: '/elsewhere',
    slug: 'gateway',
  })
})
