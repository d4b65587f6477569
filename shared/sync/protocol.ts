/**
 * What replicas and server say to each other, with runtime schemas. One protocol version for all of it.
 *
 * Version history
 *  1  first: push of mutations, requests multiplexed over one WebSocket.
 *
 * Read path: Electric's shape protocol (`GET /v1/shape?table=<table name>&replica=full&offset=…`), where `table` names a shape that the server defines:
 * it adds tenant, person, gateway and replica conditions itself and ignores any `where`, `params` and `columns` of the client.
 * Every request carries the replica's id (`x-hq-replica`, and `replica_id=` in shape URLs, so that two replicas never share a cache entry).
 *
 * Write path: `POST /v1/mutations` with a `PushRequest`.
 */
import { z } from 'zod'
import { ENUMS } from '../schema/enums.ts'

export const PROTOCOL_VERSION = 1

/** WebSocket subprotocol of `/v1/sync`. */
export const SYNC_SUBPROTOCOL = 'hq-sync.1'

export const REPLICA_HEADER = 'x-hq-replica'

/** Limits that the server enforces; a replica keeps below them so that its outbox can never wedge on its own size. */
export const LIMITS = {
  /** mutations in one push */
  mutationsPerPush: 200,
  /** bytes of one push body */
  pushBytes: 4 * 1024 * 1024,
  /** bytes of one mutation as JSON; larger is rejected (`too_large`), not retried */
  mutationBytes: 2 * 1024 * 1024,
  /** patches in one mutation */
  patchesPerMutation: 2_000,
  /** how far ahead of the server a clock may be before its HLC is clamped, in ms */
  clockDriftMs: 5 * 60_000,
} as const

/**
 * Values travel as `to_jsonb` prints them, except that `bigint`, `numeric` and `double precision` are strings, so that no digit is lost in
 * a JSON number. `bytea` is `\x…` hex. Arrays are JSON arrays.
 */
const values = z.record(z.string(), z.json())

export const patchSchema = z.object({
  table: z.string(),
  id: z.uuid(),
  op: z.enum(ENUMS.patch_op),
  /** insert: all columns that differ from null; update: the changed ones; delete: empty. */
  set: values,
  /** update and delete: what the changed columns were before, as this replica saw them. */
  base: values,
})

export const actorSchema = z.object({ type: z.enum(ENUMS.actor_type), id: z.uuid().nullable() })

export const mutationSchema = z.object({
  /** 1, 2, 3, … without gaps per replica. */
  seq: z.int().positive(),
  mutation_id: z.uuid(),
  actor: actorSchema,
  run_id: z.uuid().nullable(),
  /** `<12 hex ms>-<4 hex counter>-<replica id>`: sorts as text. Assigned when the change was made, never at sending. */
  hlc: z.string().regex(/^[0-9a-f]{12}-[0-9a-f]{4}-[0-9a-f-]{36}$/),
  patches: z.array(patchSchema).max(LIMITS.patchesPerMutation),
})

export const pushRequestSchema = z.object({
  protocol: z.literal(PROTOCOL_VERSION),
  replica_id: z.uuid(),
  /** Name of the newest migration that the replica has applied. */
  schema_version: z.string(),
  mutations: z.array(z.unknown()).max(LIMITS.mutationsPerPush),
})

export type Patch = z.infer<typeof patchSchema>
export type Actor = z.infer<typeof actorSchema>
export type Mutation = z.infer<typeof mutationSchema>
export type PushRequest = Omit<z.infer<typeof pushRequestSchema>, 'mutations'> & { mutations: Mutation[] }

/**
 * Why a mutation was refused. `malformed`, `too_large`: the server could not read it. `forbidden`: role, tenant or gateway.
 * `unknown_table`, `unknown_column`: schema. `missing_row`: an update of a row that the server has never had, or that was purged.
 * `stale`: a `strict` column had another value. `immutable`: a column that cannot change. `not_unique`: taken (`detail.columns`).
 * `invalid`: a value or a rule of the domain (message says which). `missing_reference`: names a row that does not exist.
 */
export const REJECTION_CODES = [
  'malformed',
  'too_large',
  'forbidden',
  'unknown_table',
  'unknown_column',
  'missing_row',
  'stale',
  'immutable',
  'not_unique',
  'invalid',
  'missing_reference',
] as const
export type RejectionCode = (typeof REJECTION_CODES)[number]

export const pushResultSchema = z.object({
  seq: z.int(),
  outcome: z.enum(ENUMS.mutation_outcome),
  code: z.enum(REJECTION_CODES).optional(),
  message: z.string().optional(),
})

/** 200. Results are for flow control only; a mutation is settled through the read path. */
export const pushResponseSchema = z.object({ last_seq: z.int(), results: z.array(pushResultSchema) })
export type PushResult = z.infer<typeof pushResultSchema>
export type PushResponse = z.infer<typeof pushResponseSchema>

/**
 * Body of every other status: 400 `malformed`, 401 `unauthenticated`, 403 `forbidden` | `revoked` | `wrong_tenant`,
 * 409 `out_of_order` (with `expected_seq`) | `identity_taken` (another copy of this replica has used the number `detail.seq`), 413 `too_large`, 426 `schema_too_old` | `schema_too_new` | `protocol`, 503 `busy`.
 */
export const errorBodySchema = z.object({
  code: z.string(),
  message: z.string(),
  expected_seq: z.int().optional(),
  detail: z.record(z.string(), z.json()).optional(),
})
export type ErrorBody = z.infer<typeof errorBodySchema>

/** Frames of the WebSocket `/v1/sync`: HTTP requests, multiplexed. JSON text, one frame a message. */
export const clientFrameSchema = z.discriminatedUnion('t', [
  z.object({
    t: z.literal('req'),
    /** Unique within the connection. */
    id: z.int().nonnegative(),
    method: z.enum(['GET', 'POST', 'DELETE']),
    /** Path and query, beginning with `/v1/`. */
    path: z.string().startsWith('/v1/').max(32_768),
    headers: z.record(z.string(), z.string()),
    body: z.string().optional(),
  }),
  /** The requester no longer waits; the server frees what it holds and answers nothing. */
  z.object({ t: z.literal('cancel'), id: z.int().nonnegative() }),
  z.object({ t: z.literal('ping'), n: z.int() }),
])

export const serverFrameSchema = z.discriminatedUnion('t', [
  z.object({
    t: z.literal('res'),
    id: z.int().nonnegative(),
    status: z.int(),
    headers: z.record(z.string(), z.string()),
    body: z.string(),
  }),
  z.object({ t: z.literal('pong'), n: z.int() }),
])

export type ClientFrame = z.infer<typeof clientFrameSchema>
export type ServerFrame = z.infer<typeof serverFrameSchema>

/** Why the server closes the socket. */
export const CLOSE = { unauthenticated: 4401, forbidden: 4403, protocol: 4400, shuttingDown: 1001 } as const

/** `GET /v1/session`: who the caller is, as the server sees it. */
export const principalSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('person'),
    tenant_id: z.uuid(),
    person_id: z.uuid(),
    role: z.enum(ENUMS.role),
    name: z.string(),
    email: z.string(),
  }),
  z.object({ kind: z.literal('gateway'), tenant_id: z.uuid(), gateway_id: z.uuid(), slug: z.string() }),
])
export type Principal = z.infer<typeof principalSchema>

export const sessionResponseSchema = z.object({
  principal: principalSchema.nullable(),
  /** True until the first person has created the workspace's owner. */
  setup_required: z.boolean(),
  server: z.object({
    version: z.string(),
    schema_version: z.string(),
    /** Changes when the database was restored from a backup: replicas then refetch. */
    epoch: z.string(),
  }),
})
export type SessionResponse = z.infer<typeof sessionResponseSchema>
