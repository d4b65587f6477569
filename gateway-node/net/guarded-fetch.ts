/**
 * Reading a page of the internet on behalf of somebody who may not choose where this machine's own network leads (an agent, a page that was read).
 *
 *  G1 Where a request may go is decided by the address that is connected to, at the moment of connecting: names are resolved by us, every address of
 *     theirs is looked at (addresses.ts), and the connection is made to just that one. A name that says something else a moment later changes nothing.
 *  G2 Each redirect is a new request, and looked at like the first. What is sent carries no credentials, no cookies, no referrer.
 *  G3 Only http and https, GET (and a form that is posted, whose answer is never a redirect that is followed), no user or password in the address, ports 80, 443 and those from 1024.
 *  G4 Time, redirects and bytes are bounded, bytes after unpacking. Only text is given back.
 *  G5 Never throws: what went wrong is a sentence.
 */
import { lookup as systemLookup } from 'node:dns/promises'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { refusalOf } from './addresses.ts'

export interface FetchedPage {
  /** After redirects. */
  readonly url: string
  readonly status: number
  readonly contentType: string
  readonly text: string
  /** There was more. */
  readonly truncated: boolean
}

export type Fetched =
  | { readonly ok: true; readonly page: FetchedPage }
  | { readonly ok: false; readonly message: string }

export interface GuardedFetchOptions {
  /** All addresses of a name; default: the system's. */
  readonly resolve?: (name: string) => Promise<readonly string[]>
  /** Why an address is refused; default: `refusalOf`. For tests that serve on the loopback. */
  readonly refusal?: (address: string) => string | undefined
  readonly maxBytes?: number
  readonly maxRedirects?: number
  /** For everything, redirects included. */
  readonly timeoutMs?: number
}

/** @param form posted as `application/x-www-form-urlencoded`; JSON is asked for */
export type GuardedFetch = (
  url: string,
  signal?: AbortSignal,
  form?: Readonly<Record<string, string>>,
) => Promise<Fetched>

const MAX_BYTES = 2 * 1024 * 1024
const MAX_REDIRECTS = 5
const TIMEOUT_MS = 20_000
const TEXT = /^(?:text\/|application\/(?:[\w.+-]*\+)?(?:json|xml)\b|application\/(?:javascript|yaml|x-yaml|toml)\b)/i

/** What stops a fetch; its message is for people. */
class Refused extends Error {}

export function createGuardedFetch(options: GuardedFetchOptions = {}): GuardedFetch {
  const {
    resolve = async (name) => (await systemLookup(name, { all: true, verbatim: true })).map(({ address }) => address),
    refusal = refusalOf,
    maxBytes = MAX_BYTES,
    maxRedirects = MAX_REDIRECTS,
    timeoutMs = TIMEOUT_MS,
  } = options

  /** The addresses that may be connected to; all of them, or none (G1). */
  const addressesOf = async (host: string): Promise<readonly string[]> => {
    const addresses = isIP(host) ? [host] : await resolve(host)
    if (addresses.length === 0) throw new Refused(`There is no machine called ${host}.`)
    for (const address of addresses) {
      const why = refusal(address)
      if (why) throw new Refused(`${host} leads to ${address}, and ${why}. Only public addresses may be read.`)
    }
    return addresses
  }

  const open = async (url: URL, signal: AbortSignal, form: string | undefined): Promise<IncomingMessage> => {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const addresses = await addressesOf(host)
    signal.throwIfAborted()
    // The name is not asked for again: what was looked at is what is connected to.
    const pinned: LookupFunction = (_name, { all }, done) => {
      const found = addresses.map((address) => ({ address, family: isIP(address) }))
      const [first] = found
      if (all) done(null, found)
      else done(null, first?.address ?? '', first?.family)
    }
    const send = (url.protocol === 'https:' ? httpsRequest : httpRequest) as typeof httpRequest
    return new Promise((answered, failed) => {
      const request = send(
        url,
        {
          method: form === undefined ? 'GET' : 'POST',
          agent: false,
          lookup: pinned,
          signal,
          headers: {
            ...(form === undefined
              ? { accept: 'text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1' }
              : {
                  accept: 'application/json',
                  'content-type': 'application/x-www-form-urlencoded',
                  'content-length': Buffer.byteLength(form),
                }),
            'accept-encoding': 'gzip, br, deflate',
            'user-agent': 'HQ-agent/1.0',
          },
        },
        answered,
      )
      request.on('error', failed)
      request.on('socket', (socket) => {
        socket.once('connect', () => {
          const why = refusal(socket.remoteAddress ?? '')
          if (why) request.destroy(new Refused(`${host} leads to ${socket.remoteAddress}, and ${why}.`))
        })
      })
      request.end(form)
    })
  }

  const follow = async (first: URL, signal: AbortSignal, form: string | undefined): Promise<FetchedPage> => {
    let url = first
    for (let redirects = 0; ; redirects++) {
      check(url)
      const response = await open(url, signal, form)
      const { statusCode: status = 0 } = response
      const { location } = response.headers
      if (status < 300 || status >= 400 || location === undefined) return await read(url, response, signal)
      response.destroy()
      if (form !== undefined) throw new Refused('It leads elsewhere, and what is posted is not sent on.')
      if (redirects >= maxRedirects) throw new Refused(`It leads on and on: more than ${maxRedirects} redirects.`)
      const next = URL.parse(location, url.href)
      if (!next) throw new Refused('It leads to something that is no address.')
      url = next
    }
  }

  const read = async (url: URL, response: IncomingMessage, signal: AbortSignal): Promise<FetchedPage> => {
    const contentType = response.headers['content-type'] ?? 'text/plain'
    if (!TEXT.test(contentType)) {
      response.destroy()
      throw new Refused(`It is ${contentType.split(';')[0]}, not text.`)
    }
    const unpack = UNPACK[response.headers['content-encoding']?.toLowerCase() ?? '']?.()
    const stop = (error: Error): void => void (unpack ?? response).destroy(error)
    const aborted = (): void => stop(new Error('aborted'))
    signal.addEventListener('abort', aborted)
    const pieces: Buffer[] = []
    let size = 0
    try {
      if (unpack) response.on('error', stop).pipe(unpack)
      for await (const piece of (unpack ?? response) as AsyncIterable<Buffer>) {
        pieces.push(piece.subarray(0, maxBytes - size))
        size += piece.length
        // Leaving the loop ends the unpacking.
        if (size > maxBytes) break
      }
    } finally {
      signal.removeEventListener('abort', aborted)
      response.destroy()
    }
    return {
      url: url.href,
      status: response.statusCode ?? 0,
      contentType,
      text: decode(Buffer.concat(pieces), contentType),
      truncated: size > maxBytes,
    }
  }

  return async (address, outer, form) => {
    const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(outer ? [outer] : [])])
    try {
      const url = URL.parse(address)
      if (!url) throw new Refused('That is no address. Give one such as https://example.org/page.')
      return { ok: true, page: await follow(url, signal, form && new URLSearchParams(form).toString()) }
    } catch (error) {
      return { ok: false, message: explain(error, signal, outer, timeoutMs) }
    }
  }
}

/** G3. */
function check(url: URL): void {
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new Refused(`Only http and https can be read, not ${url.protocol.slice(0, -1)}.`)
  if (url.username || url.password) throw new Refused('An address with a user or password in it is not read.')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  if (port !== 80 && port !== 443 && port < 1024) throw new Refused(`Port ${port} is not one of the web.`)
}

const UNPACK: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

function decode(bytes: Buffer, contentType: string): string {
  const charset = /charset=["']?([\w-]+)/i.exec(contentType)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return new TextDecoder().decode(bytes) // an encoding that nobody knows
  }
}

function explain(error: unknown, signal: AbortSignal, outer: AbortSignal | undefined, timeoutMs: number): string {
  if (error instanceof Refused) return error.message
  if (outer?.aborted) return 'It was stopped.'
  if (signal.aborted) return `There was no whole answer within ${timeoutMs / 1_000} seconds.`
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return 'Its name is not known; perhaps this machine has no network just now.'
  if (code === 'ECONNREFUSED' || code === 'ECONNRESET' || code === 'EPIPE')
    return `The connection was refused or broke off (${code}).`
  if (/CERT|TLS|SSL/.test(code)) return `Its certificate is not valid (${code}).`
  return `It could not be read (${code || (error instanceof Error ? error.message : String(error))}).`
}
