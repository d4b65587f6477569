/**
 * Devices: taking one out of the workspace, and letting it in again.
 *
 * `replicas` is written by the server alone (no client may say of itself when it was last seen), so this is a route and needs the network.
 *
 *  1. A person may do it with their own devices, an admin with everybody's. Gateways are retired instead (routes-gateways.ts).
 *  2. It counts at once: what is known of access is forgotten, and the device's next request gets 403 `revoked`. What waits on it stays there.
 *  3. Doing it twice is the same as once.
 */
import { roleAtLeast } from '@hq/shared/domain/access.ts'
import { Hono } from 'hono'
import { HttpError } from '../errors.ts'
import { type Env, requirePerson, type Services } from './context.ts'

interface DeviceRow {
  readonly tenant_id: string
  readonly person_id: string | null
  readonly kind: string
}

export function deviceRoutes(services: Services): Hono<Env> {
  const { pool } = services
  const app = new Hono<Env>()
  const notHere = () => new HttpError(404, 'not_found', 'There is no such device in this workspace.')

  for (const [action, value] of [
    ['revoke', 'coalesce(revoked_at, now())'],
    ['restore', 'null'],
  ] as const) {
    app.post(`/v1/devices/:id{[0-9a-f-]{36}}/${action}`, async (c) => {
      const person = await requirePerson(c, services, 'viewer')
      const id = c.req.param('id')
      const { rows } = await pool.query<DeviceRow>('select tenant_id, person_id, kind from replicas where id = $1', [
        id,
      ])
      const device = rows[0]
      if (!device || device.tenant_id !== person.tenant_id) throw notHere()
      const own = device.person_id === person.person_id
      if (!own && !roleAtLeast(person.role, 'admin'))
        throw new HttpError(403, 'forbidden', 'This is somebody else’s device. An admin of the workspace can do that.')
      if (device.kind !== 'browser')
        throw new HttpError(409, 'invalid', 'This is a gateway. Retire it under Gateways instead.')
      // Nobody locks themselves out for good by what another person has decided.
      if (action === 'restore' && !roleAtLeast(person.role, 'admin'))
        throw new HttpError(403, 'forbidden', 'Only an admin of the workspace can let a device in again.')
      await pool.query(`update replicas set revoked_at = ${value}, updated_at = now() where id = $1`, [id])
      services.accessChanges.announce()
      services.log('info', `A device was ${action}d.`, { replica_id: id, by: person.person_id })
      return c.json({ ok: true })
    })
  }
  return app
}
