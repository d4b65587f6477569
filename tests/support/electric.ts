/**
 * An Electric service for tests: our own engine run alone, as a process of its own, behind a gate that is as strict as Electric 1.7 where the engine is not:
 *
 *  1. It wants its secret, and answers 401 without.
 *  2. It serves only conditions that it decides exactly: equalities joined by AND, each with a param (no sub-queries, no functions).
 *  3. It closes a connection after 50 requests without saying so.
 *  4. Its 409 to a live request names no handle.
 *  5. While the engine is dead, connections break.
 */
import { once } from 'node:events'
import { Agent, createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { startTestServer, type TestServer } from '@hq/sync-server/shapes/testing/server.ts'

export const ELECTRIC_SECRET = 'electric-secret-of-this-test'

export interface ElectricService {
  /** For ELECTRIC_URL. */
  readonly url: string
  readonly engine: Pick<TestServer, 'kill' | 'start'>
  /** Requests that are open at this moment; only those with this parameter, if one is named. */
  held(parameter?: string): number
  /** Requests that were answered, by status. */
  answered(status: number): number
  /** Deletes all shapes of the table, as an operator or a lost slot would: their readers must fetch anew. Returns how many there were. */
  rotate(table: string): Promise<number>
  stop(): Promise<void>
}

const REQUESTS_PER_CONNECTION = 50
const EXACT = /^"[a-z_]+" = \$\d( AND "[a-z_]+" = \$\d)*$/
const DEFINITION = /^(table|where|columns|replica|params\[\d+\])$/

export async function startElectric(databaseUrl: string): Promise<ElectricService> {
  const engine = await startTestServer(databaseUrl)
  const target = new URL(engine.url)
  const agent = new Agent({ keepAlive: true })
  const served = new WeakMap<Socket, number>()
  const definitions = new Map<string, Set<string>>()
  const statuses = new Map<number, number>()
  const open = new Set<URLSearchParams>()

  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request
    const refuse = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    const nth = (served.get(socket) ?? 0) + 1
    served.set(socket, nth)
    const url = new URL(request.url ?? '', target)
    open.add(url.searchParams)
    response.once('close', () => {
      open.delete(url.searchParams)
      statuses.set(response.statusCode, (statuses.get(response.statusCode) ?? 0) + 1)
      if (nth >= REQUESTS_PER_CONNECTION) socket.end()
    })
    if (url.pathname !== '/v1/shape') {
      refuse(404, { message: 'Not found' })
      return
    }
    const { searchParams: search } = url
    if (search.get('secret') !== ELECTRIC_SECRET) {
      refuse(401, { message: 'Unauthorized - Invalid API secret' })
      return
    }
    search.delete('secret')
    const where = search.get('where')
    if (where !== null && !EXACT.test(where)) {
      refuse(400, { message: 'Invalid request', errors: { where: [`not served here: ${where}`] } })
      return
    }
    remember(search)

    const upstream = forward(url, { agent, headers: { ...request.headers, host: target.host } }, (answer) => {
      const { statusCode = 502, headers } = answer
      if (statusCode === 409 && search.get('live') === 'true') delete headers['electric-handle']
      response.writeHead(statusCode, headers)
      answer.pipe(response)
    })
    upstream.on('error', () => socket.destroy())
    response.on('close', () => upstream.destroy())
    upstream.end()
  }

  const remember = (search: URLSearchParams): void => {
    const definition = new URLSearchParams([...search].filter(([name]) => DEFINITION.test(name)))
    const table = search.get('table') ?? ''
    definitions.set(table, (definitions.get(table) ?? new Set()).add(definition.toString()))
  }

  const gate = createServer(serve)
  gate.listen(0, '127.0.0.1')
  await once(gate, 'listening')
  return {
    url: `http://127.0.0.1:${(gate.address() as AddressInfo).port}`,
    engine,
    held: (parameter) => [...open].filter((search) => !parameter || search.has(parameter)).length,
    answered: (status) => statuses.get(status) ?? 0,
    async rotate(table) {
      let deleted = 0
      for (const definition of definitions.get(table) ?? []) {
        const { status } = await fetch(`${engine.url}?${definition}`, { method: 'DELETE' })
        if (status === 202) deleted++
      }
      return deleted
    },
    async stop() {
      gate.close()
      gate.closeAllConnections()
      agent.destroy()
      await engine.stop()
    },
  }
}
