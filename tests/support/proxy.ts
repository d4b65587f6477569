/**
 * A network between two programs that can go wrong: a TCP proxy on the loopback that cuts, hangs, or loses answers.
 *
 *     const network = await startProxy(() => server.port)
 *     network.loseAnswers()      // the server hears everything, its answers never arrive
 *     network.cut()              // connections break, new ones are refused
 *     network.cutAfter(700)      // breaks in the middle of an answer
 *     network.heal()
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

type Mode = 'open' | 'cut' | 'hang' | 'lose-answers'

export interface Network {
  readonly url: string
  readonly port: number
  /** Connections break, and new ones break at once. */
  cut(): void
  /** Connections stay and nothing passes: neither end can tell at once. */
  hang(): void
  /** What clients send arrives; what the server answers is lost. */
  loseAnswers(): void
  /** New connections work again. Those of before `hang` or `loseAnswers` have lost bytes and are broken. */
  heal(): void
  /** Each piece passes this much later, in ms; with `spread`, up to so much later still: connections overtake each other, each keeps its own order. */
  delay(ms: number, spread?: number): void
  /** After so many more bytes of answers the connection that is just speaking breaks, in the middle of whatever it says; resolves then. */
  cutAfter(bytes: number): Promise<void>
  /** Resolves with the number of bytes that clients have sent since the call, once that is more than `bytes`. */
  sent(bytes?: number): Promise<number>
  close(): Promise<void>
}

export async function startProxy(target: () => number): Promise<Network> {
  let mode: Mode = 'open'
  let late = 0
  let spread = 0
  let cut: { left: number; readonly done: () => void } | undefined
  let clientBytes = 0
  const pairs = new Set<readonly [Socket, Socket]>()
  const watchers = new Set<() => void>()

  const pass = (from: Socket, to: Socket, isAnswer: boolean): void => {
    let last = 0
    from.on('data', (chunk: Buffer) => {
      if (mode === 'hang' || (isAnswer && mode === 'lose-answers')) return
      if (!isAnswer) {
        clientBytes += chunk.length
        for (const look of [...watchers]) look()
      }
      if (isAnswer && cut) {
        cut.left -= chunk.length
        if (cut.left <= 0) {
          const { left, done } = cut
          cut = undefined
          // What passes is passed at once, so that it is there when the end comes.
          to.end(chunk.subarray(0, chunk.length + left), () => to.destroy())
          from.destroy()
          return done()
        }
      }
      const now = performance.now()
      last = Math.max(last, now + late + Math.random() * spread)
      // Timers of one length keep their order; those of different lengths are ordered by `last`.
      if (last > now + 0.5) setTimeout(() => to.writable && to.write(chunk), last - now)
      else if (to.writable) to.write(chunk)
    })
  }
  const server = createServer((client) => {
    client.on('error', () => undefined)
    if (mode === 'cut') return client.destroy()
    const upstream = connect(target(), '127.0.0.1')
    upstream.on('error', () => undefined)
    const pair = [client, upstream] as const
    pairs.add(pair)
    const end = (): void => {
      pairs.delete(pair)
      // In a hanging network the end of one side is not heard of either.
      if (mode === 'hang') return
      client.destroy()
      upstream.destroy()
    }
    client.on('close', end)
    upstream.on('close', end)
    pass(client, upstream, false)
    pass(upstream, client, true)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const breakAll = (): void => {
    for (const [client, upstream] of [...pairs]) {
      client.destroy()
      upstream.destroy()
    }
    pairs.clear()
  }
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    cut() {
      mode = 'cut'
      breakAll()
    },
    hang() {
      mode = 'hang'
    },
    loseAnswers() {
      mode = 'lose-answers'
    },
    heal() {
      const lost = mode === 'hang' || mode === 'lose-answers'
      mode = 'open'
      if (lost) breakAll()
    },
    delay(ms, more = 0) {
      late = ms
      spread = more
    },
    cutAfter: (bytes) =>
      new Promise((done) => {
        cut = { left: bytes, done }
      }),
    sent: (bytes = 0) =>
      new Promise((resolve) => {
        const start = clientBytes
        const look = (): void => {
          if (clientBytes - start <= bytes) return
          watchers.delete(look)
          resolve(clientBytes - start)
        }
        watchers.add(look)
      }),
    async close() {
      mode = 'cut'
      breakAll()
      server.close()
      await once(server, 'close')
    },
  }
}
