/** A client of an engine in the same process: reads a shape and builds its rows, refusing what a correct log never says. */
import type { Engine } from '../engine.ts'
import type { ShapeDefinition } from '../protocol.ts'

export interface LogMessage {
  readonly key?: string
  readonly value?: Readonly<Record<string, string | null>>
  readonly headers: Readonly<Record<string, unknown>>
}

export interface EngineReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly messages: readonly LogMessage[]
}

export interface EngineClient {
  handle: string | undefined
  offset: string
  /** Messages received since the last start. */
  log: LogMessage[]
  request(params?: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<EngineReply>
  /** Reads to the end of the log. Throws on anything but a 200. */
  catchUp(): Promise<LogMessage[]>
  /** Long-polls until a condition on all changes holds. */
  follow(enough: (changes: readonly LogMessage[]) => boolean): Promise<LogMessage[]>
  rows(): Map<string, Readonly<Record<string, string | null>>>
}

export const isChange = (message: LogMessage): boolean => message.headers['operation'] !== undefined

export const readReply = async ({
  status,
  headers,
  body,
}: Awaited<ReturnType<Engine['handle']>>): Promise<EngineReply> => {
  const text = await new Response(body).text()
  const parsed: unknown = text === '' ? [] : JSON.parse(text)
  return { status, headers, messages: Array.isArray(parsed) ? parsed : [] }
}

export const createEngineClient = (engine: Pick<Engine, 'handle'>, definition: ShapeDefinition): EngineClient => {
  const client: EngineClient = {
    handle: undefined,
    offset: '-1',
    log: [],
    async request(params = {}, signal) {
      const position = { offset: client.offset, ...(client.handle ? { handle: client.handle } : {}) }
      const reply = await readReply(
        await engine.handle({ method: 'GET', definition, params: { ...position, ...params }, signal }),
      )
      if (reply.status === 200) {
        client.handle = reply.headers['electric-handle']
        client.offset = reply.headers['electric-offset'] as string
        client.log.push(...reply.messages)
      }
      return reply
    },
    async catchUp() {
      const received: LogMessage[] = []
      for (;;) {
        const { status, messages } = await client.request()
        if (status !== 200) throw Object.assign(new Error(`expected 200, got ${status}`), { status })
        received.push(...messages)
        if (messages.some(({ headers }) => headers['control'] === 'up-to-date')) return received
      }
    },
    async follow(enough) {
      while (!enough(client.log.filter(isChange))) {
        const { status } = await client.request(client.offset === '-1' ? {} : { live: 'true' })
        if (status !== 200) throw Object.assign(new Error(`expected 200, got ${status}`), { status })
      }
      return client.log.filter(isChange)
    },
    rows() {
      const rows = new Map<string, Readonly<Record<string, string | null>>>()
      for (const { key = '', value = {}, headers } of client.log.filter(isChange)) {
        const isKnown = rows.has(key)
        if (isKnown === (headers['operation'] === 'insert')) {
          throw new Error(`${headers['operation']} of a row that is ${isKnown ? '' : 'not '}there: ${key}`)
        }
        if (headers['operation'] === 'delete') rows.delete(key)
        else rows.set(key, { ...rows.get(key), ...value })
      }
      return rows
    },
  }
  return client
}
