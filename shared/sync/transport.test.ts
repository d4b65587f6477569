/** The multiplexer (transport.ts) over sockets that the test holds in its hand. */
import { afterEach, expect, test } from 'vitest'
import { CLOSE, type ClientFrame, SYNC_SUBPROTOCOL } from './protocol.ts'
import { until } from './testing/harness.ts'
import { createMultiplexer, type Multiplexer, type Timing, type WebSocketLike } from './transport.ts'

type Listener = (event: never) => void

/** One end of a connection; the test plays the server. */
class TestSocket implements WebSocketLike {
  readonly sent: ClientFrame[] = []
  closedWith: number | undefined
  readonly #listeners = new Map<string, Listener[]>()
  send(data: string): void {
    this.sent.push(JSON.parse(data) as ClientFrame)
  }
  close(code = 1005): void {
    this.closedWith ??= code
  }
  addEventListener(type: string, listener: Listener): void {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener])
  }
  emit(type: 'open' | 'message' | 'close' | 'error', event: object = {}): void {
    for (const listener of this.#listeners.get(type) ?? []) listener(event as never)
  }
  answer(id: number, status = 200, body = 'ok'): void {
    this.emit('message', { data: JSON.stringify({ t: 'res', id, status, headers: { 'x-a': 'b' }, body }) })
  }
  requests(): (ClientFrame & { t: 'req' })[] {
    return this.sent.filter((frame): frame is ClientFrame & { t: 'req' } => frame.t === 'req')
  }
}

const open: Multiplexer[] = []
afterEach(() => {
  for (const each of open.splice(0)) each.close()
})
const start = (timing: Partial<Timing> = {}) => {
  const sockets: TestSocket[] = []
  const multiplexer = createMultiplexer({
    url: 'ws://server.test/v1/sync',
    openSocket: (url, protocol) => {
      expect([url, protocol]).toEqual(['ws://server.test/v1/sync', SYNC_SUBPROTOCOL])
      const socket = new TestSocket()
      sockets.push(socket)
      return socket
    },
    timing: { reconnect: () => 20, ...timing },
  })
  open.push(multiplexer)
  const socket = (): TestSocket => {
    const last = sockets.at(-1)
    if (!last) throw new Error('no socket yet')
    return last
  }
  return { multiplexer, sockets, socket }
}
const url = 'http://server.test/v1/shape?table=tasks&offset=-1'

test('T1: requests wait for the first connection and share it; answers find their request', async () => {
  const { multiplexer, sockets, socket } = start()
  const first = multiplexer.fetch(url, { headers: { 'X-Hq-Replica': 'r' } })
  const second = multiplexer.fetch('http://server.test/v1/mutations', { method: 'POST', body: '{}' })
  expect(socket().sent).toEqual([])
  expect(multiplexer.state()).toBe('connecting')
  socket().emit('open')
  expect(multiplexer.state()).toBe('online')
  expect(sockets).toHaveLength(1)
  const [a, b] = socket().requests()
  expect(a).toMatchObject({ method: 'GET', path: '/v1/shape?table=tasks&offset=-1', headers: { 'x-hq-replica': 'r' } })
  expect(b).toMatchObject({ method: 'POST', path: '/v1/mutations', body: '{}' })
  socket().answer(b?.id ?? 0, 409, '{"code":"out_of_order"}')
  socket().answer(a?.id ?? 0)
  expect((await second).status).toBe(409)
  const response = await first
  expect([response.status, response.headers.get('x-a'), await response.text()]).toEqual([200, 'b', 'ok'])
})

test('T2: when the connection breaks, what waits rejects like a missing network, and so does what comes before the next one', async () => {
  const { multiplexer, sockets, socket } = start({ reconnect: () => 60 })
  socket().emit('open')
  const waiting = multiplexer.fetch(url)
  socket().emit('close', { code: 1006 })
  await expect(waiting).rejects.toThrow(TypeError)
  await expect(multiplexer.fetch(url)).rejects.toThrow(TypeError)
  expect(multiplexer.state()).toBe('offline')
  let online = 0
  multiplexer.onOnline(() => online++)
  await until(() => sockets.length === 2)
  socket().emit('open')
  expect(online).toBe(1)
})

test('T3: a connection on which nothing is heard any more is given up; pings keep a quiet one', async () => {
  const { sockets, socket, multiplexer } = start({ pingEvery: 20, deadAfter: 100 })
  socket().emit('open')
  const quiet = socket()
  const pong = setInterval(() => {
    const ping = quiet.sent.findLast((frame) => frame.t === 'ping')
    if (ping?.t === 'ping') quiet.emit('message', { data: JSON.stringify({ t: 'pong', n: ping.n }) })
  }, 10)
  await until(() => quiet.sent.filter((frame) => frame.t === 'ping').length > 8)
  expect(multiplexer.state()).toBe('online')
  clearInterval(pong)
  const waiting = multiplexer.fetch(url)
  await expect(waiting).rejects.toThrow('fell silent')
  await until(() => sockets.length === 2)
  expect(quiet.closedWith).toBeDefined()
})

test('T3: wake connects at once, and again only once', async () => {
  const { sockets, socket, multiplexer } = start({ reconnect: () => 60_000 })
  socket().emit('open')
  socket().emit('close', { code: 1006 })
  expect(sockets).toHaveLength(1)
  multiplexer.wake()
  multiplexer.wake()
  expect(sockets).toHaveLength(2)
})

test('T3: a connection that never opens is given up', async () => {
  const { sockets, multiplexer } = start({ connect: 30 })
  const waiting = multiplexer.fetch(url)
  await expect(waiting).rejects.toThrow('could not be opened in time')
  await until(() => sockets.length === 2)
})

test('T4: aborting tells the server, and a late answer is thrown away', async () => {
  const { socket, multiplexer } = start()
  socket().emit('open')
  const abort = new AbortController()
  const request = multiplexer.fetch(url, { signal: abort.signal })
  const [frame] = socket().requests()
  abort.abort()
  await expect(request).rejects.toThrow('aborted')
  expect(socket().sent.at(-1)).toEqual({ t: 'cancel', id: frame?.id })
  socket().answer(frame?.id ?? 0)
  await expect(multiplexer.fetch(url, { signal: abort.signal })).rejects.toThrow('aborted')
  expect(socket().requests()).toHaveLength(1)
})

test('T4: a request without an answer times out as a missing network', async () => {
  const { socket, multiplexer } = start({ request: 30 })
  socket().emit('open')
  await expect(multiplexer.fetch(url)).rejects.toThrow(TypeError)
  expect(socket().sent.at(-1)?.t).toBe('cancel')
})

test('T5: a socket closed for lack of rights answers 401 until a connection succeeds', async () => {
  const { sockets, socket, multiplexer } = start()
  socket().emit('open')
  const waiting = multiplexer.fetch(url)
  socket().emit('close', { code: CLOSE.unauthenticated })
  expect((await waiting).status).toBe(401)
  expect((await multiplexer.fetch(url)).status).toBe(401)
  await until(() => sockets.length === 2)
  socket().emit('open')
  const request = multiplexer.fetch(url)
  socket().answer(socket().requests()[0]?.id ?? 0)
  expect((await request).status).toBe(200)
})

test('frames that cannot be read are passed over', async () => {
  const { socket, multiplexer } = start()
  socket().emit('open')
  const request = multiplexer.fetch(url)
  for (const data of ['no json', '{"t":"new"}', '[]']) socket().emit('message', { data })
  socket().answer(socket().requests()[0]?.id ?? 0, 204)
  expect((await request).status).toBe(204)
})
