/**
 * The engine as a Hono app: `/v1/shape` (GET, POST, HEAD, DELETE, OPTIONS), `/v1/health`, `/`. No authentication.
 *
 *  1. Doubled and trailing slashes name the same routes, decided before any handler runs.
 *  2. Replies are open to other origins and expose what clients read.
 */
import { Hono } from 'hono'
import type { Engine } from './engine.ts'
import { ELECTRIC_HEADERS, type ShapeResponse } from './protocol.ts'

const CORS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': ELECTRIC_HEADERS.join(','),
  'access-control-allow-methods': 'GET, POST, HEAD, DELETE, OPTIONS',
}
const MAX_BODY_BYTES = 1024 * 1024

const normalisedPath = (request: Request): string => {
  const { pathname } = new URL(request.url)
  let path = pathname
  try {
    path = decodeURIComponent(pathname)
  } catch {
    // An undecodable path matches no route as it is.
  }
  return path.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1')
}

export const toHono = (engine: Engine): Hono => {
  const app = new Hono({ getPath: normalisedPath })

  app.on(['GET', 'POST', 'DELETE'], '/v1/shape', async (context) => {
    const { req } = context
    const params: Record<string, string> = {}
    for (const [name, value] of new URL(req.raw.url).searchParams) params[name] = value
    let body: unknown
    if (req.method === 'POST') {
      if (Number(req.header('content-length') ?? 0) > MAX_BODY_BYTES)
        return context.json({ message: 'Request body too large' }, 413, CORS)
      try {
        body = JSON.parse((await req.text()) || '{}')
      } catch {
        return context.json({ message: 'Invalid request', errors: { body: ['is not JSON'] } }, 400, {
          ...CORS,
          'cache-control': 'no-store',
        })
      }
    }
    const response = await engine.handle({
      method: req.method,
      params,
      body,
      headers: { 'if-none-match': req.header('if-none-match') },
      signal: req.raw.signal,
    })
    return toResponse(response)
  })

  app.options('/v1/shape', (context) => {
    const asked = context.req.header('access-control-request-headers')
    return new Response(null, {
      status: 204,
      headers: {
        ...CORS,
        'access-control-max-age': '86400',
        ...(asked ? { 'access-control-allow-headers': asked } : {}),
      },
    })
  })

  app.get('/v1/health', (context) => {
    const { status } = engine.status()
    return context.json({ status }, status === 'active' ? 200 : 202, { ...CORS, 'cache-control': 'no-store' })
  })
  app.get('/', () => new Response(null, { status: 200 }))
  app.notFound((context) => context.json({ message: 'Not found' }, 404, CORS))
  return app
}

const toResponse = ({ status, headers, body }: ShapeResponse): Response =>
  new Response(body, { status, headers: { ...CORS, ...headers } })
