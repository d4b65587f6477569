/**
 * Where a browser keeps a replica, and how it gets there.
 *
 * S1 A database is used only when its ready marker is there; otherwise what there is of it is deleted and it is installed
 *    from the seed: everything loaded, one write, everything flushed, then the marker.
 * S2 Nothing is ever written with relaxed durability: a write that returned survives the end of the tab.
 * S3 OPFS where the browser's handles allow it, else IndexedDB, else memory (and then a person is told).
 */

import { PGlite, type PGliteOptions } from '@electric-sql/pglite'
import { OpfsAhpFS } from '@electric-sql/pglite/opfs-ahp'
import { PGLITE_PARSERS } from '@hq/shared/sync/values.ts'
import seedText from '../../dist-seed/seed.json?raw'
import seedUrl from '../../dist-seed/seed.tar.gz?url'
import { remove } from './database-files.ts'
import type { Device } from './device.ts'
import type { DatabaseIdentity, StorageKind } from './messages.ts'

const seed = JSON.parse(seedText) as { hash: string; files: number; schemaVersion: string }

/** What this browser offers (S3). */
export async function chooseStorage(): Promise<StorageKind> {
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
    const file = await root.getFileHandle(name, { create: true })
    const handle = await (file as SyncFile).createSyncAccessHandle()
    handle.close()
    await root.removeEntry(name)
    return true
  } catch (error) {
    console.info('No private file system here; HQ keeps its database in IndexedDB.', error)
    return false
  }
}

/** A handle for each file of the seed, some for tables and indexes to come; the pool grows by itself from there. */
const poolSize = (): number => seed.files + 160

/** Opens an installed database; waits a little for handles that a closed tab still holds. */
export async function openInstalled(name: string, storage: StorageKind): Promise<PGlite> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await open(name, storage)
    } catch (error) {
      const busy =
        error instanceof DOMException && ['NoModificationAllowedError', 'InvalidStateError'].includes(error.name)
      if (!busy || attempt >= 30) throw error
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
): Promise<PGlite> {
  await remove(device, name, storage)
  const db = await open(name, storage, { loadDataDir: await fetchSeed() })
  await db.exec('create schema if not exists hq_client; select 1')
  await db.syncToFs()
  const installedAt = new Date().toISOString()
  await device.remember({ ...identity, name, storage, seed: seed.hash, installedAt, attempts: 0, broken: false })
  return db
}

async function fetchSeed(): Promise<Blob> {
  const response = await fetch(seedUrl)
  if (!response.ok) throw new Error(`The first database could not be fetched (HTTP ${response.status}).`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  // Some servers unpack .gz on the way.
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b
  return new Blob([bytes], { type: packed ? 'application/gzip' : 'application/x-tar' })
}

async function open(name: string, storage: StorageKind, extra: PGliteOptions = {}): Promise<PGlite> {
  const options: PGliteOptions = { ...extra, relaxedDurability: false, parsers: { ...PGLITE_PARSERS } }
  if (storage === 'idb') return PGlite.create(`idb://${name}`, options)
  if (storage === 'memory') return PGlite.create(options)
  const fs = new OpfsAhpFS(name, { initialPoolSize: poolSize(), maintainedPoolSize: 100 })
  try {
    return await PGlite.create({ ...options, fs })
  } catch (error) {
    // Lets go of the handles it has taken, so that another try is not stopped by this one.
    await fs.closeFs().catch(() => undefined)
    throw error
  }
}
