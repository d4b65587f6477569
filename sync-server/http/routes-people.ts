/** Routes of people: session, setup, sign-in, invitations. What they do is in `people/`. */
import type { SessionResponse } from '@hq/shared/sync/protocol.ts'
import { Hono } from 'hono'
import { HttpError } from '../errors.ts'
import { createAttempts } from '../people/attempts.ts'
import { acceptInvitation, findInvitation, invite, openInvitations, revokeInvitation } from '../people/invitations.ts'
import { orBusy, personByUser } from '../people/principal.ts'
import { setup, setupRequired } from '../people/setup.ts'
import { addressOf, type Ctx, type Env, jsonBody, principalOf, requirePerson, type Services } from './context.ts'

/** The routes of better-auth that are open; all others are 404. */
const AUTH_ROUTES = new Set(['POST /api/auth/sign-out', 'GET /api/auth/get-session', 'POST /api/auth/change-password'])

export function peopleRoutes(services: Services): Hono<Env> {
  const { pool, auth, tenantId } = services
  const attempts = createAttempts()
  const app = new Hono<Env>()

  const signIn = (email: string, password: string, c: Ctx): Promise<Response> =>
    auth.api.signInEmail({ body: { email, password, rememberMe: true }, headers: c.req.raw.headers, asResponse: true })

  /** Signs in and answers `{ok: true}` with the session's cookie. */
  const welcome = async (c: Ctx, { email, password }: { email: string; password: string }): Promise<Response> => {
    const session = await signIn(email, password, c)
    const headers = new Headers({ 'content-type': 'application/json' })
    for (const cookie of session.headers.getSetCookie()) headers.append('set-cookie', cookie)
    services.accessChanges.announce()
    return new Response(JSON.stringify({ ok: true }), { status: 201, headers })
  }

  app.get('/v1/session', async (c) => {
    // Once a day better-auth renews the session; its cookie must then be renewed as well.
    if (!c.env?.inProcess && c.req.header('cookie')?.includes('hq.session_token')) {
      const { headers } = await orBusy(auth.api.getSession({ headers: c.req.raw.headers, returnHeaders: true }))
      for (const cookie of headers.getSetCookie()) c.header('set-cookie', cookie, { append: true })
    }
    const body: SessionResponse = {
      principal: await principalOf(c, services),
      setup_required: await setupRequired(pool, tenantId),
      server: { version: services.version, schema_version: services.schemaVersion, epoch: services.epoch },
    }
    return c.json(body)
  })

  app.post('/v1/setup', async (c) => welcome(c, await setup(pool, tenantId, await jsonBody(c))))

  app.post('/api/auth/sign-in/email', async (c) => {
    const { email, password } = (await jsonBody(c)) as { email?: unknown; password?: unknown }
    if (typeof email !== 'string' || typeof password !== 'string' || !email || !password) {
      throw new HttpError(400, 'invalid', 'Please give your email address and your password.')
    }
    const address = addressOf(c)
    const wait = attempts.wait(address, email, Date.now())
    if (wait > 0) {
      const minutes = Math.ceil(wait / 60)
      const message = `Too many attempts. Please try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`
      throw new HttpError(429, 'too_many_attempts', message, {}, { 'retry-after': String(wait) })
    }
    const response = await signIn(email.trim().toLowerCase(), password, c)
    if (!response.ok) {
      attempts.failed(address, email, Date.now())
      throw new HttpError(
        401,
        'wrong_password',
        'That email address and password do not belong together. Please check both.',
      )
    }
    attempts.succeeded(address, email)
    const { user } = (await response.clone().json()) as { user: { id: string } }
    if (!(await personByUser(pool, user.id))) {
      throw new HttpError(403, 'removed', 'You no longer belong to this workspace. Ask an admin for a new invitation.')
    }
    return response
  })

  app.on(['GET', 'POST'], '/api/auth/*', async (c) => {
    if (!AUTH_ROUTES.has(`${c.req.method} ${c.req.path}`))
      throw new HttpError(404, 'not_found', 'There is no such route.')
    const response = await auth.handler(c.req.raw)
    // A session may have ended: its sockets close now, not at their next check half a minute later.
    if (c.req.method === 'POST') services.accessChanges.announce()
    return response
  })

  app.post('/v1/invitations', async (c) => {
    const person = await requirePerson(c, services, 'admin')
    const { id, token, expires_at } = await invite(pool, person, await jsonBody(c))
    const origin = c.req.header('origin') ?? new URL(c.req.url).origin
    return c.json({ id, url: `${origin}/join/${token}`, expires_at }, 201)
  })
  app.get('/v1/invitations', async (c) => {
    const person = await requirePerson(c, services, 'admin')
    return c.json(await openInvitations(pool, person.tenant_id))
  })
  app.delete('/v1/invitations/:id{[0-9a-f-]{36}}', async (c) => {
    const person = await requirePerson(c, services, 'admin')
    await revokeInvitation(pool, person.tenant_id, c.req.param('id'))
    return c.json({ ok: true })
  })
  app.get('/v1/invitations/by-token/:token', async (c) => {
    const { workspace_name, invited_by, email, role, expires_at } = await findInvitation(pool, c.req.param('token'))
    return c.json({ workspace_name, invited_by, email, role, expires_at })
  })
  app.post('/v1/invitations/by-token/:token/accept', async (c) =>
    welcome(c, await acceptInvitation(pool, c.req.param('token'), await jsonBody(c))),
  )
  return app
}
