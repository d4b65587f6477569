import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkServerUrl, type GatewayConfig, readConfig, SetupError } from './config.ts'
import { obtainCredentials } from './registration.ts'
import { bearerHash, makeIdentity } from './registration-identity.ts'
import { temporaryFolder } from './testing/folder.ts'

const URL = 'http://127.0.0.1:4400'
const ANSWER = {
  gateway_id: '0199aaaa-0000-7000-8000-000000000001',
  tenant_id: '0199aaaa-0000-7000-8000-000000000002',
  slug: 'local-2',
}
const IDENTITY = { ...makeIdentity(), token: 'hqgw_the-token' }
const KNOWN = { url: URL, ...ANSWER, slug: 'local', ...IDENTITY }
/** What is sent of an identity. */
const sent = ({ token, public_key }: { token: string; public_key: string }) => ({
  bearer_hash: bearerHash(token),
  public_key,
})
const readJson = async (home: string, name: string) => JSON.parse(await readFile(join(home, name), 'utf8'))

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
  const obtain = (fetch?: typeof globalThis.fetch) =>
    obtainCredentials({
      config,
      log: () => undefined,
      signal: abort.signal,
      lookMs: 1,
      patienceMs: 300,
      now: () => 0,
      fetch:
        fetch ??
        (async (input, init) => {
          const { body, headers } = init ?? {}
          asked.push({
            url: String(input),
            body: typeof body === 'string' ? JSON.parse(body) : undefined,
            authorization: new Headers(headers).get('authorization'),
          })
          const answer = answers.length > 1 ? answers.shift() : answers[0]
          if (!answer || answer instanceof Error) throw answer ?? new TypeError('fetch failed')
          return Response.json(answer.body, { status: answer.status })
        }),
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
  const credentials = await obtain()
  expect(credentials).toMatchObject({ url: URL, ...ANSWER, token: expect.stringMatching(/^hqgw_[\w-]{43}$/) })
  expect(await readJson(home, 'credentials.json')).toEqual(credentials)
  expect(asked).toEqual([
    {
      url: `${URL}/v1/gateways/register`,
      body: { token: 'hqreg_offer', slug: 'local', label: 'This machine', ...sent(credentials) },
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
  const credentials = await obtain()
  expect(credentials.url).toBe('https://hq.example.com')
  expect(asked[0]?.body).toEqual({ token: 'hqreg_env', slug: 'host', label: 'Host', ...sent(credentials) })
})

it.each([
  ['nothing comes', [], {}, 'not_registered', /HQ_SERVER_URL and HQ_REGISTRATION_TOKEN/],
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

describe('when the answer does not come (C4)', () => {
  const files = { 'registration.json': offer }
  const answer = { status: 200, body: ANSWER }

  it('has token and keys on the disk, owner-only, before it asks, and asks again with the same', async () => {
    const setup = await setUp([], files)
    const { home, asked } = setup
    const before: unknown[] = []
    const looking: typeof fetch = async (_url, init) => {
      before.push(await readJson(home, 'registering.json'))
      expect((await stat(join(home, 'registering.json'))).mode & 0o777).toBe(0o600)
      asked.push({ url: '', body: JSON.parse(String(init?.body)), authorization: null })
      // The server has committed; the answer is cut off, then lost, then comes.
      if (before.length === 1) return new Response('{"gateway_id":"0199', { status: 201 })
      if (before.length === 2) throw new TypeError('reset')
      return Response.json(ANSWER)
    }
    const credentials = await setup.obtain(looking)
    expect(before).toHaveLength(3)
    for (const identity of before) expect(credentials).toMatchObject(identity as object)
    expect(new Set(asked.map(({ body }) => JSON.stringify(body))).size).toBe(1)
    expect(await readdir(home)).toEqual(['credentials.json'])
  })

  it('asks as the same gateway in its next process', async () => {
    const { home, asked, obtain } = await setUp([answer], { ...files, 'registering.json': IDENTITY })
    expect(await obtain()).toEqual({ url: URL, ...ANSWER, ...IDENTITY })
    expect(asked[0]?.body).toMatchObject(sent(IDENTITY))
    expect(await readdir(home)).toEqual(['credentials.json'])
  })

  it('makes another identity, once, when the server has revoked the one it asked with', async () => {
    const revoked = { status: 409, body: { code: 'bearer_revoked', message: 'Not accepted any more.' } }
    const { asked, obtain } = await setUp([revoked, answer], { ...files, 'registering.json': IDENTITY })
    const credentials = await obtain()
    expect(credentials.token).not.toBe(IDENTITY.token)
    expect(asked.map(({ body }) => body)).toMatchObject([sent(IDENTITY), sent(credentials)])
    const never = await setUp([revoked], files)
    await expect(never.obtain()).rejects.toMatchObject({ code: 'registration_refused' })
    expect(never.asked).toHaveLength(2)
  })

  it('ended while it put the former registration aside, goes on with it', async () => {
    const { home, asked, obtain } = await setUp([session(null), answer], {
      ...files,
      'credentials.json': KNOWN,
      'registering.json': { ...IDENTITY, token: 'hqgw_the-next-token' },
    })
    await mkdir(join(home, 'former-earlier', 'replica'), { recursive: true })
    await mkdir(join(home, 'repo.git'))
    expect(await obtain()).toMatchObject({ token: 'hqgw_the-next-token' })
    expect(asked).toHaveLength(2)
    expect((await readdir(home)).sort()).toEqual(['credentials.json', 'former-19700101T000000000Z', 'former-earlier'])
    expect(await readdir(join(home, 'former-earlier'))).toEqual(['replica'])
    expect((await readdir(join(home, 'former-19700101T000000000Z'))).sort()).toEqual(['credentials.json', 'repo.git'])
  })

  it('keeps what the former registration had where it is, when the new one is refused', async () => {
    const used = { status: 410, body: { code: 'token_used', message: 'Already used.' } }
    const { home, obtain } = await setUp([session(null), used], { ...files, 'credentials.json': KNOWN })
    await mkdir(join(home, 'replica'))
    await expect(obtain()).rejects.toThrow(/Already used/)
    expect(await readJson(home, 'credentials.json')).toEqual(KNOWN)
    expect(await readdir(home)).toContain('replica')
  })

  it('says so when what answers is no HQ server, or its own file is torn', async () => {
    const other = await setUp([{ status: 200, body: { hello: 'world' } }], files)
    await expect(other.obtain()).rejects.toThrow(/not an HQ server of this version/)
    const torn = await setUp([answer], { ...files, 'registering.json': '{' })
    await expect(torn.obtain()).rejects.toThrow(/Delete that file and register with a new token/)
  })
})

describe('once registered', () => {
  it('forgets the identity that it registered with, when it was ended before it could', async () => {
    const { home, obtain } = await setUp([], { 'credentials.json': KNOWN, 'registering.json': IDENTITY })
    await obtain()
    expect(await readdir(home)).toEqual(['credentials.json'])
  })

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
      const { home, asked, obtain } = await setUp([answer, { status: 201, body: ANSWER }], {
        'credentials.json': KNOWN,
        'registration.json': offer,
        'gateway.lock': '{}',
      })
      await mkdir(join(home, 'replica'))
      const credentials = await obtain()
      expect(credentials.token).not.toBe(KNOWN.token)
      expect(asked[1]?.body).toMatchObject(sent(credentials))
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
