/** What the sync status means for a person. Pure. */
import type { SyncStatus } from '@hq/shared/sync/contract.ts'
import type { SyncPillProps } from '../ui/shell/sync-pill.tsx'

/** @param conflicts those that wait for this person */
export function pillOf(status: SyncStatus, conflicts = 0): SyncPillProps {
  const { connection, pending, oldestPendingAt, rejected, initial, stalledSince } = status
  const offline = connection === 'offline' || connection === 'unauthorized'
  return {
    state: offline ? 'offline' : connection === 'connecting' || !initial.done || pending > 0 ? 'syncing' : 'synced',
    pending,
    stalledAt: stalledSince === null ? null : Date.parse(stalledSince),
    oldestAt: oldestPendingAt === null ? null : Date.parse(oldestPendingAt),
    // Only a person can get a removed device out of it.
    needYou: rejected + conflicts + (status.parked === 'revoked' ? 1 : 0),
  }
}

export interface Parked {
  readonly title: string
  readonly advice: string
  /** What a person can do about it here. */
  readonly way: 'reload' | 'sign_in' | 'export' | 'none'
}

/** Why nothing is sent or received, when it is not for want of a network. */
export function parkedOf(status: Pick<SyncStatus, 'connection' | 'parked'>, revoked: boolean): Parked | undefined {
  if (revoked) return parkedWords('revoked')
  if (status.connection === 'unauthorized') return parkedWords('unauthenticated')
  return status.parked === null ? undefined : parkedWords(status.parked)
}

/** Why nothing is sent although the server can be reached, and what to do. */
export function parkedWords(reason: string): Parked {
  switch (reason) {
    case 'schema_too_old':
    case 'protocol':
      return {
        title: 'This version of HQ is too old to send changes',
        advice: 'Your changes are safe here. Reload to get the new version; then they are sent.',
        way: 'reload',
      }
    case 'schema_too_new':
      return {
        title: 'The server is older than this version of HQ',
        advice: 'Your changes are safe here and are sent once the server has been updated.',
        way: 'none',
      }
    case 'unauthenticated':
      return {
        title: 'The server does not know you any more',
        advice: 'Your session has ended. Your changes are safe here; sign in again and they are sent.',
        way: 'sign_in',
      }
    case 'revoked':
      return {
        title: 'This device has been removed from the workspace',
        advice:
          'It gets nothing new and sends nothing. Changes made here are kept: export them and import the file on another device, or ask an admin to let this one in again.',
        way: 'export',
      }
    case 'forbidden':
    case 'wrong_tenant':
      return {
        title: 'The server does not take changes from you at present',
        advice: 'Changes made here are kept. Ask an admin of the workspace about your role, or export them as a file.',
        way: 'export',
      }
    case 'disk_full':
      return {
        title: 'There is no space left on this device',
        advice: 'What is saved stays saved, but nothing new can be. Free some space, then try again.',
        way: 'none',
      }
    case 'too_large':
      return {
        title: 'One change is too large to be sent',
        advice: 'It and those after it wait. Export them as a file, then ask an admin what the server takes.',
        way: 'export',
      }
    default:
      return {
        title: 'Changes cannot be sent at present',
        advice: `The server says: ${reason.replaceAll('_', ' ')}. Changes made here are kept and tried again.`,
        way: 'export',
      }
  }
}
