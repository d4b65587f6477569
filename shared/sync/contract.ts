/**
 * What a replica offers to the code above it: the same in a browser's worker and in a gateway.
 *
 * Everybody reads and writes ordinary tables by ordinary SQL. Writing goes through `write`, which is one local transaction, one outbox row, and one
 * transaction on the server. `write` returns when the change is durable here; nothing in it waits for the network (P1, P2).
 *
 * Deleting is `update … set deleted_at = now()`; an SQL DELETE on a synced table becomes just that.
 */
import type { TableName } from '../schema/tables.ts'
import type { Actor, RejectionCode } from './protocol.ts'

export type SqlValue = string | number | boolean | null | Date | Uint8Array | readonly SqlValue[] | object

export interface Tx {
  query<T = Record<string, unknown>>(sql: string, params?: readonly SqlValue[]): Promise<T[]>
}

export interface Statement {
  readonly sql: string
  readonly params?: readonly SqlValue[]
}

export interface WriteOptions {
  /** Who makes the change; by default the replica's own person, or `system` on a gateway. */
  readonly actor?: Actor
  /** The agent run that it belongs to. */
  readonly runId?: string
}

export interface Written<T> {
  readonly result: T
  /** Undefined when nothing changed. */
  readonly seq: number | undefined
}

/** Ids of rows that changed, by local writes, by sync or by a rejection. `'many'`: too many to name (initial sync, refetch). */
export type Changes = ReadonlyMap<TableName, ReadonlySet<string> | 'many'>

export interface Replica extends Tx {
  readonly identity: ReplicaIdentity
  /** Runs `work` in one transaction. Throws what `work` throws, after a rollback; then nothing is recorded. */
  write<T>(work: (tx: Tx) => Promise<T>, options?: WriteOptions): Promise<Written<T>>
  /** The same for callers that cannot pass a function (other tabs): all statements in one transaction; the results are their rows. */
  writeAll(statements: readonly Statement[], options?: WriteOptions): Promise<Written<Record<string, unknown>[][]>>
  /** Called after each committed change, at once, with everything that changed in it. Returns the end of the subscription. */
  onChange(listener: (changes: Changes) => void): () => void
  status(): SyncStatus
  onStatus(listener: (status: SyncStatus) => void): () => void
  /** Pending and rejected mutations with their patches, oldest first. */
  outbox(): Promise<OutboxEntry[]>
  /** Sends a rejected mutation once more, as a new one, with other values where `set` names them: `{[table]: {[id]: {column: value}}}`. */
  retry(seq: number, set?: Record<string, Record<string, Record<string, unknown>>>): Promise<void>
  /** Gives a rejected mutation up, for good. Only ever called because a person said so (P5). */
  discard(seq: number): Promise<void>
  /** Ends connections and closes the database. What is pending stays in it. */
  close(): Promise<void>
}

export interface ReplicaIdentity {
  readonly replicaId: string
  readonly tenantId: string
  readonly kind: 'browser' | 'gateway'
  /** `personId` for a browser, `gatewayId` for a gateway. */
  readonly ownerId: string
}

export interface SyncStatus {
  /** `unauthorized`: the server no longer knows us (sign in again); what is pending is parked, not dropped. */
  readonly connection: 'connecting' | 'online' | 'offline' | 'unauthorized'
  readonly pending: number
  /** ISO time of the oldest change that the server has not acknowledged. */
  readonly oldestPendingAt: string | null
  readonly rejected: number
  /** Why nothing is sent although we are online: `schema_too_old`, `revoked`, `disk_full`, …; null: it is. */
  readonly parked: string | null
  /** Progress of the first synchronisation; `done` stays true afterwards. */
  readonly initial: {
    readonly done: boolean
    readonly rows: number
    readonly tablesDone: number
    readonly tables: number
  }
  /** ISO time when the server was last heard of. */
  readonly lastHeardAt: string | null
  /** ISO time since which the server answers, but cannot bring changes (its database or its Electric is away); null: it can. */
  readonly stalledSince: string | null
}

export interface OutboxEntry {
  readonly seq: number
  readonly mutationId: string
  readonly state: OutboxState
  readonly createdAt: string
  readonly actor: Actor
  readonly runId: string | null
  readonly patches: readonly {
    readonly table: TableName
    readonly id: string
    readonly op: 'insert' | 'update' | 'delete'
    readonly set: Record<string, unknown>
    readonly base: Record<string, unknown>
  }[]
  readonly rejection: { readonly code: RejectionCode; readonly message: string } | null
}

/**
 * `pending` not acknowledged · `accepted` the server has it, its echo is on the way · `rejected` refused, waits for a person ·
 * settled and discarded mutations are no longer in the outbox.
 */
export type OutboxState = 'pending' | 'accepted' | 'rejected'

/** What an adapter supplies: `shared/sync` itself opens no socket and reads no clock of its own. */
export interface ReplicaEnvironment {
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly randomUuid: () => string
  /** HTTP to the server; the WebSocket multiplexer in production, plain fetch in some tests. Rejects when the server cannot be reached. */
  readonly fetch: (input: string, init?: RequestInit) => Promise<Response>
  readonly log: (level: 'debug' | 'info' | 'warn' | 'error', message: string, detail?: Record<string, unknown>) => void
}
