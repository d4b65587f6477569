import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { refusalOf } from './addresses.ts'
import { createGuardedFetch, type GuardedFetchOptions } from './guarded-fetch.ts'

let server: Server
let port: number
let asked: { url: string | undefined; headers: IncomingMessage['headers'] }[]
let answer: (request: IncomingMessage, response: ServerResponse) => void

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push({ url: request.url, headers: request.headers })
    answer(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  asked = []
  answer = (_request, response) => response.setHeader('content-type', 'text/plain').end('a page')
})

/** Names of a made-up internet; our test server is its only public machine. */
const fetcher = (more: GuardedFetchOptions = {}) =>
  createGuardedFetch({
    resolve: async (name) => {
      if (name === 'public.test') return ['127.0.0.1']
      if (name === 'private.test') return ['10.0.0.7']
      if (name === 'both.test') return ['127.0.0.1', '192.168.0.1']
      return []
    },
    refusal: (address) => (address === '127.0.0.1' ? undefined : refusalOf(address)),
    ...more,
  })
const at = (path: string, host = 'public.test'): string => `http://${host}:${port}${path}`

test('a page is read; nothing of ours goes with the request', async () => {
  expect(await fetcher()(at('/page'))).toEqual({
    ok: true,
    page: { url: at('/page'), status: 200, contentType: 'text/plain', text: 'a page', truncated: false },
  })
  expect(Object.keys(asked[0]?.headers ?? {}).sort()).toEqual([
    'accept',
    'accept-encoding',
    'connection',
    'host',
    'user-agent',
  ])
})

test('G1: names and addresses inside are refused before anything is sent; one bad address of several is enough', async () => {
  const real = createGuardedFetch({ resolve: async () => ['127.0.0.1'] })
  for (const [fetch, url] of [
    [fetcher(), at('/', 'private.test')],
    [fetcher(), at('/', 'both.test')],
    [fetcher(), 'http://[::1]/'],
    [fetcher(), 'http://169.254.169.254/latest/meta-data/'],
    [real, at('/')],
    [real, `http://127.0.0.1:${port}/`],
    [real, `http://2130706433:${port}/`],
    [real, `http://[::ffff:127.0.0.1]:${port}/`],
    [createGuardedFetch(), `http://localhost:${port}/`],
  ] as const) {
    const result = await fetch(url)
    expect([url, result]).toEqual([url, { ok: false, message: expect.stringMatching(/leads to .*Only public/) }])
  }
  expect(asked).toEqual([])
})

test('G1: a name that says something else when it is asked again changes nothing: it is asked once, and that address is connected to', async () => {
  let times = 0
  const fetch = fetcher({ resolve: async () => (times++ === 0 ? ['127.0.0.1'] : ['10.0.0.7']) })
  expect(await fetch(at('/', 'rebinding.test'))).toMatchObject({ ok: true })
  expect(times).toBe(1)
  // The next request asks anew, and is refused.
  expect(await fetch(at('/', 'rebinding.test'))).toMatchObject({ ok: false })
})

test('G2: redirects are followed and looked at one by one; a ring of them ends', async () => {
  answer = ({ url }, response) => {
    const next: Record<string, string> = {
      '/1': '/2',
      '/inside': at('/secret', 'private.test'),
      '/metadata': 'http://169.254.169.254/',
      '/file': 'file:///etc/passwd',
      '/ring': '/ring',
    }
    const to = next[url ?? '']
    if (to) response.writeHead(302, { location: to, 'set-cookie': 'a=b' }).end()
    else response.setHeader('content-type', 'text/plain').end('there')
  }
  expect(await fetcher()(at('/1'))).toMatchObject({ ok: true, page: { url: at('/2'), text: 'there' } })
  expect(asked.at(-1)?.headers).not.toHaveProperty('cookie')
  expect(asked.at(-1)?.headers).not.toHaveProperty('referer')
  for (const [path, why] of [
    ['/inside', /10\.0\.0\.7/],
    ['/metadata', /169\.254/],
    ['/file', /http and https/],
    ['/ring', /redirects/],
  ] as const)
    expect(await fetcher()(at(path))).toEqual({ ok: false, message: expect.stringMatching(why) })
})

test('G3: other schemes, credentials, ports of other services, and nonsense', async () => {
  for (const url of [
    'ftp://public.test/',
    'file:///etc/passwd',
    'gopher://public.test/',
    'javascript:1',
    'data:text/plain,x',
    'http://me:pw@public.test/',
    'http://public.test:22/',
    'http://public.test:25/',
    'nonsense',
    '',
  ])
    expect([url, (await fetcher()(url)).ok]).toEqual([url, false])
  expect(asked).toEqual([])
})

test('G4: a large page is cut, a bomb is not unpacked to its end, an endless one ends, other than text is refused', async () => {
  const maxBytes = 100_000
  answer = ({ url }, response) => {
    if (url === '/image') return response.setHeader('content-type', 'image/png').end('png')
    response.setHeader('content-type', 'text/html; charset=iso-8859-1')
    if (url === '/large') return response.end('x'.repeat(300_000))
    if (url === '/bomb') return response.setHeader('content-encoding', 'gzip').end(gzipSync('0'.repeat(50_000_000)))
    if (url === '/broken') return response.setHeader('content-encoding', 'gzip').end('this is not packed')
    if (url === '/latin') return response.end(Buffer.from([0x67, 0x72, 0xfc, 0x6e]))
    response.write('and so on')
  }
  const fetch = fetcher({ maxBytes, timeoutMs: 3_000 })
  for (const path of ['/large', '/bomb']) {
    const result = await fetch(at(path))
    expect(result).toMatchObject({ ok: true, page: { truncated: true } })
    expect(result.ok && result.page.text.length).toBe(maxBytes)
  }
  expect(await fetch(at('/latin'))).toMatchObject({ ok: true, page: { text: 'grün' } })
  expect(await fetch(at('/broken'))).toMatchObject({ ok: false })
  expect(await fetch(at('/image'))).toEqual({ ok: false, message: 'It is image/png, not text.' })
  expect(await fetcher({ timeoutMs: 300 })(at('/endless'))).toEqual({
    ok: false,
    message: expect.stringMatching(/within 0.3 seconds/),
  })
})

test('G5: stopping it, no such name and nobody there are sentences', async () => {
  answer = () => undefined
  const stop = new AbortController()
  const running = fetcher()(at('/held'), stop.signal)
  await expect.poll(() => asked.length).toBe(1)
  stop.abort()
  expect(await running).toEqual({ ok: false, message: 'It was stopped.' })
  expect(await fetcher()('http://unknown.test/')).toEqual({
    ok: false,
    message: 'There is no machine called unknown.test.',
  })
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port: nobody } = free.address() as AddressInfo
  free.close()
  expect(await fetcher()(`http://public.test:${nobody}/`)).toEqual({
    ok: false,
    message: expect.stringMatching(/ECONNREFUSED/),
  })
})
