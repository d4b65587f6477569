/**
 * What a page, its worker and the workers of other tabs say to each other. Everything here survives a structured clone.
 *
 * Page ⇄ own worker by `postMessage`; worker ⇄ worker by a BroadcastChannel named after the database. One worker, the
 * leader, holds the database; the others pass their page's calls on to it.
 */
import type { TableName } from '@hq/shared/schema/tables.ts'
import type { SqlValue, Statement, SyncStatus, WriteOptions } from '@hq/shared/sync/contract.ts'

/** What a call asks of the database. Only reads and `write` may be sent again to a new leader: `write` is recorded by its call's id. */
export type Request =
  | { readonly kind: 'query'; readonly sql: string; readonly params: readonly SqlValue[] }
  | { readonly kind: 'write'; readonly statements: readonly Statement[]; readonly options: WriteOptions }
  | { readonly kind: 'outbox' }
  | { readonly kind: 'retry'; readonly seq: number; readonly set?: Corrections | undefined }
  | { readonly kind: 'discard'; readonly seq: number }
  | { readonly kind: 'rebuild' }
  | { readonly kind: 'rescued' }
  | { readonly kind: 'forget-rescued' }
  /** Changes of an exported file, made again; those that this database still holds are left out. */
  | { readonly kind: 'import'; readonly lines: readonly string[] }

/** Other values for a rejected mutation: `{[table]: {[row id]: {[column]: value}}}`. */
export type Corrections = Record<string, Record<string, Record<string, unknown>>>

export interface Call {
  /** A UUID; for a write also the key under which its effect is recorded. */
  readonly id: string
  readonly request: Request
  /** Milliseconds since 1970 after which nobody waits for the answer; a leader does not begin a call after it. */
  readonly deadline: number
}

export type Answer =
  | { readonly id: string; readonly ok: true; readonly value: unknown }
  | { readonly id: string; readonly ok: false; readonly error: Failure }

export interface Failure {
  readonly code: FailureCode
  readonly message: string
}

/**
 * `timeout`   no answer in time. A read had no effect; a write may still be carried out (its id makes it count once).
 * `unsure`    the leader went away in the middle of something that must not be repeated (retry or discard).
 * `failed`    the database on this device cannot be opened.
 * `closed`    the session ended.
 * `full`      there is no space left on this device; nothing of it was kept.
 * `sql`       the statement was refused; nothing of it was kept.
 */
export type FailureCode = 'timeout' | 'unsure' | 'failed' | 'closed' | 'full' | 'sql'

/** Where the database stands. `notice`: for a person, when something about it is not as it should be (nothing is kept, it was rebuilt). */
export type Phase =
  | { readonly name: 'starting' }
  | { readonly name: 'installing' }
  | { readonly name: 'opening' }
  | {
      readonly name: 'open'
      readonly storage: StorageKind
      readonly notice: string | null
    }
  | { readonly name: 'failed'; readonly message: string }

export type StorageKind = 'opfs' | 'idb' | 'memory'

/** Changes taken out of a database that was lost: how many wait for the first load to end, and which could not be made again. */
export interface RescuedChanges {
  readonly waiting: number
  readonly failed: readonly { readonly line: string; readonly reason: string }[]
}

/** What became of an imported file. */
export interface ImportedChanges {
  readonly imported: number
  /** They already wait here. */
  readonly known: number
  readonly failed: readonly { readonly line: string; readonly reason: string }[]
}

/** Tables that changed; `'all'` when changes may have been missed (another leader, a rebuild). `sync` stands for the outbox. */
export type Changed = readonly (TableName | 'sync')[] | 'all'

/** Which database a worker serves. */
export interface DatabaseIdentity {
  readonly tenantId: string
  readonly personId: string
}

export type ToWorker =
  | { readonly t: 'start'; readonly identity: DatabaseIdentity }
  | { readonly t: 'call'; readonly call: Call }
  | { readonly t: 'cancel'; readonly id: string }
  /** The network came or went, or the person signed in again: try at once instead of waiting out a pause. */
  | { readonly t: 'wake' }
  | { readonly t: 'close' }

export type ToPage =
  | { readonly t: 'answer'; readonly answer: Answer }
  | { readonly t: 'phase'; readonly phase: Phase }
  | { readonly t: 'status'; readonly status: SyncStatus }
  | { readonly t: 'changed'; readonly changed: Changed }
  | { readonly t: 'leading'; readonly leading: boolean }
  | { readonly t: 'closed' }
  | { readonly t: 'restart'; readonly reason: string }

/** Between workers. `epoch` is one leader's reign; a leader ignores calls for another. */
export type Broadcast =
  | { readonly t: 'who' }
  | { readonly t: 'leader'; readonly epoch: string; readonly phase: Phase; readonly status: SyncStatus }
  | { readonly t: 'call'; readonly epoch: string; readonly call: Call }
  | { readonly t: 'answer'; readonly epoch: string; readonly answer: Answer }
  | { readonly t: 'status'; readonly epoch: string; readonly status: SyncStatus }
  | { readonly t: 'changed'; readonly epoch: string; readonly changed: Changed }
  | { readonly t: 'wake' }

/** Nothing known yet. */
export const UNKNOWN_STATUS: SyncStatus = {
  connection: 'connecting',
  pending: 0,
  oldestPendingAt: null,
  rejected: 0,
  parked: null,
  initial: { done: false, rows: 0, tablesDone: 0, tables: 0 },
  lastHeardAt: null,
  stalledSince: null,
}

/** No call waits longer than this once the database has been open in this tab. */
export const CALL_LIMIT_MS = 5_000
