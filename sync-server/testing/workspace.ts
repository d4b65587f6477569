/**
 * A whole server for tests: real Postgres, real HTTP, an owner who is signed in, and helpers to add people, gateways and writers.
 *
 *     const workspace = await startWorkspace()
 *     try { const ann = workspace.writer(workspace.owner); await ann.push([insert('tasks', {…})]) } finally { await workspace.stop() }
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TableName } from '@hq/shared/schema/tables.ts'
import { hlcToText } from '@hq/shared/sync/hlc.ts'
import {
  type Actor,
  type ErrorBody,
  type Patch,
  PROTOCOL_VERSION,
  type Principal,
  type PushResponse,
} from '@hq/shared/sync/protocol.ts'
import { hashToken, newId, newToken } from '../database/ids.ts'
import { GATEWAY_TOKEN } from '../people/principal.ts'
import { type RunningServer, type ServerOptions, startServer } from '../server.ts'
import { startTestPostgres, type TestPostgres } from '../shapes/testing/postgres.ts'

export interface Caller {
  readonly headers: Readonly<Record<string, string>>
  readonly principal: Principal
}

export interface Person extends Caller {
  readonly principal: Principal & { kind: 'person' }
  readonly email: string
  readonly password: string
}

export interface Gateway extends Caller {
  readonly principal: Principal & { kind: 'gateway' }
  readonly token: string
}

/** What a gateway makes for itself, and what of it goes into its registration. The key has the right size and nobody's private half. */
export function newGatewayIdentity() {
  const token = GATEWAY_TOKEN + newToken()
  return { token, register: { bearer_hash: hashToken(token), public_key: randomBytes(32).toString('base64url') } }
}

export interface Workspace {
  readonly server: RunningServer
  readonly postgres: TestPostgres
  readonly url: string
  readonly home: string
  readonly tenantId: string
  readonly owner: Person
  join(role: 'admin' | 'member' | 'viewer', name?: string): Promise<Person>
  gateway(slug?: string): Promise<Gateway>
  /** A replica of `caller` that pushes. */
  writer(caller: Caller, replicaId?: string): Writer
  request(caller: Caller | undefined, path: string, init?: RequestInit): Promise<Response>
  /** Rows straight from the database. */
  rows<T = Record<string, unknown>>(sql: string, params?: unknown[]): Promise<T[]>
  /** Stops the server and starts it again on the same data. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export interface Writer {
  readonly replicaId: string
  readonly caller: Caller
  seq: number
  /** Pushes each list of patches as one mutation; all in one request. */
  push(...mutations: (readonly Patch[] | Draft)[]): Promise<PushResponse>
  /** The same, and fails unless all were applied. */
  apply(...mutations: (readonly Patch[] | Draft)[]): Promise<void>
  send(mutations: readonly unknown[]): Promise<{ status: number; body: PushResponse & ErrorBody }>
  mutation(draft: Draft): Record<string, unknown>
}

export interface Draft {
  readonly patches: readonly Patch[]
  readonly actor?: Actor
  readonly runId?: string
  /** Milliseconds of the clock; default now. */
  readonly at?: number
}

export const insert = (table: TableName, set: Record<string, unknown>, id = newId()): Patch => ({
  table,
  id,
  op: 'insert',
  set: set as Patch['set'],
  base: {},
})
export const update = (
  table: TableName,
  id: string,
  base: Record<string, unknown>,
  set: Record<string, unknown>,
): Patch => ({ table, id, op: 'update', set: set as Patch['set'], base: base as Patch['base'] })
export const remove = (table: TableName, id: string): Patch => ({ table, id, op: 'delete', set: {}, base: {} })

/** `options` may depend on the database, for what must run beside the server. */
export async function startWorkspace(
  options: Partial<ServerOptions> | ((databaseUrl: string) => Promise<Partial<ServerOptions>>) = {},
): Promise<Workspace> {
  const postgres = await startTestPostgres()
  const extra = typeof options === 'function' ? await options(postgres.url) : options
  const home = await mkdtemp(join(tmpdir(), 'hq-test-server-'))
  let server: RunningServer | undefined
  const start = (port = 0): Promise<RunningServer> => startServer({ databaseUrl: postgres.url, home, port, ...extra })
  try {
    server = await start()
    const { url } = server
    const running = (): RunningServer => {
      if (!server) throw new Error('the server was stopped')
      return server
    }
    const request = (caller: Caller | undefined, path: string, init: RequestInit = {}): Promise<Response> =>
      fetch(url + path, {
        ...init,
        headers: {
          ...(init.body ? { 'content-type': 'application/json' } : {}),
          ...caller?.headers,
          ...(init.headers as Record<string, string> | undefined),
        },
      })
    const post = (path: string, body: unknown, caller?: Caller): Promise<Response> =>
      request(caller, path, { method: 'POST', body: JSON.stringify(body) })
    const signedIn = async (response: Response, email: string, password: string): Promise<Person> => {
      if (!response.ok) throw new Error(`could not sign in: ${await response.text()}`)
      const cookie = response.headers
        .getSetCookie()
        .map((line) => line.split(';')[0])
        .join('; ')
      const headers = { cookie }
      const session = (await (await fetch(`${url}/v1/session`, { headers })).json()) as {
        principal: Person['principal']
      }
      return { headers, principal: session.principal, email, password }
    }

    const password = 'correct horse battery'
    const owner = await signedIn(
      await post('/v1/setup', {
        name: 'Olga Owner',
        email: 'owner@example.com',
        password,
        workspace_name: 'Acme',
        timezone: 'Europe/Berlin',
      }),
      'owner@example.com',
      password,
    )
    let people = 0
    const workspace: Workspace = {
      get server() {
        return running()
      },
      postgres,
      url,
      home,
      tenantId: server.tenantId,
      owner,
      request,
      async join(role, name = `Person ${++people}`) {
        const email = `${randomUUID().slice(0, 8)}@example.com`
        const invitation = (await (await post('/v1/invitations', { role }, owner)).json()) as { url: string }
        const token = invitation.url.split('/').at(-1)
        return signedIn(
          await post(`/v1/invitations/by-token/${token}/accept`, { name, email, password }),
          email,
          password,
        )
      },
      async gateway(slug = `gateway-${randomUUID().slice(0, 8)}`) {
        const { token } = (await (await post('/v1/gateways/tokens', { label: slug }, owner)).json()) as {
          token: string
        }
        const identity = newGatewayIdentity()
        const answer = await post('/v1/gateways/register', { token, slug, label: slug, ...identity.register })
        const made = (await answer.json()) as { gateway_id: string }
        const principal = { kind: 'gateway', tenant_id: running().tenantId, gateway_id: made.gateway_id, slug } as const
        return { headers: { authorization: `Bearer ${identity.token}` }, token: identity.token, principal }
      },
      writer: (caller, replicaId = newId()) => createWriter(caller, replicaId, request),
      rows: async <T>(sql: string, params: unknown[] = []) => (await running().pool.query(sql, params)).rows as T[],
      async restart() {
        const { port } = running()
        await running().stop()
        server = await start(port)
      },
      async stop() {
        await server?.stop()
        server = undefined
        await postgres.stop()
        await rm(home, { recursive: true, force: true })
      },
    }
    return workspace
  } catch (error) {
    await server?.stop()
    await postgres.stop()
    await rm(home, { recursive: true, force: true })
    throw error
  }
}

export function createWriter(caller: Caller, replicaId: string, request: Workspace['request']): Writer {
  let counter = 0
  const { principal } = caller
  const own: Actor =
    principal.kind === 'person' ? { type: 'human', id: principal.person_id } : { type: 'system', id: null }
  const writer: Writer = {
    replicaId,
    caller,
    seq: 0,
    mutation: ({ patches, actor = own, runId, at = Date.now() }) => ({
      seq: ++writer.seq,
      mutation_id: randomUUID(),
      actor,
      run_id: runId ?? null,
      hlc: hlcToText({ ms: at, counter: counter++ % 0xffff }, replicaId),
      patches,
    }),
    async send(mutations) {
      const body = JSON.stringify({
        protocol: PROTOCOL_VERSION,
        replica_id: replicaId,
        schema_version: '0001_schema.sql',
        mutations,
      })
      const response = await request(caller, '/v1/mutations', { method: 'POST', body })
      return { status: response.status, body: (await response.json()) as PushResponse & ErrorBody }
    },
    async push(...drafts) {
      const mutations = drafts.map((draft) => writer.mutation('patches' in draft ? draft : { patches: draft }))
      const { status, body } = await writer.send(mutations)
      if (status !== 200) throw new Error(`push answered ${status}: ${JSON.stringify(body)}`)
      return body
    },
    async apply(...drafts) {
      const { results } = await writer.push(...drafts)
      const refused = results.filter(({ outcome }) => outcome !== 'applied')
      if (refused.length > 0) throw new Error(`not applied: ${JSON.stringify(refused)}`)
    },
  }
  return writer
}
