/** Routes of gateways. What they do is in `gateways/`. */
import { Hono } from 'hono'
import {
  createRegistrationToken,
  listRegistrationTokens,
  registerGateway,
  retireGateway,
  revokeRegistrationToken,
} from '../gateways/gateways.ts'
import { type Env, jsonBody, requirePerson, type Services } from './context.ts'

export function gatewayRoutes(services: Services, publicUrl: string | undefined): Hono<Env> {
  const { pool } = services
  const app = new Hono<Env>()

  app.post('/v1/gateways/tokens', async (c) => {
    const person = await requirePerson(c, services, 'admin')
    const { id, token, expires_at } = await createRegistrationToken(pool, person, await jsonBody(c))
    // The address under which this person reaches HQ will do for the gateway; without a browser, the one that HQ is told to have.
    const origin = c.req.header('origin') ?? publicUrl ?? c.req.url
    return c.json({ id, token, expires_at, command: installerCommand(origin, token) }, 201)
  })
  app.get('/v1/gateways/tokens', async (c) => {
    const person = await requirePerson(c, services, 'admin')
    return c.json({ tokens: await listRegistrationTokens(pool, person.tenant_id) })
  })
  app.delete('/v1/gateways/tokens/:id{[0-9a-f-]{36}}', async (c) => {
    const person = await requirePerson(c, services, 'admin')
    await revokeRegistrationToken(pool, person.tenant_id, c.req.param('id'))
    return c.json({ ok: true })
  })
  app.post('/v1/gateways/register', async (c) => {
    const { registration, isNew } = await registerGateway(pool, await jsonBody(c))
    services.log('info', isNew ? 'A gateway registered.' : 'A gateway asked again for its registration.', {
      gateway_id: registration.gateway_id,
      slug: registration.slug,
    })
    return c.json(registration, isNew ? 201 : 200)
  })
  app.delete('/v1/gateways/:id{[0-9a-f-]{36}}', async (c) => {
    const person = await requirePerson(c, services, 'admin')
    await retireGateway(pool, person.tenant_id, c.req.param('id'), { leaveAgents: c.req.query('agents') === 'leave' })
    services.accessChanges.announce()
    return c.json({ ok: true })
  })
  return app
}

/**
 * One line for a shell, in a checkout of this project on the gateway's machine. The token is in the environment of the short first step only: never an
 * argument, which every user of a machine sees, and not in what the gateway and its agents inherit.
 */
const installerCommand = (origin: string, token: string): string =>
  `HQ_SERVER_URL=${new URL(origin).origin} HQ_REGISTRATION_TOKEN=${token} npm run gateway:register && npm run gateway`
