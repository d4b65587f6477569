/** Names of databases, and their files as the browser keeps them. Small on purpose: pages use it too, without PGlite. */
import type { Device } from './device.ts'
import type { DatabaseIdentity, StorageKind } from './messages.ts'

/**
 * Raised when a database of an older version cannot be brought up to date in place (another major of PGlite, for example):
 * the old one is then emptied of its outbox and replaced.
 */
export const DATABASE_EPOCH = 1

/** Two people on one browser never share a database. */
export const databaseName = ({ tenantId, personId }: DatabaseIdentity, epoch = DATABASE_EPOCH): string =>
  `hq-${epoch}-${tenantId}-${personId}`

export const isInstalled = async (device: Device, name: string): Promise<boolean> => {
  const record = await device.database(name)
  return record !== undefined && record.storage !== 'memory' && (await exists(name, record.storage))
}

export async function exists(name: string, storage: StorageKind): Promise<boolean> {
  if (storage === 'idb') return (await indexedDB.databases()).some((database) => database.name === `/pglite/${name}`)
  const root = await navigator.storage.getDirectory()
  try {
    await root.getDirectoryHandle(name)
    return true
  } catch (error) {
    if (error instanceof DOMException && error.name === 'NotFoundError') return false
    throw error
  }
}

/** Deletes a database and its marker; the copy of its outbox stays. */
export async function remove(device: Device, name: string, storage: StorageKind): Promise<void> {
  await device.forget(name)
  if (storage === 'opfs') {
    const root = await navigator.storage.getDirectory()
    await root.removeEntry(name, { recursive: true }).catch((error: unknown) => {
      if (!(error instanceof DOMException && error.name === 'NotFoundError')) throw error
    })
  } else if (storage === 'idb') {
    await new Promise<void>((resolve, reject) => {
      const request = indexedDB.deleteDatabase(`/pglite/${name}`)
      request.onsuccess = () => resolve()
      request.onerror = () => reject(request.error ?? new Error(`The old database ${name} could not be deleted.`))
      request.onblocked = () => reject(new Error(`The old database ${name} is still open in another tab.`))
    })
  }
}

/**
 * Deletes everything that this browser keeps of a person: database, copies, what was rescued. Waits until no tab has it
 * open; throws when one still has after `waitMs`.
 */
export async function deleteEverything(device: Device, identity: DatabaseIdentity, waitMs = 5_000): Promise<void> {
  for (const record of await device.databases()) {
    if (record.tenantId !== identity.tenantId || record.personId !== identity.personId) continue
    await navigator.locks.request(lockName(record.name), { signal: AbortSignal.timeout(waitMs) }, async () => {
      await remove(device, record.name, record.storage)
      await device.dropCopies(record.name)
      await device.saveRescued(record.name, undefined)
    })
  }
}

/** The Web Lock that whoever has a database open holds. */
export const lockName = (database: string): string => `hq:${database}`
