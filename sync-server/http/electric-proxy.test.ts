/** The proxy to a real Electric, against a server that notes what it is asked and answers as a test wants. */

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ENUMS } from '@hq/shared/schema/enums.ts'
import { tableNames, tables } from '@hq/shared/schema/tables.ts'
import type { Principal } from '@hq/shared/sync/protocol.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { HttpError } from '../errors.ts'
import type { ShapeDefinition } from '../shapes/protocol.ts'
import { createAccessChanges, type Log } from './context.ts'
import { createElectricProxy, electricAddress } from './electric-proxy.ts'
import { createServeShape, shapeDefinition } from './shape-route.ts'

const SECRET = 's3cret'
const asked: IncomingMessage[] = []
const logged: string[] = []
let answer: (response: ServerResponse, request: IncomingMessage) => void
const server = createServer((request, response) => {
  asked.push(request)
  answer(response, request)
})
let url = ''

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
})
beforeEach(() => {
  asked.length = 0
  logged.length = 0
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const tenant_id = '0190a0b0-0000-7000-8000-000000000001'
const gateway: Principal = {
  kind: 'gateway',
  tenant_id,
  gateway_id: '0190a0b0-0000-7000-8000-000000000002',
  slug: 'g',
}
const log: Log = (level, message, fields) => void logged.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`)
const through = (address: string, secret: string | undefined = SECRET) => {
  const replicas = { check: async (_principal: unknown, id: string | undefined) => id ?? '' }
  const serve = createServeShape(createElectricProxy(address, secret, log), replicas, createAccessChanges())
  return (
    search: string,
    signal = new AbortController().signal,
    header: (name: string) => string | undefined = () => undefined,
  ) => serve({ principal: gateway, method: 'GET', search: new URLSearchParams(search), header, signal })
}
const serve = (search: string, signal?: AbortSignal) => through(url)(search, signal)

test('Electric gets our definition and secret, the client Electric’s own headers', async () => {
  answer = (response) => {
    response.writeHead(200, {
      'electric-handle': 'h',
      'electric-offset': '0_0',
      'electric-of-a-later-version': 'x',
      'x-other': 'no',
      connection: 'keep-alive',
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
    'params[1]': tenant_id,
    secret: SECRET,
  })
  expect(response.headers).toEqual({
    'electric-handle': 'h',
    'electric-offset': '0_0',
    'electric-of-a-later-version': 'x',
    'cache-control': 'no-store',
  })
  expect(await new Response(response.body).text()).toBe('[]')
})

test('a compressed answer arrives as text, without the length and encoding of what came over that wire', async () => {
  const { gzipSync } = await import('node:zlib')
  const body = gzipSync('[{"headers":{"control":"up-to-date"}}]')
  answer = (response) => {
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'content-length': body.length,
      etag: '"h:1:2"',
    })
    response.end(body)
  }
  const response = await serve('table=tasks&offset=-1&replica_id=r')
  expect(await new Response(response.body).text()).toBe('[{"headers":{"control":"up-to-date"}}]')
  expect(response.headers).toEqual({
    'content-type': 'application/json',
    etag: '"h:1:2"',
    'cache-control': 'no-store',
  })
})

test('what the reader has is asked with its etag, and a 304 comes back', async () => {
  answer = (response, request) => response.writeHead(request.headers['if-none-match'] === '"e"' ? 304 : 200).end()
  const response = await through(url)('table=tasks&replica_id=r', undefined, (name) =>
    name === 'if-none-match' ? '"e"' : undefined,
  )
  expect(response.status).toBe(304)
})

test('a 409 is handed on as it is, also without a handle', async () => {
  answer = (response) => response.writeHead(409).end('[{"headers":{"control":"must-refetch"}}]')
  const response = await serve('table=tasks&offset=1_0&handle=old&replica_id=r')
  expect(response.status).toBe(409)
  expect(await new Response(response.body).text()).toContain('must-refetch')
})

test('events pass one by one while the stream is open; a reader that goes ends it at Electric too', async () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let write: ((text: string) => void) | undefined
  answer = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.on('close', resolve)
    write = (text) => void response.write(text)
    write('data: one\n\n')
  }
  const reader = new AbortController()
  const response = await serve('table=tasks&offset=1_0&handle=h&live=true&live_sse=true&replica_id=r', reader.signal)
  expect(new URL(asked[0]?.url ?? '', url).searchParams.get('live_sse')).toBe('true')
  const stream = new Response(response.body).body?.getReader()
  const next = async () => new TextDecoder().decode((await stream?.read())?.value)
  // Each is read before the next is written: nothing in between waits for more.
  expect(await next()).toBe('data: one\n\n')
  write?.('data: two\n\n')
  expect(await next()).toBe('data: two\n\n')
  reader.abort()
  await closed
  expect((await stream?.read())?.done).toBe(true)
})

test('a reader that goes before the answer takes its request along', async () => {
  const reader = new AbortController()
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  answer = (response) => {
    response.on('close', resolve)
    reader.abort()
  }
  await expect(serve('table=tasks&offset=-1&replica_id=r', reader.signal)).rejects.toThrow()
  await closed
  expect(logged).toEqual([])
})

test('a connection that Electric closed without a word costs nobody an answer; lost every time is a 503', async () => {
  const used = new Set<Socket>()
  answer = (response, request) => {
    if (used.has(request.socket)) return request.socket.destroy()
    used.add(request.socket)
    response.writeHead(200).end('[]')
  }
  const ask = through(url)
  for (let n = 0; n < 4; n++) {
    const response = await ask('table=tasks&offset=-1&replica_id=r')
    expect(response.status).toBe(200)
    await new Response(response.body).text()
  }
  expect(asked.length).toBeGreaterThan(4)
  answer = (_response, request) => request.socket.destroy()
  expect((await ask('table=tasks&offset=-1&replica_id=r')).status).toBe(503)
})

const answerWith =
  (status: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void =>
    void response.writeHead(status, headers).end('{}')

test.for([
  ['is gone', (): string => 'http://127.0.0.1:1', undefined, 'cannot be reached'],
  ['refuses our secret', (): string => url, answerWith(401), 'ELECTRIC_SECRET'],
  ['is another program', (): string => url, answerWith(404), 'ELECTRIC_URL'],
  ['leads elsewhere', (): string => url, answerWith(302, { location: 'http://127.0.0.1:1/' }), 'ELECTRIC_URL'],
] as const)(
  'an Electric that %s is a 503 that says so, is logged once, and its end too',
  async ([, address, wrong, hint]) => {
    if (wrong) answer = wrong
    const ask = through(address())
    for (let n = 0; n < 3; n++) {
      const response = await ask('table=tasks&offset=-1&replica_id=r')
      expect(response.status).toBe(503)
      expect(response.headers['retry-after']).toBe('2')
      expect(JSON.parse(await new Response(response.body).text())).toMatchObject({ code: 'busy' })
    }
    expect(logged).toHaveLength(1)
    expect(logged[0]).toContain(hint)
    expect(logged[0]).not.toContain(SECRET)
    if (!wrong) return
    answer = (response) => response.writeHead(200).end('[]')
    expect((await ask('table=tasks&offset=-1&replica_id=r')).status).toBe(200)
    expect(logged).toHaveLength(2)
  },
)

test('its own 503 is handed on with a time to try again', async () => {
  answer = (response) => response.writeHead(503, { 'retry-after': '7' }).end('{}')
  expect((await serve('table=tasks&replica_id=r')).headers['retry-after']).toBe('7')
  answer = (response) => response.writeHead(503).end('{}')
  expect((await serve('table=tasks&replica_id=r')).headers['retry-after']).toBe('2')
})

test('an address that is none, or that holds a password, ends the start with words', () => {
  expect(() => createElectricProxy('electric:3000', undefined)).toThrow('ELECTRIC_URL is not an address')
  expect(() => createElectricProxy('http://u:p@127.0.0.1:3000', undefined)).toThrow('ELECTRIC_SECRET')
})

/** Every kind of reader there is. */
const principals: Principal[] = [
  gateway,
  ...ENUMS.role.map(
    (role): Principal => ({
      kind: 'person',
      tenant_id,
      person_id: '0190a0b0-0000-7000-8000-000000000003',
      role,
      name: 'P',
      email: 'p@example.com',
    }),
  ),
]
/** The types whose equality Electric decides as Postgres does, also for changes after the snapshot. */
const EXACT = new Set(['uuid', 'text', 'boolean'])

test('every shape that any reader may have is one that Electric 1.7 serves: equalities of exact types, each with its param', () => {
  let shapes = 0
  for (const principal of principals) {
    for (const table of tableNames) {
      let definition: ShapeDefinition
      try {
        definition = shapeDefinition(table, principal, '0190a0b0-0000-7000-8000-000000000004')
      } catch (error) {
        expect(error, table).toBeInstanceOf(HttpError)
        continue
      }
      shapes++
      expect(definition.table).toMatch(/^[a-z][a-z0-9_]*$/)
      const query = electricAddress(new URL('http://e/v1/shape'), { offset: '-1' }, definition, SECRET).searchParams
      const terms = (query.get('where') ?? '').split(' AND ')
      const columns = tables[table].columns as unknown as Record<string, { spec: { type: string } }>
      terms.forEach((term, index) => {
        const [, column = '', number] = /^"([a-z_]+)" = \$(\d+)$/.exec(term) ?? []
        expect(Number(number), `${table}: ${term}`).toBe(index + 1)
        expect(EXACT, `${table}.${column}`).toContain(columns[column]?.spec.type)
        expect(query.get(`params[${index + 1}]`), `${table}: ${term}`).toMatch(/^[0-9a-f-]{36}$/)
      })
      expect(query.has(`params[${terms.length + 1}]`)).toBe(false)
      expect(terms[0], table).toBe('"tenant_id" = $1')
      expect(query.get('params[1]')).toBe(tenant_id)
    }
  }
  expect(shapes).toBeGreaterThan(3 * tableNames.length)
})

test('columns are quoted as SQL, so that a name of any kind stays one name', () => {
  const definition = { table: 'tasks', columns: ['id', 'Title', 'a,"b'] }
  const query = electricAddress(new URL('http://e/v1/shape'), {}, definition, undefined).searchParams
  expect(query.get('columns')).toBe('"id","Title","a,""b"')
  expect(query.has('secret')).toBe(false)
})
