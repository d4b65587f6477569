/**
 * Parcels: what an agent takes along when it moves, from its old gateway to its new one. `PUT GET DELETE /v1/gateways/parcels/:sha256`.
 *
 *  1. A gateway puts one for another living gateway of its workspace (`?for=<id>`); only that one fetches it and takes it away. Everybody else gets 404.
 *  2. The server can't read it: its key is sealed for the new gateway. It is whole or not there (`blobs/`, B1).
 *  3. One that nobody fetched for two weeks is cleared away when the next one comes.
 */
import { Hono } from 'hono'
import { type BlobLimits, type Blobs, isSha256, notThere } from '../blobs/blobs.ts'
import { hashToken } from '../database/ids.ts'
import { HttpError } from '../errors.ts'
import { type Ctx, type Env, principalOf, type Services } from './context.ts'

export const PARCEL_LIMITS: BlobLimits = { bytes: 2 * 1024 ** 3, perGateway: 100 }
const KEPT_MS = 14 * 24 * 60 * 60_000

export function parcelRoutes(services: Services, parcels: Blobs): Hono<Env> {
  const app = new Hono<Env>()
  const path = '/v1/gateways/parcels/:sha256'

  async function caller(c: Ctx): Promise<{ gateway_id: string; tenant_id: string }> {
    const principal = await principalOf(c, services)
    if (principal?.kind !== 'gateway') throw notThere()
    return principal
  }

  app.put(path, async (c) => {
    const { gateway_id, tenant_id } = await caller(c)
    const to = c.req.query('for') ?? ''
    const { rows } = await services.pool.query<{ id: string }>(
      'select id from gateways where id::text = $1 and tenant_id = $2 and deleted_at is null',
      [to, tenant_id],
    )
    const [target] = rows
    if (!target) throw new HttpError(404, 'gateway_gone', 'The gateway that this is for was retired, or is none.')
    const { body } = c.req.raw
    if (!body) throw new HttpError(400, 'malformed', 'The parcel is empty.')
    for (const { sha256, at } of await parcels.list(target.id))
      if (Date.parse(at) < Date.now() - KEPT_MS) await parcels.remove(target.id, sha256)
    // No recovery key opens a parcel; that its note names the sender is for whoever looks for it.
    return c.json(await parcels.put(target.id, sha256Of(c), hashToken(`parcel of ${gateway_id}`), body), 201)
  })

  app.get(path, async (c) => {
    const { gateway_id } = await caller(c)
    const found = await parcels.find(gateway_id, sha256Of(c))
    if (!found) throw notThere()
    return new Response(parcels.read(found), {
      headers: { 'content-type': 'application/octet-stream', 'content-length': String(found.size) },
    })
  })

  app.delete(path, async (c) => {
    const { gateway_id } = await caller(c)
    return c.json({ ok: await parcels.remove(gateway_id, sha256Of(c)) })
  })

  return app
}

function sha256Of(c: Ctx): string {
  const sha256 = c.req.param('sha256') ?? ''
  if (!isSha256(sha256)) throw notThere()
  return sha256
}
