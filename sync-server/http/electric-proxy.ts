/**
 * A real Electric as the source of shapes (ELECTRIC_URL): the same definitions, sent as query parameters.
 *
 *  1. Bodies are streamed through; when the reader goes, Electric's request is aborted.
 *  2. ELECTRIC_SECRET goes to Electric only. Only Electric's own headers come back.
 *  3. An Electric that can't be reached is a 503 that a client tries again.
 */
import { ELECTRIC_HEADERS, type ShapeRequest, type ShapeResponse } from '../shapes/protocol.ts'
import type { ShapeSource } from './shape-route.ts'

const PASSED_BACK = [...ELECTRIC_HEADERS, 'content-type']

export function createElectricProxy(electricUrl: string, secret: string | undefined): ShapeSource {
  const base = new URL(electricUrl)
  if (base.pathname === '/') base.pathname = '/v1/shape'
  return {
    async handle({ params, definition, headers, signal }: ShapeRequest): Promise<ShapeResponse> {
      const url = new URL(base)
      for (const [name, value] of Object.entries(params)) if (value !== undefined) url.searchParams.set(name, value)
      if (definition) {
        url.searchParams.set('table', definition.table)
        url.searchParams.set('replica', definition.replica ?? 'default')
        if (definition.where) url.searchParams.set('where', definition.where)
        if (definition.columns) url.searchParams.set('columns', definition.columns.join(','))
        definition.params?.forEach((value, index) => void url.searchParams.set(`params[${index + 1}]`, value))
      }
      if (secret) url.searchParams.set('secret', secret)
      const etag = headers?.['if-none-match']
      let response: Response
      try {
        response = await fetch(url, { headers: etag ? { 'if-none-match': etag } : {}, signal: signal ?? null })
      } catch (error) {
        if (signal?.aborted) throw error
        return {
          status: 503,
          headers: { 'content-type': 'application/json', 'retry-after': '2' },
          body: new TextEncoder().encode(
            JSON.stringify({ code: 'busy', message: 'The Electric behind this server cannot be reached just now.' }),
          ),
        }
      }
      const back: Record<string, string> = {}
      for (const name of PASSED_BACK) {
        const value = response.headers.get(name)
        if (value !== null) back[name] = value
      }
      return {
        status: response.status,
        headers: back,
        body: response.body as ReadableStream<Uint8Array<ArrayBuffer>> | null,
      }
    },
  }
}
