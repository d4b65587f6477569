/**
 * What a model connection knows about signing in (`model_connections.oauth`): where, and as which client. Seen by everybody, so no secret may be in it:
 * the client is a public one (RFC 8252), what it gets is kept by the gateway alone.
 *
 *  1. Addresses are https; http only on the gateway's own machine. No name, password, query or fragment in them.
 *  2. There is at least one way to sign in: `authorize_url` (a browser, and the address it ends at is pasted) or `device_url` (a code to type).
 */
export interface OauthSettings {
  readonly authorize_url?: string
  readonly device_url?: string
  readonly token_url: string
  readonly client_id: string
  readonly scope?: string
  /** Registered with the provider; nobody listens there, its address is pasted. */
  readonly redirect_uri?: string
}

export type SignInFlow = 'paste' | 'device'

/** Where a browser ends when the connection names nothing else. */
export const DEFAULT_REDIRECT = 'http://localhost:8976/callback'

/** How `status_detail` begins when a further sign-in failed beside one that still counts. */
export const STILL_COUNTS = 'The new sign-in did not work; the one before still counts.'

/** `status_detail` while a person signs in. */
export const WAITING_FOR_SIGN_IN = 'Waiting for the sign-in.'

const FIELDS = ['authorize_url', 'device_url', 'token_url', 'client_id', 'scope', 'redirect_uri'] as const
export type OauthField = (typeof FIELDS)[number]

/** `localhost`, `127.…` and `[::1]` as they are typed: no name that could lead elsewhere. */
export const isLoopbackHost = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)

function addressProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) return 'An address begins with https://.'
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname))
    return 'Only https:// keeps a sign-in secret on its way; http:// is for the gateway’s own machine.'
  return url.username || url.password || url.search || url.hash
    ? 'Everybody here sees the address: take name, password and everything behind “?” or “#” out of it.'
    : undefined
}

/** By field; empty when all is well. */
export function oauthProblems(value: Readonly<Record<string, unknown>>): Readonly<Partial<Record<OauthField, string>>> {
  const problems: Partial<Record<OauthField, string>> = {}
  const text = (field: OauthField): string => (typeof value[field] === 'string' ? value[field] : '')
  for (const field of FIELDS) {
    const given = value[field]
    if (given === undefined) continue
    if (typeof given !== 'string' || given.trim() === '' || given.length > 1_000)
      problems[field] = 'Please fill this in, or leave it out.'
    else if (field !== 'client_id' && field !== 'scope') {
      const problem = addressProblem(given)
      if (problem) problems[field] = problem
    }
  }
  if (text('token_url') === '') problems.token_url = 'Please give the provider’s token address.'
  if (!/^[\x21-\x7e]{1,300}$/.test(text('client_id')))
    problems.client_id = 'Please give the client’s public identifier.'
  if (text('authorize_url') === '' && text('device_url') === '')
    problems.authorize_url = 'Please give an address to sign in at.'
  return problems
}

export type OauthRead =
  | { readonly ok: true; readonly settings: OauthSettings }
  | { readonly ok: false; readonly message: string }

export function readOauth(value: unknown): OauthRead {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { ok: false, message: 'The settings of the sign-in are no list of fields.' }
  const unknown = Object.keys(value).find((name) => !(FIELDS as readonly string[]).includes(name))
  if (unknown !== undefined)
    return {
      ok: false,
      message: `The settings of a sign-in have no “${unknown.slice(0, 40)}”: everybody sees them, so no secret goes there.`,
    }
  const [problem] = Object.entries(oauthProblems(value as Record<string, unknown>))
  return problem
    ? { ok: false, message: `${problem[0]}: ${problem[1]}` }
    : { ok: true, settings: value as unknown as OauthSettings }
}
