/**
 * What this browser keeps and how much room is left, from facts it tells (`persisted()`, `estimate()`), never from guesses about its name or
 * window. Pure but for `readStorageFacts`.
 *
 *  N1 Said only when something is at stake: nothing is kept at all, there is little room left, or what has not been sent could be evicted.
 *  N2 What is said is what is lost in the worst case, and what a person can do about it.
 */
import type { StorageKind } from './messages.ts'

export interface StorageFacts {
  readonly storage: StorageKind
  /** The browser has promised not to evict. Undefined: it does not say. */
  readonly persisted: boolean | undefined
  /** Bytes; undefined: it does not say. */
  readonly usage: number | undefined
  readonly quota: number | undefined
}

export interface StorageNotice {
  readonly code: 'not_kept' | 'full' | 'nearly_full' | 'little_room'
  readonly title: string
  readonly advice: string
}

/** Below this a day's work or a rebuild may not fit. */
const NEARLY_FULL_BYTES = 50e6
const FULL_BYTES = 8e6
/** Browsers give a window that is thrown away a small part of what they give a profile: enough to work, not to count on. */
const ROOMY_BYTES = 1e9

export const freeOf = ({ usage, quota }: StorageFacts): number | undefined =>
  usage === undefined || quota === undefined ? undefined : Math.max(0, quota - usage)

export const megabytes = (bytes: number): string =>
  bytes >= 10e9
    ? `${Math.round(bytes / 1e9).toLocaleString('en')} GB`
    : bytes >= 1e9
      ? `${(bytes / 1e9).toFixed(1)} GB`
      : `${Math.round(bytes / 1e6).toLocaleString('en')} MB`

export function storageNotice(facts: StorageFacts): StorageNotice | undefined {
  if (facts.storage === 'memory')
    return {
      code: 'not_kept',
      title: 'Nothing is kept on this device',
      advice:
        'This browser gives HQ no storage, as a private window or an address without https may not. What has reached the server is safe; what waits is lost when this tab closes. Stay online, or export what waits before you close it.',
    }
  const free = freeOf(facts)
  if (free === undefined || facts.quota === undefined) return undefined
  if (free < FULL_BYTES)
    return {
      code: 'full',
      title: 'There is no room left on this device',
      advice: `Only ${megabytes(free)} are free for HQ. What is saved stays saved, but new changes may be refused. Free some space: empty downloads, or delete the data of other sites in the browser’s settings.`,
    }
  if (free < NEARLY_FULL_BYTES)
    return {
      code: 'nearly_full',
      title: 'Space on this device is running out',
      advice: `${megabytes(free)} are left for HQ. Everything works for now; free some space before new changes can no longer be saved.`,
    }
  if (facts.persisted === false && facts.quota < ROOMY_BYTES)
    return {
      code: 'little_room',
      title: 'This browser may not keep HQ’s data',
      advice: `It allows ${megabytes(facts.quota)} and does not promise to keep them, as in a private window. What has reached the server is safe; what waits is lost when the browser deletes its data. Stay online until everything is sent, or export what waits.`,
    }
  return undefined
}

/** For the list of facts: what happens when the disk gets full. */
export function keptWords({ storage, persisted }: StorageFacts): string {
  if (storage === 'memory') return 'No: closing the tab loses what has not been sent'
  if (persisted === undefined) return 'This browser does not say'
  return persisted
    ? 'Yes, also when space gets scarce'
    : 'Usually; this browser may delete it when space gets scarce. What has been sent is on the server'
}

/** Asks the browser. Never rejects: what it does not say is undefined. */
export async function readStorageFacts(storage: StorageKind): Promise<StorageFacts> {
  const manager: Partial<StorageManager> | undefined = 'storage' in navigator ? navigator.storage : undefined
  const [persisted, estimate] = await Promise.all([
    manager?.persisted?.().catch(unsaid),
    manager?.estimate?.().catch(unsaid),
  ])
  return { storage, persisted, usage: estimate?.usage, quota: estimate?.quota }
}

const unsaid = (error: unknown): undefined => {
  console.info('The browser does not say how it keeps data.', error)
  return undefined
}
