/** Errors that a client may see: `{code, message}` with a status. Everything else becomes a 500 without its text. */
import type { ErrorBody } from '@hq/shared/sync/protocol.ts'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { isDatabaseAway } from './database/pool.ts'

export class HttpError extends Error {
  readonly status: ContentfulStatusCode
  readonly body: ErrorBody
  readonly headers: Readonly<Record<string, string>>
  constructor(
    status: ContentfulStatusCode,
    code: string,
    message: string,
    more: Omit<ErrorBody, 'code' | 'message'> = {},
    headers: Record<string, string> = {},
  ) {
    super(message)
    this.status = status
    this.body = { code, message, ...more }
    this.headers = headers
  }
}

export const unauthenticated = (): HttpError =>
  new HttpError(401, 'unauthenticated', 'Please sign in: this session is unknown or has ended.')

export const busy = (): HttpError =>
  new HttpError(
    503,
    'busy',
    "The server can't reach its database just now. Nothing is lost; try again in a moment.",
    {},
    { 'retry-after': '2' },
  )

/** What a client may be told about an error; undefined: nothing, it is a defect of ours and goes to the log. */
export const knownError = (error: unknown): HttpError | undefined =>
  error instanceof HttpError ? error : isDatabaseAway(error) ? busy() : undefined
