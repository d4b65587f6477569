/** Signing in through the real runner, at a provider on the loopback that checks what a real one checks. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { seal } from '@hq/shared/domain/sealing.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connectionsOf } from '../models/connections.ts'
import { createModels } from '../models/models.ts'
import { makeIdentity, writeDurably } from '../registration-identity.ts'
import { createRunner } from '../runner/runner.ts'
import type { GatewayContext } from '../service.ts'
import { createTestGateway, newId, noModels, type TestGateway } from '../testing/context.ts'
import { type LoopbackOauth, startLoopbackOauth } from './loopback-oauth.ts'
import { signInsOf } from './sign-ins.ts'

interface Bench {
  readonly gateway: TestGateway
  readonly oauth: LoopbackOauth
  readonly id: string
  readonly logged: string[]
  send(action: string, payload: object): Promise<Record<string, unknown>>
  start(flow: 'paste' | 'device'): Promise<Record<string, string>>
  paste(text: string): Promise<Record<string, unknown>>
  token(): Promise<{ ok: boolean; value?: string; message?: string }>
  /** The connection's row, once it is so. */
  stands(row: Record<string, unknown>): Promise<void>
  keptText(): Promise<string>
}

async function bench(settings: Record<string, unknown> = {}, restarted?: Bench): Promise<Bench> {
  const gateway = restarted?.gateway ?? (await createTestGateway())
  const oauth = restarted?.oauth ?? (await startLoopbackOauth())
  if (!restarted) onTestFinished(() => oauth.close())
  const base: GatewayContext = restarted ? await gateway.restarted() : gateway.context
  const logged: string[] = []
  const log = Object.assign(base.log, { addSecret: (value: string) => void logged.push(value) })
  const context = { ...base, log }
  const { tenantId, gatewayId, home } = context
  const signIns = signInsOf(context, { secondMs: 5, sweepMs: 20 })
  onTestFinished(() => signIns.stop())
  await signIns.start()
  const runner = createRunner(context, noModels, { sweepMs: 3_600_000 })
  onTestFinished(() => runner.stop())
  await runner.start()
  const id = restarted?.id ?? newId()
  const secret = newId()
  let version = 0
  const keys = makeIdentity()
  if (!restarted) {
    const who = { url: 'http://127.0.0.1:1', gateway_id: gatewayId, tenant_id: tenantId, slug: 'local', ...keys }
    await writeDurably(join(home, 'credentials.json'), who)
    await gateway.replica.write((tx) =>
      tx.query(
        `insert into model_connections (id, tenant_id, gateway_id, label, provider, default_model, oauth) values ($1, $2, $3, 'Claw', 'openai', 'm-1', $4)`,
        [id, tenantId, gatewayId, JSON.stringify({ ...oauth.settings, ...settings })],
      ),
    )
  }
  const send: Bench['send'] = async (action, payload) =>
    gateway.command(await gateway.addCommand(action, null, { payload: JSON.stringify(payload) }))
  return {
    gateway,
    oauth,
    id,
    logged,
    send,
    start: async (flow) => {
      const command = await send('auth_start', { connection_id: id, flow })
      expect(command).toMatchObject({ status: 'done', error_message: null })
      return command['result'] as Record<string, string>
    },
    paste: async (text) => {
      version += 1
      const sealedId = newId()
      const place = { tenantId, gatewayId, secretId: secret, version, use: ['MODEL_KEY_X', '', 'model'] }
      const sealed = await seal(keys.public_key, place, text)
      await gateway.replica.write(async (tx) => {
        if (version === 1) {
          await tx.query(
            `insert into secrets (id, tenant_id, gateway_id, key, name, category) values ($1, $2, $3, 'MODEL_KEY_X', 'Sign-in', 'model')`,
            [secret, tenantId, gatewayId],
          )
          await tx.query('update model_connections set secret_id = $2 where id = $1', [id, secret])
        } else await tx.query('update secrets set version = $2 where id = $1', [secret, version])
        await tx.query(
          'insert into sealed_secrets (id, tenant_id, gateway_id, secret_id, version, sealed, public_key) values ($1, $2, $3, $4, $5, $6, $7)',
          [sealedId, tenantId, gatewayId, secret, version, sealed, keys.public_key],
        )
      })
      const command = await send('auth_paste', { connection_id: id, sealed_id: sealedId })
      // Used up or refused: the ciphertext is gone either way.
      expect(await gateway.row('sealed_secrets', sealedId)).toMatchObject({ sealed: '' })
      return command
    },
    token: async () => {
      const [connection] = await connectionsOf(context)
      if (!connection) throw new Error('no connection')
      return signIns.token(connection)
    },
    stands: (row) =>
      vi.waitFor(async () => expect(await gateway.row('model_connections', id)).toMatchObject(row), {
        timeout: 20_000,
      }),
    keptText: async () => readFile(join(home, 'oauth', `${id}.json`), 'utf8'),
  }
}

/** Every row of every table of the gateway. */
async function everyRow({ replica }: TestGateway): Promise<string> {
  const tables = await replica.query<{ name: string }>(
    `select quote_ident(table_schema) || '.' || quote_ident(table_name) as name from information_schema.tables
     where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
  )
  let all = ''
  for (const { name } of tables) all += JSON.stringify(await replica.query(`select to_jsonb(t) as row from ${name} t`))
  return all
}

const breakOff = (response: { destroy(): void }): void => response.destroy()

test('by paste: link, code, token; the secrets are in the owner’s file and nowhere else', async () => {
  const at = await bench()
  expect(await at.token()).toMatchObject({ ok: false, message: expect.stringContaining('Nobody has signed in') })
  const begun = await at.start('paste')
  await at.stands({ status: 'unchecked', status_detail: 'Waiting for the sign-in.' })
  const link = new URL(begun['authorize_url'] ?? '')
  expect(link.searchParams.get('code_challenge_method')).toBe('S256')
  expect(link.searchParams.get('scope')).toBe('models offline')
  const back = await at.oauth.approve(link.href)
  expect(await at.paste(back)).toMatchObject({ status: 'done', error_message: null })
  const used = await at.token()
  expect(at.oauth.isValid(used.value ?? '')).toBe(true)
  const file = join(at.gateway.context.home, 'oauth')
  expect((await stat(file)).mode & 0o777).toBe(0o700)
  for (const name of await readdir(file)) expect((await stat(join(file, name))).mode & 0o777).toBe(0o600)
  const verifier = at.oauth.asked.find(({ form }) => form['code_verifier'])?.form['code_verifier'] ?? ''
  expect(verifier.length).toBeGreaterThanOrEqual(43)
  const secrets = [...at.oauth.secrets, verifier, back]
  const seen = (await everyRow(at.gateway)) + JSON.stringify(at.gateway.log)
  expect(secrets.filter((secret) => seen.includes(secret))).toEqual([])
  // The log would hide each of them.
  expect(secrets.filter((secret) => !at.logged.includes(secret))).toEqual([])
})

test('a wrong state, a code of another sign-in, nonsense, a refusal: each is said, and the right one still works', async () => {
  const at = await bench()
  expect(await at.paste('x')).toMatchObject({
    status: 'failed',
    error_message: expect.stringMatching(/Start it again/),
  })
  const { authorize_url: link = '' } = await at.start('paste')
  const back = await at.oauth.approve(link)
  for (const [text, says] of [
    [back.replace(/state=[^&]+/, 'state=another'), /belongs to another sign-in/],
    [back.replace(/&state=[^&]+/, ''), /belongs to another sign-in/],
    ['http://localhost:8976/callback', /another sign-in|no code/],
    ['not a code at all', /no code/],
    [`?error=access_denied&state=${new URL(link).searchParams.get('state')}`, /did not let you in: access_denied/],
  ] as const)
    expect(await at.paste(text)).toMatchObject({ status: 'failed', error_message: expect.stringMatching(says) })
  expect(at.oauth.asked).toHaveLength(0)
  // The code alone: PKCE ties it to this sign-in.
  expect(await at.paste(new URL(back).searchParams.get('code') ?? '')).toMatchObject({ status: 'done' })
  const { authorize_url: second = '' } = await at.start('paste')
  const old = new URL(await at.oauth.approve(second)).searchParams.get('code') ?? ''
  await at.start('paste')
  const refused = await at.paste(old)
  expect(refused).toMatchObject({ status: 'failed', error_message: expect.stringMatching(/did not accept the code/) })
  expect(JSON.stringify(refused)).not.toContain(old)
  // What was there before still counts.
  expect(await at.token()).toMatchObject({ ok: true })
})

test.each([
  ['no token', 200, '{"token_type":"Bearer"}'],
  ['no JSON', 200, '<html>'],
  ['another kind of token', 200, '{"access_token":"at-1","token_type":"mac"}'],
  ['a token of two lines', 200, '{"access_token":"a\\nb"}'],
])('an answer with %s is a sentence', async (_what, status, body) => {
  const at = await bench()
  const { authorize_url: link = '' } = await at.start('paste')
  const back = await at.oauth.approve(link)
  at.oauth.next('/token', (response) =>
    response.writeHead(status, { 'content-type': body.startsWith('<') ? 'text/html' : 'application/json' }).end(body),
  )
  expect(await at.paste(back)).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('no usable token'),
  })
  expect(await at.token()).toMatchObject({ ok: false })
})

test('a connection that is cut, a provider that is down, a redirect: the code can be pasted again', async () => {
  const at = await bench()
  const { authorize_url: link = '' } = await at.start('paste')
  const back = await at.oauth.approve(link)
  at.oauth.next('/token', breakOff)
  at.oauth.next('/token', (response) => response.writeHead(503).end('busy'))
  at.oauth.next('/token', (response) => response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end())
  for (let time = 0; time < 3; time++)
    expect(await at.paste(back)).toMatchObject({
      status: 'failed',
      error_message: expect.stringContaining('Paste it again'),
    })
  expect(await at.paste(back)).toMatchObject({ status: 'done' })
})

test('by device code: pending, slower, approved; the device code is shown to nobody', async () => {
  const at = await bench()
  at.oauth.decide('slow')
  const begun = await at.start('device')
  expect(begun).toMatchObject({
    flow: 'device',
    user_code: 'WDJB-MJHT',
    verification_url: expect.stringContaining('/activate'),
  })
  expect(JSON.stringify(begun)).not.toContain('SECRET')
  await vi.waitFor(() => expect(at.oauth.asked.length).toBeGreaterThan(2))
  at.oauth.decide('slow')
  await vi.waitFor(async () => expect(await at.keptText()).toContain('"interval": 6'))
  // Cut, and a page of a proxy: asked again.
  at.oauth.next('/token', breakOff)
  at.oauth.next('/token', (response) => response.writeHead(502).end('<html>'))
  at.oauth.decide('approve')
  await at.stands({ status: 'unchecked', status_detail: 'Signed in; it is tried now.' })
  expect(await at.token()).toMatchObject({ ok: true })
  const seen = (await everyRow(at.gateway)) + JSON.stringify(at.gateway.log)
  expect(at.oauth.secrets.filter((secret) => seen.includes(secret))).toEqual([])
})

test.each([
  ['deny', 'was refused at the provider'],
  ['expire', 'not entered in time'],
] as const)('a device code: %s', async (decision, says) => {
  const at = await bench()
  await at.start('device')
  at.oauth.decide(decision)
  await at.stands({ status: 'failed', status_detail: expect.stringContaining(says) })
  expect(await at.token()).toMatchObject({ ok: false, message: expect.stringContaining(says) })
})

test('a device code that nobody types runs out by the gateway’s own clock', async () => {
  const at = await bench()
  await at.start('device')
  at.gateway.advance(901_000)
  await at.stands({ status: 'failed', status_detail: expect.stringContaining('in time') })
})

test('a device sign-in goes on in the next process', async () => {
  const first = await bench()
  await first.start('device')
  const next = await bench({}, first)
  first.oauth.decide('approve')
  await next.stands({ status_detail: 'Signed in; it is tried now.' })
  expect(await next.token()).toMatchObject({ ok: true })
})

test('a device answer that is malformed or not https, and flows that the connection does not have', async () => {
  const at = await bench()
  at.oauth.next('/device', (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"user_code":"A"}'),
  )
  expect(await at.send('auth_start', { connection_id: at.id, flow: 'device' })).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('no usable code'),
  })
  at.oauth.next('/device', (response) =>
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end('{"user_code":"A","device_code":"d","verification_uri":"http://example.org/x","expires_in":60}'),
  )
  expect(await at.send('auth_start', { connection_id: at.id, flow: 'device' })).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('not https'),
  })
  const inside = await bench({ device_url: 'https://10.0.0.7/device' })
  expect(await inside.send('auth_start', { connection_id: inside.id, flow: 'device' })).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('Only public addresses'),
  })
  const none = await bench({ authorize_url: undefined })
  expect(await none.send('auth_start', { connection_id: none.id, flow: 'paste' })).toMatchObject({ status: 'failed' })
  expect(await none.send('auth_start', { connection_id: newId(), flow: 'paste' })).toMatchObject({ status: 'failed' })
})

async function signedIn(lifetime = 3_600): Promise<Bench> {
  const at = await bench()
  at.oauth.lifetime = lifetime
  const { authorize_url: link = '' } = await at.start('paste')
  expect(await at.paste(await at.oauth.approve(link))).toMatchObject({ status: 'done' })
  return at
}
const renewals = ({ oauth }: Bench): number =>
  oauth.asked.filter(({ form }) => form['grant_type'] === 'refresh_token').length

test('a token is renewed before it ends, once for all who ask, and the new refresh token is kept', async () => {
  const at = await signedIn()
  const before = await at.token()
  at.gateway.advance(3_400_000)
  const tokens = await Promise.all([at.token(), at.token(), at.token(), at.token()])
  expect(renewals(at)).toBe(1)
  expect(new Set(tokens.map(({ value }) => value)).size).toBe(1)
  expect(tokens[0]?.value).not.toBe(before.value)
  // Refresh tokens are good once here: this works only with the newest.
  for (let time = 2; time < 4; time++) {
    expect(await at.send('auth_refresh', { connection_id: at.id })).toMatchObject({
      status: 'done',
      result: { expires_at: expect.stringContaining('T') },
    })
    expect(renewals(at)).toBe(time)
  }
})

test('a renewal that does not get through is tried again; one that is refused asks people to sign in again', async () => {
  const at = await signedIn()
  at.oauth.next('/token', breakOff)
  expect(await at.send('auth_refresh', { connection_id: at.id })).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('tried again'),
  })
  expect(await at.token()).toMatchObject({ ok: true })
  at.oauth.revoke()
  at.gateway.advance(3_700_000)
  await at.stands({ status: 'failed', status_detail: expect.stringMatching(/^Sign in again: .*invalid_grant/) })
  expect(await at.token()).toMatchObject({ ok: false, message: expect.stringContaining('Sign in again') })
  expect(await at.send('auth_refresh', { connection_id: at.id })).toMatchObject({ status: 'failed' })
  const models = createModels(at.gateway.context)
  await at.gateway.replica.write((tx) => tx.query('update model_connections set is_default = true'))
  expect(await models.resolve()).toMatchObject({
    ok: false,
    message: expect.stringMatching(/“Claw” can’t be used: Sign in again/),
  })
})

test('a token that ran out while the provider was away: said, and back by itself', async () => {
  const at = await signedIn()
  at.oauth.next('/token', breakOff)
  at.gateway.advance(3_700_000)
  await at.stands({ status: 'unchecked', status_detail: 'Renewed; it is tried now.' })
  expect(await at.token()).toMatchObject({ ok: true })
})

test('with other addresses the tokens go nowhere; with the connection they go away', async () => {
  const at = await signedIn()
  const other = { ...at.oauth.settings, token_url: 'https://elsewhere.example/token' }
  await at.gateway.replica.write((tx) =>
    tx.query('update model_connections set oauth = $2 where id = $1', [at.id, JSON.stringify(other)]),
  )
  expect(await at.token()).toMatchObject({ ok: false, message: expect.stringContaining('addresses were changed') })
  expect(await at.keptText()).toContain('SECRET')
  await at.send('auth_remove', { connection_id: at.id })
  await vi.waitFor(async () => expect(await readdir(join(at.gateway.context.home, 'oauth'))).toEqual([]))
})
