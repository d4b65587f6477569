/**
 * A real Electric as the source of shapes (ELECTRIC_URL): the same definitions, sent as query parameters.
 *
 *  1. Bodies are streamed through as they come (long polls and SSE); when the reader goes, Electric's request is aborted.
 *  2. ELECTRIC_SECRET goes to Electric only: never into an answer, a log line or another host's address (redirects are not followed).
 *     Back come Electric's own headers and what a reader needs to decode the body; nothing about the connection between us and it.
 *  3. An Electric that can't be reached, or that is set up wrongly (its 401, 403, 404 and redirects are about us, not about the reader), is a
 *     503 that a client tries again. The log says what is wrong, once, and when it is over.
 *  4. Electric closes connections that have served enough without a word; a request that was lost that way is asked again, twice at most.
 */
import { quote } from '@hq/shared/schema/sql.ts'
import { encode, type ShapeDefinition, type ShapeRequest, type ShapeResponse } from '../shapes/protocol.ts'
import type { Log } from './context.ts'
import type { ShapeSource } from './shape-route.ts'

const PASSED_BACK = ['content-type', 'etag', 'retry-after']
const RETRY_AFTER_SECONDS = 2
const TRIES = 3

type Body = ReadableStream<Uint8Array<ArrayBuffer>>

export function createElectricProxy(
  electricUrl: string,
  secret: string | undefined,
  log: Log = () => undefined,
): ShapeSource {
  const base = electricBase(electricUrl)
  const shown = base.origin + base.pathname
  let trouble: string | undefined

  const unavailable = (reason: string): ShapeResponse => {
    if (reason !== trouble) log('error', `No shapes from Electric: ${reason}`, { electric: shown })
    trouble = reason
    const message = 'The server cannot read changes just now, because its Electric does not answer as it should.'
    return {
      status: 503,
      headers: { 'content-type': 'application/json', 'retry-after': String(RETRY_AFTER_SECONDS) },
      body: encode(JSON.stringify({ code: 'busy', message: `${message} What you write is kept; it is tried again.` })),
    }
  }

  return {
    async handle({ params, definition, headers, signal }: ShapeRequest): Promise<ShapeResponse> {
      const url = electricAddress(base, params, definition, secret)
      const etag = headers?.['if-none-match']
      const ask = async (tries = TRIES): Promise<Response> => {
        try {
          return await fetch(url, {
            headers: etag ? { 'if-none-match': etag } : {},
            redirect: 'manual',
            signal: signal ?? null,
          })
        } catch (error) {
          if (signal?.aborted || tries === 1 || !isLostConnection(error)) throw error
          return ask(tries - 1)
        }
      }
      let response: Response
      try {
        response = await ask()
      } catch (error) {
        if (signal?.aborted) throw error
        return unavailable(`it cannot be reached (${reasonOf(error)}). Is it running, and is ELECTRIC_URL its address?`)
      }
      const mistake = mistakeOf(response.status, secret !== undefined)
      if (mistake) {
        await response.body?.cancel()
        return unavailable(mistake)
      }
      if (trouble && response.ok) {
        log('info', 'Electric answers again.', { electric: shown })
        trouble = undefined
      }
      const back: Record<string, string> = {}
      for (const [name, value] of response.headers)
        if (name.startsWith('electric-') || PASSED_BACK.includes(name)) back[name] = value
      if (response.status === 503) back['retry-after'] ??= String(RETRY_AFTER_SECONDS)
      return { status: response.status, headers: back, body: response.body && endingWith(signal, response.body) }
    },
  }
}

/** The body; when the reader goes it ends instead of failing, because nobody is left to be told. */
function endingWith(signal: AbortSignal | undefined, body: NonNullable<Response['body']>): Body {
  const reader = body.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await reader.read().catch((error: unknown) => {
          if (signal?.aborted) return { done: true, value: undefined } as const
          throw error
        })
        if (done) controller.close()
        else controller.enqueue(value as Uint8Array<ArrayBuffer>)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/** The address of Electric's shape route; ELECTRIC_URL may name it or only the host. Throws on what is no address. */
function electricBase(electricUrl: string): URL {
  const base = URL.parse(electricUrl)
  if (!base || (base.protocol !== 'http:' && base.protocol !== 'https:'))
    throw new Error('ELECTRIC_URL is not an address. Give one such as http://127.0.0.1:3000.')
  if (base.username || base.password)
    throw new Error('ELECTRIC_URL must not contain a user or password; Electric’s secret goes into ELECTRIC_SECRET.')
  if (base.pathname === '/') base.pathname = '/v1/shape'
  return base
}

/** What Electric is asked: the reader's place in the log, our definition, our secret. */
export function electricAddress(
  base: URL,
  params: ShapeRequest['params'],
  definition: ShapeDefinition | undefined,
  secret: string | undefined,
): URL {
  const url = new URL(base)
  const { searchParams: search } = url
  for (const [name, value] of Object.entries(params)) if (value !== undefined) search.set(name, value)
  if (definition) {
    search.set('table', definition.table)
    search.set('replica', definition.replica ?? 'default')
    if (definition.where) search.set('where', definition.where)
    if (definition.columns) search.set('columns', definition.columns.map(quote).join(','))
    definition.params?.forEach((value, index) => void search.set(`params[${index + 1}]`, value))
  }
  if (secret) search.set('secret', secret)
  return url
}

/** What is wrong between this server and Electric when it answers so (3). */
function mistakeOf(status: number, hasSecret: boolean): string | undefined {
  if (status === 401 || status === 403)
    return hasSecret
      ? 'it refuses our secret. Give both the same ELECTRIC_SECRET.'
      : 'it wants a secret. Give this server the ELECTRIC_SECRET that Electric has.'
  if (status === 404 || status === 405)
    return 'there is no shape route at that address. Correct ELECTRIC_URL (such as http://127.0.0.1:3000).'
  if (status >= 300 && status < 400 && status !== 304)
    return 'that address only leads to another one. Put the final address into ELECTRIC_URL.'
  return undefined
}

const codeOf = (error: unknown): unknown =>
  error instanceof Error && error.cause instanceof Error ? (error.cause as NodeJS.ErrnoException).code : undefined

/** The connection was there and ended before an answer (4). */
const isLostConnection = (error: unknown): boolean =>
  ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'].includes(String(codeOf(error)))

/** By code only: an error's text may hold an address. */
const reasonOf = (error: unknown): string => String(codeOf(error) ?? 'no connection')
