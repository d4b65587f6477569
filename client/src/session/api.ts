/**
 * The few things that need the server: who am I, setting up, signing in and out, invitations.
 *
 * Every failure is an `ApiError` whose message is for the person in front of the screen.
 */
import { errorBodySchema, type SessionResponse, sessionResponseSchema } from '@hq/shared/sync/protocol.ts'

export class ApiError extends Error {
  override name = 'ApiError'
  /** The server's code, or `unreachable`. */
  readonly code: string
  /** What is wrong with which field. */
  readonly fields: Readonly<Record<string, string>>
  constructor(code: string, message: string, fields: Readonly<Record<string, string>> = {}) {
    super(message)
    this.code = code
    this.fields = fields
  }
}

export interface SetupInput {
  readonly name: string
  readonly email: string
  readonly password: string
  readonly workspace_name: string
  readonly timezone: string
}

export interface Invitation {
  readonly workspace_name: string
  readonly invited_by: string
  readonly email: string | null
  readonly role: string
  readonly expires_at: string
}

export const fetchSession = async (): Promise<SessionResponse> =>
  sessionResponseSchema.parse(await request('GET', '/v1/session'))

export const setUp = (input: SetupInput): Promise<unknown> => request('POST', '/v1/setup', input)

export const signIn = (email: string, password: string): Promise<unknown> =>
  request('POST', '/api/auth/sign-in/email', { email, password })

export const signOut = (): Promise<unknown> => request('POST', '/api/auth/sign-out', {})

export const findInvitation = async (token: string): Promise<Invitation> =>
  (await request('GET', `/v1/invitations/by-token/${encodeURIComponent(token)}`)) as Invitation

export const acceptInvitation = (
  token: string,
  input: { readonly name: string; readonly email: string; readonly password: string },
): Promise<unknown> => request('POST', `/v1/invitations/by-token/${encodeURIComponent(token)}/accept`, input)

const TIMEOUT_MS = 10_000

export async function request(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<unknown> {
  let response: Response
  try {
    response = await fetch(path, {
      method,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      cache: 'no-store',
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
  } catch (error) {
    const late = error instanceof DOMException && error.name === 'TimeoutError'
    throw new ApiError(
      'unreachable',
      late ? 'The server did not answer within 10 seconds.' : 'The server cannot be reached.',
    )
  }
  const text = await response.text()
  if (response.ok) return text === '' ? undefined : parseJson(text)
  const parsed = errorBodySchema.safeParse(parseJson(text))
  if (!parsed.success) {
    throw new ApiError(
      'unreachable',
      `The server answered ${response.status} without saying why. It may be starting; try again in a moment.`,
    )
  }
  const { code, message, detail } = parsed.data
  throw new ApiError(code, message, fieldsOf(detail?.fields))
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // a proxy's error page, for example: the caller sees that it is no answer of ours
  }
}

function fieldsOf(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}
