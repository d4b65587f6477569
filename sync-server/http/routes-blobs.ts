/**
 * Backups of gateways over HTTP: `PUT GET DELETE /v1/blobs/gateway-backups/:sha256`, `GET /v1/blobs/gateway-backups`, and the way back,
 * `POST /v1/gateways/takeover`. What they do is in `blobs/` and `gateways/takeover.ts`.
 *
 *  1. A gateway writes, reads, lists and removes its own. An admin reads. With `Authorization: Bearer hqrk_…`, derived from a recovery key, a machine that
 *     has nothing else lists and reads what this key opens, and takes that gateway's place.
 *  2. Everybody else gets 404, whether it exists or not.
 *  3. Bodies are streams; the general limit of a request does not hold for them, that of `blobs/` does.
 */
import { roleAtLeast } from '@hq/shared/domain/access.ts'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { type Blob, type Blobs, isSha256, notThere } from '../blobs/blobs.ts'
import { hashToken } from '../database/ids.ts'
import { HttpError } from '../errors.ts'
import { takeOver } from '../gateways/takeover.ts'
import { type Ctx, type Env, jsonBody, principalOf, type Services } from './context.ts'

const ROOT = '/v1/blobs/gateway-backups'
const RESTORE_HASH = 'x-hq-restore-hash'
/** A takeover names the mutations of one backup. */
const TAKEOVER_BYTES = 8 * 1024 * 1024

export function blobRoutes(services: Services, blobs: Blobs): Hono<Env> {
  const app = new Hono<Env>()

  async function readable(c: Ctx, sha256: string): Promise<Blob> {
    const restoring = await ofRecoveryKey(c)
    if (restoring) return restoring.find((blob) => blob.sha256 === sha256) ?? missing()
    const principal = await principalOf(c, services)
    if (!principal) return missing()
    if (principal.kind === 'gateway') return (await blobs.find(principal.gateway_id, sha256)) ?? missing()
    if (!roleAtLeast(principal.role, 'admin')) return missing()
    const owner = await blobs.ownerOf(sha256)
    return (owner !== undefined && (await blobs.find(owner, sha256))) || missing()
  }

  /** Undefined: no recovery key was given. */
  async function ofRecoveryKey(c: Ctx): Promise<Blob[] | undefined> {
    const token = /^Bearer\s+(hqrk_\S+)$/i.exec(c.req.header('authorization') ?? '')?.[1]
    return token === undefined ? undefined : blobs.ofKey(hashToken(token))
  }

  async function ownGateway(c: Ctx): Promise<string> {
    const principal = await principalOf(c, services)
    return principal?.kind === 'gateway' ? principal.gateway_id : missing()
  }

  app.get(ROOT, async (c) => c.json({ backups: (await ofRecoveryKey(c)) ?? (await blobs.list(await ownGateway(c))) }))

  app.put(`${ROOT}/:sha256`, async (c) => {
    const gatewayId = await ownGateway(c)
    const restoreHash = c.req.header(RESTORE_HASH) ?? ''
    if (!isSha256(restoreHash))
      throw new HttpError(
        400,
        'malformed',
        `The header ${RESTORE_HASH} is missing: it says which recovery key may read this.`,
      )
    const { body } = c.req.raw
    if (!body) throw new HttpError(400, 'malformed', 'The backup is empty.')
    return c.json(await blobs.put(gatewayId, sha256Of(c), restoreHash, body), 201)
  })

  app.get(`${ROOT}/:sha256`, async (c) => {
    const blob = await readable(c, sha256Of(c))
    return new Response(blobs.read(blob), {
      headers: {
        'content-type': 'application/octet-stream',
        'content-length': String(blob.size),
        'content-disposition': `attachment; filename="hq-gateway-${blob.at.slice(0, 10)}.hqbackup"`,
      },
    })
  })

  app.delete(`${ROOT}/:sha256`, async (c) => {
    if (!(await blobs.remove(await ownGateway(c), sha256Of(c)))) missing()
    return c.json({ ok: true })
  })

  app.post('/v1/gateways/takeover', bodyLimit({ maxSize: TAKEOVER_BYTES, onError: tooMuch }), async (c) => {
    const [newest] = (await ofRecoveryKey(c)) ?? []
    const gatewayId = newest?.gateway_id ?? (await ownGateway(c))
    const done = await takeOver(services.pool, gatewayId, await jsonBody(c))
    services.accessChanges.announce()
    services.log('info', 'A gateway was restored from a backup; its former credentials have ended.', {
      gateway_id: done.gateway_id,
      slug: done.slug,
    })
    return c.json(done)
  })

  return app
}

const tooMuch = (): never => {
  throw new HttpError(413, 'too_large', 'That backup has more waiting changes than can be asked about at once.')
}

const missing = (): never => {
  throw notThere()
}

function sha256Of(c: Ctx): string {
  const sha256 = c.req.param('sha256') ?? ''
  return isSha256(sha256) ? sha256 : missing()
}
