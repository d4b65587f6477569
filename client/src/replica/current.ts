/**
 * The replica of whoever is signed in. There is one per page; signing in as somebody else reloads the page.
 * Screens use the hooks; `replica()` is for code outside React (commands of the palette, for example).
 */
import { ReplicaConnection } from './connection.ts'
import type { DatabaseIdentity } from './messages.ts'

let current: ReplicaConnection | undefined

/** The connection; throws before sign-in. */
export function replica(): ReplicaConnection {
  if (!current) throw new Error('The local database is not open: nobody is signed in.')
  return current
}

/** Opens the replica of a person, once. */
export function openReplicaFor(identity: DatabaseIdentity): ReplicaConnection {
  const open = current !== undefined && !current.closed
  if (open && current && !samePerson(current.identity, identity)) {
    throw new Error('Another person’s database is open in this page; reload it first.')
  }
  if (!open || !current) {
    current = new ReplicaConnection(
      identity,
      () => new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' }),
    )
  }
  return current
}

const samePerson = (a: DatabaseIdentity, b: DatabaseIdentity): boolean =>
  a.personId === b.personId && a.tenantId === b.tenantId

/** Closes it; calls that still wait, and later ones, end with an error. Screens that are still there keep what they show. */
export async function closeReplica(): Promise<void> {
  await current?.close()
}
