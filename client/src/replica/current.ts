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

/** The connection, if there is one. */
export const replicaIfOpen = (): ReplicaConnection | undefined => current

/** Opens the replica of a person, once. */
export function openReplicaFor(identity: DatabaseIdentity): ReplicaConnection {
  if (current && (current.identity.personId !== identity.personId || current.identity.tenantId !== identity.tenantId)) {
    throw new Error('Another person’s database is open in this page; reload it first.')
  }
  current ??= new ReplicaConnection(
    identity,
    () => new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' }),
  )
  return current
}

/** Closes it; calls that still wait end with an error. */
export async function closeReplica(): Promise<void> {
  const closing = current
  current = undefined
  await closing?.close()
}
