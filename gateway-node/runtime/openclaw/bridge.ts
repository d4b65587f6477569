/**
 * What the plugin inside OpenClaw asks of this gateway: a small HTTP interface on the loopback.
 *
 *  B1 Only with the token that this process gave to that OpenClaw; every answer is JSON and bounded.
 *  B2 A session that no run of ours stands behind gets no context, no tool and no model call: what OpenClaw begins by itself ends here.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import type { Log } from '../../service.ts'
import type { Turn } from './turn.ts'

export interface Bridge {
  start(): Promise<void>
  stop(): Promise<void>
  readonly token: string
  url(): string
  add(sessionKey: string, turn: Turn): void
  remove(sessionKey: string): void
}

const BODY_BYTES = 2 * 1024 * 1024
const NO_RUN = 'HQ knows of no run that this belongs to. Agents work when HQ wakes them.'

const asked = z.looseObject({
  sessionKey: z.string().nullable(),
  tool: z.string().optional(),
  input: z.unknown().optional(),
  call: z.string().nullish(),
  usage: z
    .looseObject({
      input: z.number().nonnegative().optional(),
      output: z.number().nonnegative().optional(),
      cacheRead: z.number().nonnegative().optional(),
      cacheWrite: z.number().nonnegative().optional(),
    })
    .optional(),
})
type Asked = z.infer<typeof asked>

export function createBridge(log: Log): Bridge {
  const token = randomBytes(32).toString('base64url')
  const turns = new Map<string, Turn>()
  let server: Server | undefined

  const routes: Record<string, (turn: Turn | undefined, body: Asked) => Promise<object>> = {
    '/context': async (turn) => ({ system: turn?.system ?? null }),
    '/gate': async (turn) => ({ stop: turn ? ((await turn.gate()) ?? null) : NO_RUN }),
    '/brake': async (turn, { tool = '', input, call = null }) => ({
      stop: turn ? ((await turn.brake(tool, input, call ?? null)) ?? null) : NO_RUN,
    }),
    '/tool': async (turn, { tool = '', input }) => (turn ? await turn.tool(tool, input) : { ok: false, text: NO_RUN }),
    '/usage': async (turn, { usage }) => {
      if (usage) await turn?.usage(usage)
      return {}
    },
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const say = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (!isToken(request.headers.authorization, token)) return say(401, { message: 'Not for you.' })
    const route = request.method === 'POST' ? routes[request.url ?? ''] : undefined
    if (!route) return say(404, { message: 'There is nothing here.' })
    const text = await bodyOf(request)
    if (text === undefined) return say(413, { message: 'That is too long.' })
    const body = asked.safeParse(parseJson(text))
    if (!body.success) return say(400, { message: 'That can’t be read.' })
    say(200, await route(body.data.sessionKey === null ? undefined : turns.get(body.data.sessionKey), body.data))
  }

  return {
    token,
    url: () => {
      if (!server) throw new Error('The bridge is not open.')
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    },
    add: (sessionKey, turn) => void turns.set(sessionKey, turn),
    remove: (sessionKey) => void turns.delete(sessionKey),
    async start() {
      if (server) return
      const opening = createServer((request, response) => {
        answer(request, response).catch((error: unknown) => {
          log('error', 'A question of OpenClaw could not be answered', { path: request.url, error: String(error) })
          if (!response.headersSent) response.writeHead(500, { 'content-type': 'application/json' })
          response.end(JSON.stringify({ message: 'HQ itself failed.' }))
        })
      })
      // A tool may wait for a person.
      opening.requestTimeout = 0
      await new Promise<void>((resolve, reject) => {
        opening.once('error', reject)
        opening.listen(0, '127.0.0.1', resolve)
      })
      server = opening
    },
    async stop() {
      const closing = server
      server = undefined
      if (!closing) return
      await new Promise<void>((resolve) => {
        closing.close(() => resolve())
        closing.closeAllConnections()
      })
    },
  }
}

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > BODY_BYTES) return undefined
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isToken(header: string | undefined, token: string): boolean {
  const given = Buffer.from(header ?? '')
  const wanted = Buffer.from(`Bearer ${token}`)
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}
