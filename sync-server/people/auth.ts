/**
 * Sign-in of people: better-auth with email and password, sessions of 90 days that renew themselves, telemetry off.
 *
 * Sign-up is closed: people come by setup (the first) or by invitation, which write better-auth's rows in the same transaction as the person
 * (`createUser`). Its own CSRF and rate checks are off because `http/` has them for all routes alike.
 */
import { betterAuth } from 'better-auth'
import { hashPassword } from 'better-auth/crypto'
import { newId } from '../database/ids.ts'
import type { Pool, Queryable } from '../database/pool.ts'

const DAY = 86_400

export type Auth = ReturnType<typeof createAuth>

export interface AuthOptions {
  readonly pool: Pool
  readonly secret: string
  /** True when people reach HQ by https: cookies are then marked `Secure`. */
  readonly secure: boolean
  readonly onError: (message: string) => void
}

export function createAuth({ pool, secret, secure, onError }: AuthOptions) {
  return betterAuth({
    database: pool,
    secret,
    baseURL: secure ? 'https://localhost' : 'http://localhost',
    basePath: '/api/auth',
    emailAndPassword: { enabled: true, disableSignUp: true, minPasswordLength: MIN_PASSWORD, maxPasswordLength: 200 },
    session: { modelName: 'auth_session', expiresIn: 90 * DAY, updateAge: DAY, freshAge: 0 },
    user: { modelName: 'auth_user' },
    account: { modelName: 'auth_account' },
    verification: { modelName: 'auth_verification' },
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    advanced: { cookiePrefix: 'hq', useSecureCookies: secure, disableCSRFCheck: true, disableOriginCheck: true },
    logger: {
      level: 'error',
      log: (level, message) => {
        if (level === 'error') onError(message)
      },
    },
  })
}

export const MIN_PASSWORD = 8

/** Inserts a user who can sign in with `password`; returns its id. The email must be new (unique violation otherwise). */
export async function createUser(
  db: Queryable,
  { name, email, password }: { name: string; email: string; password: string },
): Promise<string> {
  const id = newId()
  await db.query(
    `insert into auth_user (id, name, email, "emailVerified", "createdAt", "updatedAt") values ($1, $2, $3, true, now(), now())`,
    [id, name, email],
  )
  await db.query(
    `insert into auth_account (id, "accountId", "providerId", "userId", password, "createdAt", "updatedAt")
     values ($1, $2, 'credential', $2, $3, now(), now())`,
    [newId(), id, await hashPassword(password)],
  )
  return id
}
