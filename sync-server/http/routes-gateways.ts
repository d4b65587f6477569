/** Routes of gateways. What they do is in `gateways/`. */
import { Hono } from 'hono'
import { createRegistrationToken, registerGateway, retireGateway } from '../gateways/gateways.ts'
import { type Env, jsonBody, requirePerson, type Services } from './context.ts'

export function gatewayRoutes(services: Services): Hono<Env> {
  const { pool } = services
  const app = new Hono<Env>()

  app.post('/v1/gateways/tokens', async (c) => {
    const person = await requirePerson(c, services, 'admin')
    const { token, expires_at } = await createRegistrationToken(pool, person, await jsonBody(c))
    const origin = c.req.header('origin') ?? new URL(c.req.url).origin
    // The token goes by the environment: an argument would be seen in the list of processes.
    return c.json(
      {
        token,
        expires_at,
        command: `HQ_SERVER_URL=${origin} HQ_REGISTRATION_TOKEN=${token} node scripts/run.mjs gateway-node/main.ts`,
      },
      201,
    )
  })
  app.post('/v1/gateways/register', async (c) => {
    const registration = await registerGateway(pool, await jsonBody(c))
    services.log('info', 'A gateway registered.', { gateway_id: registration.gateway_id, slug: registration.slug })
    return c.json(registration, 201)
  })
  app.delete('/v1/gateways/:id{[0-9a-f-]{36}}', async (c) => {
    const person = await requirePerson(c, services, 'admin')
    await retireGateway(pool, person.tenant_id, c.req.param('id'))
    services.accessChanges.announce()
    return c.json({ ok: true })
  })
  return app
}
