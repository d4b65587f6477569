/**
 * Posting a form to a provider's address, as people gave it: by the guarded fetch, so that a public name never leads into this machine's own network.
 * Who types `localhost` (or 127.…, ::1), or signs in at the very host that the connection's models are at, means that one; nothing else is let through.
 */
import { isLoopbackHost, type OauthSettings } from '@hq/shared/domain/oauth-settings.ts'
import { createGuardedFetch } from '../net/guarded-fetch.ts'
import { withoutSecret } from '../runtime/builtin/errors.ts'
import { type Refusal, readRefusal } from './protocol.ts'

export type Posted =
  /** `body`: undefined when it is no JSON. */
  | { readonly ok: true; readonly status: number; readonly body: unknown }
  | { readonly ok: false; readonly message: string }

export type Post = (url: string, form: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<Posted>

const guarded = createGuardedFetch({ maxBytes: 256 * 1024 })
const meant = createGuardedFetch({ maxBytes: 256 * 1024, refusal: () => undefined })

/** @param baseUrl where the connection's models are */
export const createPost =
  (baseUrl: string | null): Post =>
  async (url, form, signal) => {
    const host = URL.parse(url)?.hostname ?? ''
    const own = baseUrl === null ? undefined : URL.parse(baseUrl)?.hostname
    const fetched = await (isLoopbackHost(host) || host === own ? meant : guarded)(url, signal, form)
    if (!fetched.ok) return fetched
    const { status, text, truncated } = fetched.page
    let body: unknown
    try {
      body = truncated ? undefined : JSON.parse(text)
    } catch {
      body = undefined // said by whoever reads it; the text may hold a token
    }
    return { ok: true, status, body }
  }

/** Tokens are for who gave them: a connection whose addresses were changed is signed in anew. */
export const issuerOf = ({ token_url, client_id }: OauthSettings): string => `${client_id} ${token_url}`

export type Asked = Posted & { readonly refusal?: Refusal }

/** Asks, and reads a refusal; whatever may echo a secret loses it. */
export async function ask(
  { base_url }: { readonly base_url: string | null },
  url: string,
  form: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Asked> {
  const secrets = ['code', 'refresh_token', 'device_code', 'code_verifier'].map((name) => form[name])
  const clean = (text: string): string => secrets.reduce<string>((all, secret) => withoutSecret(all, secret), text)
  const posted = await createPost(base_url)(url, form, signal)
  if (!posted.ok) return { ok: false, message: clean(posted.message) }
  if (posted.status >= 200 && posted.status < 300) return posted
  const refusal = readRefusal(posted.body)
  return refusal ? { ...posted, refusal: { error: refusal.error, words: clean(refusal.words) } } : posted
}

export const troubleOf = (asked: Asked): string =>
  !asked.ok
    ? asked.message
    : asked.refusal
      ? `It said: ${asked.refusal.words}.`
      : `It answered with status ${asked.status}, and nothing that can be understood.`

/** Nothing is decided: to be tried again. */
export const isDown = (asked: Asked): boolean => !asked.ok || asked.status >= 500 || asked.status === 429
