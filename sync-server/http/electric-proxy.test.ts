/** The proxy to a real Electric, against a server that notes what it is asked. */

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Principal } from '@hq/shared/sync/protocol.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createElectricProxy } from './electric-proxy.ts'
import { createServeShape } from './shape-route.ts'

const asked: IncomingMessage[] = []
let answer: (response: ServerResponse) => void
const server = createServer((request, response) => {
  asked.push(request)
  answer(response)
})
let url = ''

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const principal: Principal = {
  kind: 'gateway',
  tenant_id: '0190a0b0-0000-7000-8000-000000000001',
  gateway_id: '0190a0b0-0000-7000-8000-000000000002',
  slug: 'g',
}
const serve = (search: string, signal = new AbortController().signal) =>
  createServeShape(createElectricProxy(url, 's3cret'), { check: async (_principal, id) => id ?? '' })({
    principal,
    method: 'GET',
    search: new URLSearchParams(search),
    header: () => undefined,
    signal,
  })

test('Electric gets our definition and secret, the client Electric’s own headers', async () => {
  answer = (response) => {
    response.writeHead(200, {
      'electric-handle': 'h',
      'electric-offset': '0_0',
      'x-other': 'no',
      'cache-control': 'public',
    })
    response.end('[]')
  }
  const response = await serve(
    'table=tasks&offset=-1&replica_id=r&where=true&params[1]=evil&columns=id&secret=guess&subset__where=true',
  )
  const query = new URL(asked.at(-1)?.url ?? '', url).searchParams
  expect(Object.fromEntries(query)).toEqual({
    table: 'tasks',
    offset: '-1',
    replica: 'full',
    where: '"tenant_id" = $1',
    'params[1]': principal.tenant_id,
    secret: 's3cret',
  })
  expect(response.headers).toEqual({ 'electric-handle': 'h', 'electric-offset': '0_0', 'cache-control': 'no-store' })
  expect(await new Response(response.body).text()).toBe('[]')
})

test('a reader that goes takes its request along; an Electric that is gone is a 503', async () => {
  const reader = new AbortController()
  answer = () => reader.abort()
  await expect(serve('table=tasks&offset=-1&replica_id=r', reader.signal)).rejects.toThrow()
  const gone = createServeShape(createElectricProxy('http://127.0.0.1:1', undefined), {
    check: async (_principal, id) => id ?? '',
  })
  const response = await gone({
    principal,
    method: 'GET',
    search: new URLSearchParams('table=tasks&replica_id=r'),
    header: () => undefined,
    signal: new AbortController().signal,
  })
  expect(response.status).toBe(503)
  expect(await new Response(response.body).text()).toContain('busy')
})
