/**
 * Who a replica is, and how it notices that it is a copy: pure.
 *
 * I1 A replica id is minted once per database. A database that remembers another guard than the one beside it is a copy: it gets a new id, and what is
 *    pending in it is numbered anew (two writers must never share numbers).
 * I2 A database is of one person or gateway and of one workspace, for ever.
 * I3 An acknowledgement of a number that we never gave, or that we gave to another mutation, is of somebody who shares our id: we are, or were, copied.
 */
import type { BatchAck } from './pull.ts'

/** What the database remembers. */
export interface Remembered {
  readonly replicaId: string
  readonly tenantId: string
  readonly ownerId: string
  readonly guard: string | null
}

export interface Presented {
  readonly tenantId: string
  readonly ownerId: string
  readonly kind: 'browser' | 'gateway'
  /** Kept outside the database; undefined: not checked. */
  readonly guard: string | undefined
}

export type Identification =
  | { readonly type: 'same' }
  /** The first time that a guard is given. */
  | { readonly type: 'remember_guard'; readonly guard: string }
  | { readonly type: 'copy'; readonly guard: string | undefined }
  | { readonly type: 'foreign'; readonly message: string }

/** @param foreign what `foreignAck` says of the last acknowledgement that the database has stored */
export function identify(
  known: Remembered,
  { tenantId, ownerId, kind, guard }: Presented,
  foreign?: string,
): Identification {
  if (known.tenantId !== tenantId || known.ownerId !== ownerId) {
    const whose = known.tenantId !== tenantId ? 'workspace' : kind === 'browser' ? 'person' : 'gateway'
    return { type: 'foreign', message: `This database belongs to another ${whose}. Open another one for ${ownerId}.` }
  }
  if (foreign !== undefined) return { type: 'copy', guard }
  if (guard === undefined || known.guard === guard) return { type: 'same' }
  if (known.guard === null) return { type: 'remember_guard', guard }
  return { type: 'copy', guard }
}

/** What the outbox says of the mutation numbered `ack.seq`. */
export interface Numbered {
  /** The number that the next mutation gets. */
  readonly next: number
  /** Undefined: no longer in the outbox. */
  readonly mutationId: string | undefined
}

/** Why this acknowledgement can't be ours (I3); undefined: it is. */
export function foreignAck(ack: BatchAck, { next, mutationId }: Numbered): string | undefined {
  if (ack.seq >= next) return `the server acknowledges mutation ${ack.seq} of this identity, which was never made here`
  if (mutationId !== undefined && ack.mutationId !== undefined && ack.mutationId !== mutationId) {
    return `the server acknowledges another mutation ${ack.seq} of this identity than the one made here`
  }
  return undefined
}
