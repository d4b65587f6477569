/**
 * OAuth 2 as words: what is asked, and what an answer says. Pure: no clock, no IO.
 * Authorization code with PKCE (RFC 7636, S256), device code (RFC 8628), renewal (RFC 6749 §6).
 *
 *  P1 Nothing of an answer is believed before it is read; what can't be read is a sentence.
 *  P2 A `state` that comes back is the one that was sent. A bare code has none: then PKCE alone ties it to this sign-in.
 *  P3 A provider's own words are cut short, and only ever words: no field that holds a token is repeated.
 */
import { createHash } from 'node:crypto'
import { DEFAULT_REDIRECT, type OauthSettings } from '@hq/shared/domain/oauth-settings.ts'
import { z } from 'zod'

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

export interface Tokens {
  readonly access_token: string
  readonly refresh_token: string | null
  /** ms since 1970; null: the provider does not say. */
  readonly expires_at: number | null
  readonly obtained_at: number
}

export interface DeviceCode {
  readonly device_code: string
  readonly user_code: string
  readonly verification_url: string
  /** With the code in it, so that nothing has to be typed. */
  readonly verification_url_complete: string | null
  readonly expires_at: number
  /** Seconds between two questions. */
  readonly interval: number
}

export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly message: string }

/** @param bytes 32 random ones */
export const verifierOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')

export const redirectOf = (settings: OauthSettings): string => settings.redirect_uri ?? DEFAULT_REDIRECT

export function authorizeUrl(settings: OauthSettings, state: string, verifier: string): string {
  const url = new URL(settings.authorize_url ?? '')
  const values = {
    response_type: 'code',
    client_id: settings.client_id,
    redirect_uri: redirectOf(settings),
    ...(settings.scope ? { scope: settings.scope } : {}),
    state,
    code_challenge: challengeOf(verifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value)
  return url.href
}

export const codeForm = (settings: OauthSettings, code: string, verifier: string): Record<string, string> => ({
  grant_type: 'authorization_code',
  code,
  redirect_uri: redirectOf(settings),
  client_id: settings.client_id,
  code_verifier: verifier,
})
export const renewalForm = (settings: OauthSettings, refreshToken: string): Record<string, string> => ({
  grant_type: 'refresh_token',
  refresh_token: refreshToken,
  client_id: settings.client_id,
})
export const deviceForm = (settings: OauthSettings): Record<string, string> => ({
  client_id: settings.client_id,
  ...(settings.scope ? { scope: settings.scope } : {}),
})
export const pollForm = (settings: OauthSettings, deviceCode: string): Record<string, string> => ({
  grant_type: DEVICE_GRANT,
  device_code: deviceCode,
  client_id: settings.client_id,
})

/** The whole address that the browser ended at, its part behind `?` or `#`, `code#state`, or the code alone (P2). */
export function readPasted(text: string, state: string): Read<string> {
  const given = text.trim()
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? URL.parse(given) : undefined
  if (url === null) return { ok: false, message: 'What was pasted is no whole address. Copy it once more.' }
  const words = new URLSearchParams(
    url
      ? url.search.length > 1
        ? url.search
        : url.hash.slice(1)
      : /(^|[?&#])(code|error)=/.test(given)
        ? given.replace(/^[?#]/, '')
        : '',
  )
  const [bare, tail] = given.split('#')
  const error = words.get('error')
  const code = words.get('code') ?? (url || error !== null ? null : (bare ?? null))
  const back = words.get('state') ?? (url || words.size > 0 ? null : (tail ?? null))
  if ((back !== null && back !== state) || (back === null && (url || words.size > 0)))
    return {
      ok: false,
      message:
        'What was pasted belongs to another sign-in (its state is not the one that was sent). Use the link shown here, and paste where that one ends.',
    }
  if (error !== null)
    return { ok: false, message: `The provider did not let you in: ${short(words.get('error_description') ?? error)}` }
  return code !== null && /^[\x21-\x7e]{1,8192}$/.test(code)
    ? { ok: true, value: code }
    : { ok: false, message: 'There is no code in what was pasted. Copy the whole address that the browser ended at.' }
}

const word = z.string().regex(/^[\x21-\x7e]{1,16384}$/)
const seconds = z.coerce
  .number()
  .positive()
  .max(10 * 365 * 86_400)
const tokensSchema = z.object({
  access_token: word,
  token_type: z
    .string()
    .regex(/^bearer$/i)
    .optional(),
  expires_in: seconds.nullish(),
  refresh_token: word.nullish(),
})

/** @param before what was there: a renewal may leave the old refresh token in force */
export function readTokens(body: unknown, now: number, before?: Tokens): Read<Tokens> {
  const read = tokensSchema.safeParse(body)
  if (!read.success)
    return { ok: false, message: `The provider’s answer has no usable token (${fieldsOf(read.error)}).` }
  const { access_token, refresh_token, expires_in } = read.data
  return {
    ok: true,
    value: {
      access_token,
      refresh_token: refresh_token ?? before?.refresh_token ?? null,
      expires_at: expires_in == null ? null : now + expires_in * 1000,
      obtained_at: now,
    },
  }
}

const page = z
  .string()
  .max(2_000)
  .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''))
const deviceSchema = z.object({
  device_code: word,
  user_code: z.string().regex(/^[\x21-\x7e ]{1,64}$/),
  verification_uri: page.optional(),
  // As some providers spell it.
  verification_url: page.optional(),
  verification_uri_complete: page.optional(),
  expires_in: seconds,
  interval: z.coerce.number().min(1).max(300).optional(),
})

export function readDevice(body: unknown, now: number): Read<DeviceCode> {
  const read = deviceSchema.safeParse(body)
  const url = read.success ? (read.data.verification_uri ?? read.data.verification_url) : undefined
  if (!read.success || url === undefined)
    return {
      ok: false,
      message: `The provider’s answer has no usable code (${read.success ? 'verification_uri' : fieldsOf(read.error)}).`,
    }
  const { device_code, user_code, verification_uri_complete, expires_in, interval } = read.data
  return {
    ok: true,
    value: {
      device_code,
      user_code,
      verification_url: url,
      verification_url_complete: verification_uri_complete ?? null,
      expires_at: now + expires_in * 1000,
      interval: interval ?? 5,
    },
  }
}

export interface Refusal {
  readonly error: string
  /** For people (P3). */
  readonly words: string
}

const refusalSchema = z.object({ error: z.string().min(1).max(100), error_description: z.string().optional() })

export function readRefusal(body: unknown): Refusal | undefined {
  const read = refusalSchema.safeParse(body)
  if (!read.success) return undefined
  const { error, error_description } = read.data
  return { error, words: short(error_description ? `${error}: ${error_description}` : error) }
}

const fieldsOf = (error: z.ZodError): string =>
  [...new Set(error.issues.map(({ path }) => path.join('.') || 'all of it'))].join(', ')

const short = (text: string): string => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is taken out
  const line = text.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ').trim()
  return line.length > 160 ? `${line.slice(0, 160)}…` : line
}
