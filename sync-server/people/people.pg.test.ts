import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashToken } from '../database/ids.ts'
import { MigrationError, migrate, readMigrations } from '../database/migrate.ts'
import { createPool, type Pool } from '../database/pool.ts'
import { ensureTenant } from '../database/seed.ts'
import { startTestPostgres } from '../shapes/testing/postgres.ts'
import { newGatewayIdentity, remove, startWorkspace, update, type Workspace } from '../testing/workspace.ts'
import { createAttempts } from './attempts.ts'
import { setup } from './setup.ts'

let workspace: Workspace
beforeAll(async () => {
  workspace = await startWorkspace()
})
afterAll(() => workspace?.stop())

const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(workspace.url + path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown>, response }
}
const request = async (method: string, path: string, headers: Record<string, string>) => {
  const response = await fetch(workspace.url + path, { method, headers })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}
const session = async (headers: Record<string, string>) =>
  (
    (await (await fetch(`${workspace.url}/v1/session`, { headers })).json()) as {
      principal: Record<string, unknown> | null
    }
  ).principal

describe('setup', () => {
  test('of ten at once, one makes the owner', async () => {
    const postgres = await startTestPostgres()
    let pool: Pool | undefined
    try {
      const connected = createPool(postgres.url)
      pool = connected
      await migrate(pool, await readMigrations())
      const { id } = await ensureTenant(pool)
      const attempt = (n: number) =>
        setup(connected, id, {
          name: 'N',
          email: `n${n}@example.com`,
          password: 'long enough',
          workspace_name: 'W',
          timezone: 'UTC',
        })
      const outcomes = await Promise.allSettled(Array.from({ length: 10 }, (_, n) => attempt(n)))
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      const { rows } = await pool.query(
        'select (select count(*) from people)::int as people, (select count(*) from auth_user)::int as users',
      )
      expect(rows[0]).toEqual({ people: 1, users: 1 })
    } finally {
      await pool?.end()
      await postgres.stop()
    }
  })

  test('a second setup is refused; input is explained field by field', async () => {
    const again = await post('/v1/setup', {
      name: 'N',
      email: 'n@example.com',
      password: 'long enough',
      workspace_name: 'W',
      timezone: 'UTC',
    })
    expect([again.status, again.body['code']]).toEqual([409, 'already_set_up'])
    const bad = await post('/v1/setup', {
      name: ' ',
      email: 'nope',
      password: 'short',
      workspace_name: 'W',
      timezone: 'Mars/Base',
    })
    expect([bad.status, bad.body['code']]).toEqual([400, 'invalid'])
    expect(Object.keys((bad.body['detail'] as { fields: object }).fields).sort()).toEqual([
      'email',
      'name',
      'password',
      'timezone',
    ])
  })
})

describe('sign-in', () => {
  test('right, wrong, and unknown read alike; sign-up is closed', async () => {
    const { email, password } = workspace.owner
    const good = await post('/api/auth/sign-in/email', { email: email.toUpperCase(), password })
    expect(good.status).toBe(200)
    expect(good.response.headers.getSetCookie()[0]).toMatch(
      /^hq\.session_token=.*Max-Age=7776000.*HttpOnly.*SameSite=Lax/i,
    )
    const wrong = await post('/api/auth/sign-in/email', { email, password: 'not it at all' })
    const unknown = await post('/api/auth/sign-in/email', { email: 'nobody@example.com', password: 'not it at all' })
    expect([wrong.status, wrong.body]).toEqual([unknown.status, unknown.body])
    expect(wrong.body['code']).toBe('wrong_password')
    expect(
      (await post('/api/auth/sign-up/email', { email: 'x@example.com', password: 'long enough', name: 'X' })).status,
    ).toBe(404)
  })

  test('sign-out ends the session', async () => {
    const person = await workspace.join('member')
    expect(await session(person.headers)).not.toBeNull()
    await post('/api/auth/sign-out', {}, person.headers)
    expect(await session(person.headers)).toBeNull()
  })

  test('a session renews itself, cookie and all', async () => {
    const person = await workspace.join('member')
    const ask = () => fetch(`${workspace.url}/v1/session`, { headers: person.headers })
    expect((await ask()).headers.getSetCookie()).toEqual([])
    await workspace.server.pool.query(
      `update auth_session set "expiresAt" = now() + interval '80 days' where "userId" = (select user_id from people where id = $1)`,
      [person.principal.person_id],
    )
    expect((await ask()).headers.getSetCookie()[0]).toMatch(/^hq\.session_token=.*Max-Age=7776000/)
    const [row] = await workspace.rows<{ days: number }>(
      `select extract(day from "expiresAt" - now())::int as days from auth_session
        where "userId" = (select user_id from people where id = $1)`,
      [person.principal.person_id],
    )
    expect(row?.days).toBeGreaterThanOrEqual(89)
  })

  test('guessing is slowed down, and forgotten', () => {
    const attempts = createAttempts()
    for (let n = 0; n < 10; n++) attempts.failed('1.2.3.4', 'A@x', 1_000 * n)
    expect(attempts.wait('1.2.3.4', 'a@x', 10_000)).toBeGreaterThan(800)
    expect(attempts.wait('1.2.3.4', 'b@x', 10_000)).toBe(0)
    expect(attempts.wait('1.2.3.4', 'a@x', 16 * 60_000)).toBe(0)
    attempts.succeeded('1.2.3.4', 'a@x')
    expect(attempts.wait('1.2.3.4', 'a@x', 10_000)).toBe(0)
  })

  test('another site cannot act with the cookie', async () => {
    const { headers } = workspace.owner
    for (const origin of ['https://evil.example', 'null']) {
      const forged = await post('/v1/invitations', { role: 'owner' }, { ...headers, origin })
      expect([forged.status, forged.body['code']]).toEqual([403, 'wrong_origin'])
    }
    expect((await post('/v1/invitations', { role: 'member' }, { ...headers, origin: workspace.url })).status).toBe(201)
    // fetch() sets no Host of our choice: ask by hand, as a page of a rebound name would.
    const { request } = await import('node:http')
    const status = await new Promise((done, fail) => {
      const call = request(`${workspace.url}/v1/session`, { headers: { host: 'evil.example' } }, (response) =>
        done(response.resume().statusCode),
      )
      call.on('error', fail).end()
    })
    expect(status).toBe(421)
  })
})

describe('removal and roles take effect with the next request', () => {
  test('a removed person is out, and can be invited anew', async () => {
    const person = await workspace.join('member')
    await workspace.writer(workspace.owner).apply([remove('people', person.principal.person_id)])
    expect(await session(person.headers)).toBeNull()
    const back = await post('/api/auth/sign-in/email', { email: person.email, password: person.password })
    expect([back.status, back.body['code']]).toEqual([403, 'removed'])
    const invitation = await post('/v1/invitations', { role: 'viewer' }, workspace.owner.headers)
    const token = String(invitation.body['url']).split('/').at(-1)
    const again = await post(`/v1/invitations/by-token/${token}/accept`, {
      name: 'Back',
      email: person.email,
      password: 'another password',
    })
    expect(again.status).toBe(201)
    const cookie = again.response.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    expect(await session({ cookie })).toMatchObject({ person_id: person.principal.person_id, role: 'viewer' })
    expect(await session(person.headers)).toBeNull()
  })

  test('a role', async () => {
    const person = await workspace.join('viewer')
    await workspace
      .writer(workspace.owner)
      .apply([update('people', person.principal.person_id, { role: 'viewer' }, { role: 'admin' })])
    expect(await session(person.headers)).toMatchObject({ role: 'admin' })
    expect((await post('/v1/invitations', { role: 'admin' }, person.headers)).status).toBe(201)
    expect((await post('/v1/invitations', { role: 'owner' }, person.headers)).status).toBe(403)
  })
})

describe('invitations', () => {
  const invite = async (body: object) => {
    const { body: made } = await post('/v1/invitations', body, workspace.owner.headers)
    return { id: String(made['id']), token: String(made['url']).split('/').at(-1) ?? '' }
  }
  const person = (email: string) => ({ name: 'New', email, password: 'long enough' })
  const accept = (token: string, email: string) => post(`/v1/invitations/by-token/${token}/accept`, person(email))

  test('work once, also when two use one at the same moment', async () => {
    const { token } = await invite({ role: 'member' })
    const look = await fetch(`${workspace.url}/v1/invitations/by-token/${token}`)
    expect(await look.json()).toMatchObject({ workspace_name: 'Acme', invited_by: 'Olga Owner', role: 'member' })
    const both = await Promise.all([accept(token, 'one@example.com'), accept(token, 'two@example.com')])
    expect(both.map(({ status }) => status).sort()).toEqual([201, 410])
    expect((await accept(token, 'three@example.com')).body['code']).toBe('invitation_used')
    const stored = await workspace.rows<{ token_hash: string }>(
      'select token_hash from invitations where token_hash = $1',
      [hashToken(token)],
    )
    expect(stored).toHaveLength(1)
    expect(await workspace.rows('select 1 from invitations where token_hash = $1', [token])).toEqual([])
  })

  test('expired, withdrawn, unknown, for another address, for an address that has an account', async () => {
    const expired = await invite({ role: 'member' })
    await workspace.server.pool.query(`update invitations set expires_at = now() - interval '1 second' where id = $1`, [
      expired.id,
    ])
    expect((await accept(expired.token, 'e@example.com')).body).toMatchObject({
      code: 'invitation_expired',
      message: expect.stringContaining('Olga Owner') as string,
    })
    const withdrawn = await invite({ role: 'member' })
    await fetch(`${workspace.url}/v1/invitations/${withdrawn.id}`, {
      method: 'DELETE',
      headers: workspace.owner.headers,
    })
    expect((await accept(withdrawn.token, 'w@example.com')).body['code']).toBe('invitation_revoked')
    expect((await accept('nonsense', 'n@example.com')).body['code']).toBe('invitation_unknown')
    const addressed = await invite({ role: 'member', email: 'Right@Example.com' })
    expect((await accept(addressed.token, 'wrong@example.com')).body['code']).toBe('wrong_email')
    expect((await accept(addressed.token, 'right@example.com')).status).toBe(201)
    const open = await invite({ role: 'member' })
    expect((await accept(open.token, workspace.owner.email)).body['code']).toBe('email_taken')
  })

  test('members do not invite', async () => {
    const member = await workspace.join('member')
    expect((await post('/v1/invitations', { role: 'viewer' }, member.headers)).status).toBe(403)
    expect((await post('/v1/gateways/tokens', {}, member.headers)).status).toBe(403)
  })
})

describe('gateways', () => {
  type Identity = ReturnType<typeof newGatewayIdentity>
  const register = (token: string, { register: own }: Identity, more: object = {}) =>
    post('/v1/gateways/register', { token, slug: 'cellar', label: 'A machine', ...own, ...more })
  const newToken = async (input: object) =>
    String((await post('/v1/gateways/tokens', input, workspace.owner.headers)).body['token'])
  const gateways = async () => Number((await workspace.rows('select count(*)::int as n from gateways'))[0]?.['n'])

  test('get the same answer as often as they ask with the same token, whatever became of it since', async () => {
    const before = await gateways()
    const [token, identity] = [await newToken({ label: 'Attic' }), newGatewayIdentity()]
    const together = await Promise.all(Array.from({ length: 5 }, () => register(token, identity)))
    expect(together.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 201])
    await workspace.rows(
      `update gateway_registration_tokens set expires_at = now() - interval '1 day' where label = 'Attic'`,
    )
    const later = await register(token, identity, { slug: 'renamed', label: 'Renamed' })
    const answers = [...together, later].map(({ body }) => body)
    for (const answer of answers) expect(answer).toEqual(answers[0])
    expect(JSON.stringify(answers)).not.toContain('hqgw_')
    // Another bearer, another key: somebody else.
    const { public_key } = newGatewayIdentity().register
    expect((await register(token, newGatewayIdentity())).body['code']).toBe('token_used')
    expect((await register(token, identity, { public_key })).body['code']).toBe('token_used')
    // Its person made another token for it: still the same gateway, and that token is used too.
    const another = await newToken({})
    expect((await register(another, identity)).body).toEqual(answers[0])
    expect((await register(another, newGatewayIdentity())).body['code']).toBe('token_used')
    expect(await gateways()).toBe(before + 1)

    await fetch(`${workspace.url}/v1/gateways/${String(later.body['gateway_id'])}`, {
      method: 'DELETE',
      headers: workspace.owner.headers,
    })
    expect(await register(token, identity)).toMatchObject({ status: 410, body: { code: 'token_used' } })
    const fresh = await newToken({})
    expect(await register(fresh, identity)).toMatchObject({ status: 409, body: { code: 'bearer_revoked' } })
    expect((await register(fresh, newGatewayIdentity())).status).toBe(201)
  })

  test('do not register with a token that has expired, was withdrawn, or never was; nothing of a token is kept', async () => {
    const list = async () =>
      (await request('GET', '/v1/gateways/tokens', workspace.owner.headers)).body['tokens'] as Record<string, unknown>[]
    const [expired, withdrawn] = [await newToken({ label: 'Old' }), await newToken({ label: 'Wrong' })]
    expect((await list()).slice(0, 2)).toMatchObject([
      { label: 'Wrong', gateway_id: null, created_by: expect.any(String) },
      { label: 'Old', gateway_id: null },
    ])
    const id = (await list())[0]?.['id']
    await workspace.rows(
      `update gateway_registration_tokens set expires_at = now() - interval '1 second' where label = 'Old'`,
    )
    const member = await workspace.join('member')
    expect((await request('GET', '/v1/gateways/tokens', member.headers)).status).toBe(403)
    expect((await request('DELETE', `/v1/gateways/tokens/${id}`, member.headers)).status).toBe(403)
    expect((await request('DELETE', `/v1/gateways/tokens/${id}`, workspace.owner.headers)).status).toBe(200)
    expect((await request('DELETE', `/v1/gateways/tokens/${id}`, workspace.owner.headers)).status).toBe(404)
    const identity = newGatewayIdentity()
    expect(await register(expired, identity)).toMatchObject({ status: 410, body: { code: 'token_expired' } })
    expect(await register(withdrawn, identity)).toMatchObject({ status: 410, body: { code: 'token_revoked' } })
    expect(await register('hqreg_guess', identity)).toMatchObject({ status: 401, body: { code: 'token_unknown' } })
    expect((await list()).filter(({ gateway_id }) => gateway_id === null)).toEqual([])

    const good = await newToken({ label: 'Good' })
    const { body } = await register(good, identity)
    expect((await list())[0]).toMatchObject({ label: 'Good', gateway_id: body['gateway_id'] })
    expect(
      (await request('DELETE', `/v1/gateways/tokens/${(await list())[0]?.['id']}`, workspace.owner.headers)).status,
    ).toBe(404)
    const all = JSON.stringify([
      await workspace.rows('select * from gateway_registration_tokens'),
      await workspace.rows('select * from gateway_credentials'),
      await workspace.rows('select * from gateways'),
    ])
    for (const secret of [good, expired, withdrawn, identity.token]) expect(all).not.toContain(secret)
  })

  test.each([
    [{ bearer_hash: undefined }, /bearer token/],
    [{ bearer_hash: 'hqgw_the-token-itself' }, /SHA-256/],
    [{ public_key: undefined }, /public key/],
    [{ public_key: 'x' }, /X25519/],
    [{ label: ' ' }, /label/],
  ])('are told what is missing: %j', async (wrong, message) => {
    const answer = await register(await newToken({}), newGatewayIdentity(), wrong)
    expect(answer.status).toBe(400)
    expect(JSON.stringify(answer.body)).toMatch(message)
  })

  test('register once by token, are known by bearer, and are out when retired', async () => {
    const token = await newToken({ label: 'Cellar' })
    const [one, other] = [newGatewayIdentity(), newGatewayIdentity()]
    const both = await Promise.all([register(token, one, { slug: 'hall' }), register(token, other, { slug: 'hall' })])
    expect(both.map(({ status }) => status).sort()).toEqual([201, 410])
    const identity = both[0]?.status === 201 ? one : other
    const made = both.find(({ status }) => status === 201)?.body ?? {}
    expect(both.find(({ status }) => status === 410)?.body['code']).toBe('token_used')
    const headers = { authorization: `Bearer ${identity.token}` }
    expect(await session(headers)).toMatchObject({ kind: 'gateway', slug: 'hall' })
    const [row] = await workspace.rows('select label, public_key from gateways where id = $1', [made['gateway_id']])
    expect(row).toEqual({ label: 'Cellar', public_key: identity.register.public_key })
    const twin = await register(await newToken({}), newGatewayIdentity(), { slug: 'hall' })
    expect(twin.body['slug']).toBe('hall-2')
    expect(await workspace.rows(`select label from gateways where slug = 'hall-2'`)).toEqual([{ label: 'A machine' }])
    const retired = await fetch(`${workspace.url}/v1/gateways/${String(made['gateway_id'])}`, {
      method: 'DELETE',
      headers: workspace.owner.headers,
    })
    expect(retired.status).toBe(200)
    expect(await session(headers)).toBeNull()
    expect(await session({ authorization: 'Bearer hqgw_guess' })).toBeNull()
  })

  test('the local one is offered a registration, kept over a restart until it is used', async () => {
    const { readFile, stat, writeFile } = await import('node:fs/promises')
    const file = `${workspace.home}/gateway/registration.json`
    const offer = JSON.parse(await readFile(file, 'utf8')) as { token: string; url: string }
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    await workspace.restart()
    expect((JSON.parse(await readFile(file, 'utf8')) as { token: string }).token).toBe(offer.token)
    const identity = newGatewayIdentity()
    const made = await register(offer.token, identity, { slug: 'local' })
    await writeFile(
      `${workspace.home}/gateway/credentials.json`,
      JSON.stringify({ ...made.body, token: identity.token }),
    )
    await workspace.restart()
    await expect(readFile(file, 'utf8')).rejects.toThrow()
  })
})

describe('migrations', () => {
  test('once each; an edited file and a newer database are refused, and say so', async () => {
    const pool = workspace.server.pool
    const migrations = await readMigrations()
    expect((await migrate(pool, migrations)).applied).toEqual([])
    const edited = migrations.map((one) =>
      one.name.startsWith('0003') ? { ...one, sql: `${one.sql}\nselect 1;` } : one,
    )
    await expect(migrate(pool, edited)).rejects.toThrow(/0003_server.sql was edited/)
    await expect(migrate(pool, migrations.slice(0, 1))).rejects.toThrow(/newer HQ/)
    const broken = [
      ...migrations,
      { name: '9999_broken.sql', sql: 'create table half_done (); select no_such_function();' },
    ]
    await expect(migrate(pool, broken)).rejects.toThrow(MigrationError)
    expect(await workspace.rows(`select 1 from pg_tables where tablename = 'half_done'`)).toEqual([])
    expect((await migrate(pool, migrations)).applied).toEqual([])
  })
})
