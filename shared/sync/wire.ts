/**
 * Takes the rows out of a shape's answer before Electric's client sees it.
 *
 * The client parses every value of every row (a JSON reviver: more than half of the time of a first load) and would turn text into other types. It gets
 * the control messages, and in the place of all rows one message that names the batch; the rows wait here, as the text they were sent as (R7).
 *
 * Y1 Rows and control messages keep their order: `take` gives back the whole list as the server sent it.
 * Y2 A batch that is no longer here (its answer was thrown away by the client) is an error, never an empty batch.
 * Y3 An answer without messages, or that is none, is shown to the client as an overloaded server's: it would go on from the place that the headers
 *    promise, and rows that were to come before it would be lost until the next start. So it asks again, later and later.
 */
import type { ShapeMessage } from './core/pull.ts'

export interface Wire {
  /** The answer as the client shall see it. */
  withoutRows(response: Response): Promise<Response>
  /** What the server sent in the place of what the client delivers. */
  take(delivered: readonly { readonly headers: object }[]): readonly ShapeMessage[]
}

/** The client reads at most two chunks ahead; what is older was thrown away. */
const KEPT = 8

/** Y3 */
const UNUSABLE = (): Response =>
  Response.json({ message: 'The answer has no messages in it, although at least one belongs there.' }, { status: 502 })

export const isStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') ?? false

/** The client turns values into the types that the schema names; of an empty one it knows none. */
function withoutSchema(response: Response, body: ReadableStream | null = response.body): Response {
  if (!response.headers.has('electric-schema')) return response
  const headers = new Headers(response.headers)
  headers.set('electric-schema', '{}')
  return new Response(body, { status: response.status, statusText: response.statusText, headers })
}

export function createWire(): Wire {
  const batches = new Map<number, readonly ShapeMessage[]>()
  let next = 1

  return {
    async withoutRows(response) {
      // A stream of events is read by the client as it comes; without a schema it leaves the values alone (R7).
      if (response.status !== 200 || isStream(response)) return withoutSchema(response)
      const { headers } = withoutSchema(response, null)
      const text = await response.text()
      const messages: unknown = JSON.parse(text)
      if (!Array.isArray(messages) || messages.length === 0) return UNUSABLE()
      const batch = next++
      batches.set(batch, messages as ShapeMessage[])
      for (const old of batches.keys()) if (old <= batch - KEPT) batches.delete(old)
      const controls = (messages as ShapeMessage[]).filter(({ headers: { control } }) => control !== undefined)
      const stub = { key: 'batch', value: {}, headers: { operation: 'insert', batch } }
      return new Response(JSON.stringify([stub, ...controls]), { status: 200, headers })
    },
    take(delivered) {
      const first = delivered[0]
      const batch = first && 'batch' in first.headers ? Number(first.headers.batch) : undefined
      // Only the client's own message (must-refetch after a 409) and a stream of events come without a batch.
      if (batch === undefined) return delivered as readonly ShapeMessage[]
      const messages = batches.get(batch)
      if (!messages) throw new Error(`The rows of answer ${batch} are no longer here`)
      batches.delete(batch)
      return messages
    },
  }
}
