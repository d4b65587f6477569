/** The WebSocket to OpenClaw against a server that goes wrong on demand (socket.ts, S1–S4). */
import type { AddressInfo } from 'node:net'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { ConnectionLost, connectOpenClaw, RequestRefused, type SocketOptions } from './socket.ts'

type Handler = (request: { id: string; method: string; params: Record<string, unknown> }, socket: WebSocket) => void

async function startPeer(handle: Handler) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await new Promise((resolve) => server.once('listening', resolve))
  const sockets = new Set<WebSocket>()
  let boot = 1
  const greet = (socket: WebSocket, id: string): void =>
    socket.send(
      JSON.stringify({
        type: 'res',
        id,
        ok: true,
        payload: { type: 'hello-ok', protocol: 4, server: { bootId: `b${boot}` } },
      }),
    )
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.send(JSON.stringify({ type: 'event', event: 'connect.challenge', payload: { nonce: 'n', ts: 1 } }))
    socket.on('message', (data) => {
      const request = JSON.parse(String(data)) as Parameters<Handler>[0]
      if (request.method === 'connect' && request.params['auth']) greet(socket, request.id)
      else handle(request, socket)
    })
  })
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.terminate()
        server.close(() => resolve())
      }),
  )
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: () => {
      boot += 1
      for (const socket of sockets) socket.terminate()
    },
    send: (frame: unknown) => {
      for (const socket of sockets) socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
    },
  }
}

const answer = (socket: WebSocket, id: string, payload: unknown): void =>
  socket.send(JSON.stringify({ type: 'res', id, ok: true, payload }))

function connect(url: string, more: Partial<SocketOptions> = {}) {
  const heard: unknown[] = []
  const ups: (string | undefined)[] = []
  const logged: string[] = []
  let gaps = 0
  const socket = connectOpenClaw({
    url,
    token: 't',
    version: '0',
    log: (_level, message) => void logged.push(message),
    random: () => 0,
    onEvent: (event, payload) => void heard.push([event, payload]),
    onUp: (boot) => void ups.push(boot),
    onGap: () => (gaps += 1),
    ...more,
  })
  onTestFinished(() => socket.close())
  return { socket, heard, ups, logged, gaps: () => gaps, up: () => socket.up(AbortSignal.timeout(20_000)) }
}

afterEach(() => vi.restoreAllMocks())

test('answers, refusals, two answers, and a request that nobody answers (S1)', async () => {
  const peer = await startPeer(({ id, method }, socket) => {
    if (method === 'echo') answer(socket, id, { word: 1 })
    if (method === 'no')
      socket.send(JSON.stringify({ type: 'res', id, ok: false, error: { code: 'NOPE', message: 'not so' } }))
    if (method === 'agent') {
      answer(socket, id, { status: 'accepted' })
      answer(socket, id, { status: 'ok' })
    }
  })
  const { socket, up } = connect(peer.url)
  await expect(socket.request('echo', {})).rejects.toBeInstanceOf(ConnectionLost)
  await up()
  expect(await socket.request('echo', {})).toEqual({ word: 1 })
  await expect(socket.request('no', {})).rejects.toThrow('OpenClaw refused no: not so (NOPE)')
  const accepted: unknown[] = []
  expect(
    await socket.request('agent', {}, { twoAnswers: true, onAccepted: (payload) => accepted.push(payload) }),
  ).toEqual({ status: 'ok' })
  expect(accepted).toEqual([{ status: 'accepted' }])
  await expect(socket.request('silence', {}, { timeoutMs: 20 })).rejects.toBeInstanceOf(RequestRefused)
  const abort = new AbortController()
  const waiting = socket.request('silence', {}, { signal: abort.signal })
  abort.abort()
  await expect(waiting).rejects.toThrow('aborted')
})

test('a lost connection ends what waits, is made anew, and says whether it is the same process (S2)', async () => {
  const peer = await startPeer(({ id, method }, socket) => method === 'echo' && answer(socket, id, 'here'))
  const { socket, ups, up } = connect(peer.url)
  await up()
  const waiting = socket.request('silence', {})
  peer.cut()
  await expect(waiting).rejects.toBeInstanceOf(ConnectionLost)
  await up()
  expect(await socket.request('echo', {})).toBe('here')
  expect(ups).toEqual(['b1', 'b2'])
  socket.close()
  await expect(socket.request('echo', {})).rejects.toBeInstanceOf(ConnectionLost)
  await expect(up()).rejects.toBeInstanceOf(ConnectionLost)
})

test('a missing number is told once; what can’t be read is dropped (S3, S4)', async () => {
  const peer = await startPeer(({ id }, socket) => answer(socket, id, null))
  const { socket, heard, logged, gaps, up } = connect(peer.url)
  await up()
  for (const seq of [1, 2, 5, 6]) peer.send({ type: 'event', event: 'agent', payload: seq, seq })
  peer.send('not json, with a secret in it')
  peer.send({ type: 'mystery' })
  await socket.request('flush', {})
  expect(heard).toEqual([1, 2, 5, 6].map((seq) => ['agent', seq]))
  expect(gaps()).toBe(1)
  expect(logged).toHaveLength(2)
  expect(logged.join()).not.toContain('secret')
})
