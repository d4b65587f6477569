/**
 * Where a browser keeps a replica, and how it gets there.
 *
 * S1 A database is used only when its ready marker is there; otherwise what there is of it is deleted and it is installed
 *    from the seed: everything loaded, one write, everything flushed, then the marker.
 * S2 Nothing is ever written with relaxed durability: a write that returned survives the end of the tab.
 * S3 OPFS where the browser's handles allow it, else IndexedDB, else memory (and then a person is told). Asked only when there is no database
 *    yet: one that is there is opened where it is, or not at all.
 * S4 What passes (files that an ending worker holds, no room) is never taken for damage: `StorageUnavailable`, and nothing is touched.
 */

import { PGlite, type PGliteOptions } from '@electric-sql/pglite'
import { PGLITE_PARSERS } from '@hq/shared/sync/values.ts'
import seedText from '../../dist-seed/seed.json?raw'
import seedUrl from '../../dist-seed/seed.tar.gz?url'
import { remove } from './database-files.ts'
import type { Device } from './device.ts'
import type { DatabaseIdentity, StorageKind } from './messages.ts'
import { OpfsFiles } from './opfs-files.ts'
import { isHeld, isQuota } from './opfs-tree.ts'

const seed = JSON.parse(seedText) as { hash: string; files: number; schemaVersion: string }

/** What this browser offers a new database (S3). `kept`: it remembers that there is one; without that, files would never be found again. */
export async function chooseStorage(kept: boolean): Promise<StorageKind> {
  if (!kept) return 'memory'
  // Without a secure address there are no locks between tabs, and two tabs would spoil one database.
  if (!('locks' in navigator)) return 'memory'
  // Safari allows 252 open handles; a database needs several hundred.
  const safari = /AppleWebKit/.test(navigator.userAgent) && !/Chrom(e|ium)\//.test(navigator.userAgent)
  if (!safari && (await opfsWorks())) return 'opfs'
  return typeof indexedDB === 'undefined' ? 'memory' : 'idb'
}

/** Only in workers, so not in the page's types. */
type SyncFile = FileSystemFileHandle & { createSyncAccessHandle(): Promise<{ close(): void }> }

async function opfsWorks(): Promise<boolean> {
  const name = `hq-probe-${Math.random().toString(36).slice(2)}`
  try {
    const root = await navigator.storage.getDirectory()
    const file = (await root.getFileHandle(name, { create: true })) as SyncFile
    const handle = await file.createSyncAccessHandle()
    handle.close()
    // By the file's own name, so that its handle lives until then (see OpfsFiles).
    await root.removeEntry(file.name)
    return true
  } catch (error) {
    console.info('No private file system here; HQ keeps its database in IndexedDB.', error)
    return false
  }
}

/** A handle for each file of the seed, some for tables and indexes to come; the stock grows by itself from there. */
const stockSize = (): number => seed.files + 160

/** The database cannot be opened now, through no fault of its own (S4). The message is for people. */
export class StorageUnavailable extends Error {
  override name = 'StorageUnavailable'
}

export const UNREADABLE =
  'This browser does not open the storage in which HQ’s database lies. Nothing was deleted. Allow this address to keep data, restart the browser and try again.'
const HELD =
  'Another tab, or one that has just ended, still holds HQ’s files in this browser. Close the other tabs of HQ and try again; if that does not help, restart the browser.'
export const NO_ROOM =
  'There is no space left on this device for HQ’s database. What was saved in it is kept. Free some space, then try again.'

/** A database and whether its storage can take no more. */
export interface Opened {
  readonly db: PGlite
  readonly full: () => boolean
  /** Resolves when it can no longer be written to and answers nothing any more; it must be opened anew, when there is room. */
  readonly lost: Promise<void>
}

/** How long a worker that has ended may hold its files. */
const HELD_FOR_MS = 20_000

/** Opens an installed database; waits for files that an ended worker still holds. */
export async function openInstalled(name: string, storage: StorageKind): Promise<Opened> {
  return whenFree(() => open(name, storage))
}

/** Does it as soon as nobody holds the files; rejects with `StorageUnavailable` when that takes too long or there is no room. */
async function whenFree<T>(work: () => Promise<T>): Promise<T> {
  const end = Date.now() + HELD_FOR_MS
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (isQuota(error)) throw new StorageUnavailable(NO_ROOM, { cause: error })
      if (!isHeld(error)) throw error
      if (Date.now() > end) throw new StorageUnavailable(HELD, { cause: error })
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

/** Makes a database from the seed and opens it (S1). */
export async function install(
  device: Device,
  name: string,
  storage: StorageKind,
  identity: DatabaseIdentity & { readonly guard: string },
): Promise<Opened> {
  const loadDataDir = await fetchSeed()
  await whenFree(() => remove(device, name, storage))
  const opened = await whenFree(() => open(name, storage, { loadDataDir }))
  const { db } = opened
  await db.exec('create schema if not exists hq_client; select 1')
  await db.syncToFs()
  const installedAt = new Date().toISOString()
  await device.remember({ ...identity, name, storage, seed: seed.hash, installedAt, attempts: 0, broken: false })
  return opened
}

async function fetchSeed(): Promise<Blob> {
  const response = await fetch(seedUrl)
  if (!response.ok) throw new Error(`The first database could not be fetched (HTTP ${response.status}).`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  // Some servers unpack .gz on the way.
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b
  return new Blob([bytes], { type: packed ? 'application/gzip' : 'application/x-tar' })
}

async function open(name: string, storage: StorageKind, extra: PGliteOptions = {}): Promise<Opened> {
  const options: PGliteOptions = { ...extra, relaxedDurability: false, parsers: { ...PGLITE_PARSERS } }
  const others = { full: () => false, lost: new Promise<void>(() => undefined) }
  if (storage === 'idb') return { db: await PGlite.create(`idb://${name}`, options), ...others }
  if (storage === 'memory') return { db: await PGlite.create(options), ...others }
  const lost = Promise.withResolvers<void>()
  const fs = new OpfsFiles(name, { stock: stockSize(), onLost: lost.resolve })
  try {
    const db = await Promise.race([
      PGlite.create({ ...options, fs }),
      // Postgres, which is about to end, would never say so.
      lost.promise.then(() => Promise.reject(new StorageUnavailable(NO_ROOM))),
    ])
    return { db, full: () => fs.full, lost: lost.promise }
  } catch (error) {
    const { full } = fs
    // Lets go of the handles it has taken, so that another try is not stopped by this one.
    await fs.closeFs().catch(() => undefined)
    throw full ? new StorageUnavailable(NO_ROOM, { cause: error }) : error
  }
}
