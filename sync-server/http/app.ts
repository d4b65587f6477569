/**
 * The HTTP application: what is the same for all routes, and in which order they are asked.
 *
 *  1. Every error of `/v1` and `/api` is JSON `{code, message}`; what went wrong inside is logged, not told.
 *  2. Host and origin are checked before any route (security.ts); security headers are on every response.
 *  3. What is no route is the app; under `/v1` and `/api` it is a JSON 404.
 */
import { LIMITS } from '@hq/shared/sync/protocol.ts'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { Blobs } from '../blobs/blobs.ts'
import { HttpError, knownError } from '../errors.ts'
import type { Push } from '../mutations/push.ts'
import { type Env, requirePrincipal, type Services } from './context.ts'
import { blobRoutes } from './routes-blobs.ts'
import { deviceRoutes } from './routes-devices.ts'
import { gatewayRoutes } from './routes-gateways.ts'
import { parcelRoutes } from './routes-parcels.ts'
import { peopleRoutes } from './routes-people.ts'
import { isOwnHost, isOwnOrigin, isUnsafe, SECURITY_HEADERS, type Site } from './security.ts'
import type { ServeShape } from './shape-route.ts'
import { serveApp } from './static.ts'

export interface AppOptions {
  readonly site: Site
  readonly services: Services
  readonly serveShape: ServeShape
  readonly push: Push
  readonly blobs: Blobs
  /** What agents take along when they move (routes-parcels.ts). */
  readonly parcels: Blobs
  readonly appFolder: string
  /** More facts for `/v1/health`. */
  readonly health: () => Readonly<Record<string, unknown>>
}

export function createApp({
  site,
  services,
  serveShape,
  push,
  blobs,
  parcels,
  appFolder,
  health,
}: AppOptions): Hono<Env> {
  const app = new Hono<Env>()

  app.onError((error, c) => {
    const known = knownError(error)
    if (known) return c.json(known.body, known.status, known.headers)
    services.log('error', 'A request failed.', {
      method: c.req.method,
      path: c.req.path,
      error: error.stack ?? String(error),
    })
    return c.json({ code: 'internal', message: 'Something went wrong in the server; its log says what.' }, 500)
  })

  app.use('*', async (c, next) => {
    if (!c.env?.inProcess) {
      if (!isOwnHost(site, c.req.header('host'))) {
        throw new HttpError(
          421,
          'wrong_host',
          'This server does not go by that name. Set HQ_PUBLIC_URL to the address that people use.',
        )
      }
      const { headers } = c.req.raw
      if (isUnsafe(c.req.method) && !headers.has('authorization') && !isOwnOrigin(headers)) {
        throw new HttpError(403, 'wrong_origin', 'This request was made by another site, and was refused.')
      }
    }
    await next()
    for (const [name, value] of Object.entries(SECURITY_HEADERS))
      if (!c.res.headers.has(name)) c.res.headers.set(name, value)
    const isApi = c.req.path.startsWith('/v1/') || c.req.path.startsWith('/api/')
    if (isApi && !c.res.headers.has('cache-control')) c.res.headers.set('cache-control', 'no-store')
  })

  // Before the limit of a request: these are files.
  app.route('/', blobRoutes(services, blobs))
  app.route('/', parcelRoutes(services, parcels))
  app.use(
    '*',
    bodyLimit({
      maxSize: LIMITS.pushBytes,
      onError: () => {
        throw new HttpError(
          413,
          'too_large',
          `A request may have ${LIMITS.pushBytes / 1024 / 1024} MiB; this one has more. Send less at once.`,
          {},
          // The rest of the body was not read: this connection can't be used again.
          { connection: 'close' },
        )
      },
    }),
  )

  app.get('/v1/health', (c) => c.json({ status: 'active', service: 'hq', version: services.version, ...health() }))
  app.route('/', peopleRoutes(services))
  app.route('/', gatewayRoutes(services, site.publicUrl))
  app.route('/', deviceRoutes(services))

  app.all('/v1/shape', async (c) => {
    const principal = await requirePrincipal(c, services)
    const { status, headers, body } = await serveShape({
      principal,
      method: c.req.method,
      search: new URL(c.req.url).searchParams,
      header: (name) => c.req.header(name),
      signal: c.req.raw.signal,
      authenticate: () => services.authenticate(c.req.raw.headers),
    })
    return new Response(body, { status, headers: { ...headers } })
  })

  app.post('/v1/mutations', async (c) => {
    const principal = await requirePrincipal(c, services)
    return c.json(await push(principal, await c.req.text(), c.req.header('x-hq-label')))
  })

  app.all('/v1/*', () => notFound())
  app.all('/api/*', () => notFound())
  app.all('*', (c) => serveApp(appFolder, c.req.raw))
  return app
}

function notFound(): never {
  throw new HttpError(404, 'not_found', 'There is no such route.')
}
