/**
 * What this browser remembers about its databases, outside of them: an IndexedDB of its own, `hq-device`.
 *
 *  - `databases`: which are completely installed (the ready marker), where, and for whom. Without its marker a database is a
 *    half-made one and is made anew.
 *  - `copies`: each change that waits to be sent, so that a database that can no longer be read loses none.
 *  - `rescued`: changes taken out of a lost database, until they have been made again in its successor.
 *
 * Where there is no IndexedDB (some private windows), it remembers for the life of the worker.
 */
import type { DatabaseIdentity, StorageKind } from './messages.ts'

export interface DatabaseRecord extends DatabaseIdentity {
  readonly name: string
  readonly storage: StorageKind
  /** Of the seed it was made from. */
  readonly seed: string
  readonly installedAt: string
  /** How often opening it was begun since it last succeeded. */
  readonly attempts: number
  /** It could not be read: to be replaced. */
  readonly broken: boolean
  /** The database remembers it too; when they differ, its files were copied or restored, and it becomes a replica of its own. */
  readonly guard?: string
}

export interface Rescued {
  /** The outbox's own export format: one mutation a line. */
  readonly lines: string
  /** Those that could not be made again, and why; a person decides. */
  readonly failed: readonly { readonly line: string; readonly reason: string }[]
}

export interface Device {
  /** False: what it remembers ends with this worker. */
  readonly kept: boolean
  database(name: string): Promise<DatabaseRecord | undefined>
  databases(): Promise<DatabaseRecord[]>
  remember(record: DatabaseRecord): Promise<void>
  forget(name: string): Promise<void>
  /** Adds copies by mutation id and drops those that are not in `keep`. Mutation ids sort by time. */
  keepCopies(name: string, added: ReadonlyMap<string, string>, keep: ReadonlySet<string>): Promise<void>
  /** All copies, oldest first. */
  copies(name: string): Promise<string>
  dropCopies(name: string): Promise<void>
  rescued(name: string): Promise<Rescued | undefined>
  saveRescued(name: string, rescued: Rescued | undefined): Promise<void>
}

export async function openDevice(): Promise<Device> {
  try {
    return idbDevice(await openDatabase())
  } catch (error) {
    console.warn('This browser gives HQ no IndexedDB; what it remembers ends with this tab.', error)
    return memoryDevice()
  }
}

const openDatabase = (): Promise<IDBDatabase> =>
  new Promise((resolve, reject) => {
    const request = indexedDB.open('hq-device', 1)
    request.onupgradeneeded = () => {
      request.result.createObjectStore('databases', { keyPath: 'name' })
      request.result.createObjectStore('copies')
      request.result.createObjectStore('rescued')
    }
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error ?? new Error('IndexedDB could not be opened.'))
    request.onblocked = () => reject(new Error('IndexedDB is held by another version of HQ.'))
  })

type StoreName = 'databases' | 'copies' | 'rescued'

function idbDevice(db: IDBDatabase): Device {
  function run<T>(
    name: StoreName,
    mode: IDBTransactionMode,
    work: (store: IDBObjectStore) => IDBRequest<T> | undefined,
  ) {
    return new Promise<T>((resolve, reject) => {
      const transaction = db.transaction(name, mode)
      const request = work(transaction.objectStore(name))
      transaction.oncomplete = () => resolve(request?.result as T)
      transaction.onabort = () => reject(transaction.error ?? new Error('IndexedDB refused the transaction.'))
    })
  }
  const ofDatabase = (name: string) => IDBKeyRange.bound([name, ''], [name, '\uffff'])
  return {
    kept: true,
    database: (name) => run('databases', 'readonly', (store) => store.get(name)),
    databases: () => run('databases', 'readonly', (store) => store.getAll()),
    remember: async (record) => void (await run('databases', 'readwrite', (store) => store.put(record))),
    forget: (name) => run('databases', 'readwrite', (store) => store.delete(name)),
    async keepCopies(name, added, keep) {
      const known = await run<IDBValidKey[]>('copies', 'readonly', (store) => store.getAllKeys(ofDatabase(name)))
      await run('copies', 'readwrite', (store) => {
        for (const key of known) if (Array.isArray(key) && !keep.has(String(key[1]))) store.delete(key)
        for (const [id, line] of added) if (keep.has(id)) store.put(line, [name, id])
        return undefined
      })
    },
    copies: async (name) =>
      (await run<string[]>('copies', 'readonly', (store) => store.getAll(ofDatabase(name)))).join('\n'),
    dropCopies: (name) => run('copies', 'readwrite', (store) => store.delete(ofDatabase(name))),
    rescued: (name) => run('rescued', 'readonly', (store) => store.get(name)),
    saveRescued: async (name, rescued) => {
      await run<unknown>('rescued', 'readwrite', (store) => {
        if (rescued) store.put(rescued, name)
        else store.delete(name)
        return undefined
      })
    },
  }
}

function memoryDevice(): Device {
  const records = new Map<string, DatabaseRecord>()
  const copies = new Map<string, Map<string, string>>()
  const rescued = new Map<string, Rescued>()
  return {
    kept: false,
    database: async (name) => records.get(name),
    databases: async () => [...records.values()],
    remember: async (record) => void records.set(record.name, record),
    forget: async (name) => void records.delete(name),
    async keepCopies(name, added, keep) {
      const all = new Map([...(copies.get(name) ?? []), ...added])
      copies.set(name, new Map([...all].filter(([id]) => keep.has(id))))
    },
    copies: async (name) => [...(copies.get(name) ?? [])].map(([, line]) => line).join('\n'),
    dropCopies: async (name) => void copies.delete(name),
    rescued: async (name) => rescued.get(name),
    saveRescued: async (name, value) => void (value ? rescued.set(name, value) : rescued.delete(name)),
  }
}
