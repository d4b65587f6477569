/** A bare client of one shape over its own kept-alive connection: for benches, where the official client would be measured too. */
import { Agent, get } from 'node:http'

export interface Reply {
  readonly status: number
  readonly bytes: number
  readonly messages: readonly { headers: Record<string, unknown>; value?: Record<string, string | null> }[]
}

export interface PollClient {
  /** One request at the present position. `parse: false` counts bytes only. */
  next(query?: Readonly<Record<string, string>>, parse?: boolean): Promise<Reply>
  /** Reads up to the end of the log. Returns the number of changes. */
  catchUp(): Promise<number>
  close(): void
}

export const createPollClient = (url: string, definition: Readonly<Record<string, string>>): PollClient => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let handle: string | undefined
  let offset = '-1'

  const next: PollClient['next'] = (query = {}, parse = true) =>
    new Promise((resolve, reject) => {
      const address = new URL(url)
      for (const [name, value] of Object.entries({ ...definition, offset, ...(handle ? { handle } : {}), ...query })) {
        address.searchParams.set(name, value)
      }
      get(address, { agent }, (response) => {
        const pieces: Buffer[] = []
        let bytes = 0
        response.on('data', (piece: Buffer) => {
          bytes += piece.length
          if (parse) pieces.push(piece)
        })
        response.on('error', reject)
        response.on('end', () => {
          handle = String(response.headers['electric-handle'] ?? handle)
          offset = String(response.headers['electric-offset'] ?? offset)
          const messages = parse ? JSON.parse(Buffer.concat(pieces).toString()) : []
          resolve({ status: response.statusCode ?? 0, bytes, messages })
        })
      }).on('error', reject)
    })

  return {
    next,
    async catchUp() {
      let changes = 0
      for (;;) {
        const { status, messages } = await next()
        if (status !== 200) throw new Error(`expected 200, got ${status}`)
        changes += messages.filter(({ headers }) => headers['operation'] !== undefined).length
        if (messages.some(({ headers }) => headers['control'] === 'up-to-date')) return changes
      }
    },
    close: () => agent.destroy(),
  }
}
