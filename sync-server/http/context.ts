/** What the HTTP routes share. */
import type { IncomingMessage } from 'node:http'
import { type Role, roleAtLeast } from '@hq/shared/domain/access.ts'
import type { Principal } from '@hq/shared/sync/protocol.ts'
import type { Context } from 'hono'
import type { Pool } from '../database/pool.ts'
import { HttpError, unauthenticated } from '../errors.ts'
import type { Auth } from '../people/auth.ts'
import type { Authenticate } from '../people/principal.ts'
import type { Replicas } from './replicas.ts'

export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

/** Tells sockets and caches that what they know of a person, gateway or replica may be out of date. */
export interface AccessChanges {
  announce(): void
  subscribe(listener: () => void): () => void
}

export function createAccessChanges(): AccessChanges {
  const listeners = new Set<() => void>()
  return {
    announce: () => {
      for (const listener of listeners) listener()
    },
    subscribe: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export interface Services {
  readonly pool: Pool
  readonly auth: Auth
  readonly authenticate: Authenticate
  readonly replicas: Replicas
  readonly accessChanges: AccessChanges
  readonly tenantId: string
  readonly epoch: string
  readonly version: string
  readonly schemaVersion: string
  readonly log: Log
}

/** `inProcess` is set by the WebSocket only, which has authenticated its upgrade; nothing that comes over HTTP can set it. */
export interface Env {
  Bindings: {
    readonly incoming?: IncomingMessage
    readonly inProcess?: { readonly principal: Principal; readonly address: string }
  }
  Variables: { principal?: Principal | null }
}

export type Ctx = Context<Env>

/** The caller, looked up once a request. */
export async function principalOf(c: Ctx, services: Services): Promise<Principal | null> {
  const known = c.get('principal')
  if (known !== undefined) return known
  const principal = c.env?.inProcess?.principal ?? (await services.authenticate(c.req.raw.headers))
  c.set('principal', principal)
  return principal
}

export async function requirePrincipal(c: Ctx, services: Services): Promise<Principal> {
  const principal = await principalOf(c, services)
  if (!principal) throw unauthenticated()
  return principal
}

export async function requirePerson(c: Ctx, services: Services, role: Role): Promise<Principal & { kind: 'person' }> {
  const principal = await requirePrincipal(c, services)
  if (principal.kind !== 'person') throw new HttpError(403, 'forbidden', 'Only people can do this.')
  if (!roleAtLeast(principal.role, role))
    throw new HttpError(403, 'forbidden', `Your role is ${principal.role}; this takes ${role} or higher.`)
  return principal
}

export const addressOf = (c: Ctx): string =>
  c.env?.inProcess?.address ?? c.env?.incoming?.socket.remoteAddress ?? 'unknown'

/** The body as JSON, or a 400. */
export async function jsonBody(c: Ctx): Promise<unknown> {
  const text = await c.req.text()
  if (!text.trim()) return {}
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new HttpError(400, 'malformed', `The body is not JSON: ${error instanceof Error ? error.message : ''}`)
  }
}
