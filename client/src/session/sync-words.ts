/** What the sync status means for a person. Pure. */
import type { SyncStatus } from '@hq/shared/sync/contract.ts'
import type { SyncPillProps } from '../ui/shell/sync-pill.tsx'

export function pillOf(status: SyncStatus): SyncPillProps {
  const { connection, pending, oldestPendingAt, rejected, initial } = status
  const offline = connection === 'offline' || connection === 'unauthorized'
  return {
    state: offline ? 'offline' : connection === 'connecting' || !initial.done || pending > 0 ? 'syncing' : 'synced',
    pending,
    oldestAt: oldestPendingAt === null ? null : Date.parse(oldestPendingAt),
    needYou: rejected,
  }
}

/** Why nothing is sent although the server can be reached, and what to do. */
export function parkedWords(reason: string): { title: string; advice: string; reload: boolean } {
  switch (reason) {
    case 'schema_too_old':
    case 'protocol':
      return {
        title: 'This version of HQ is too old to send changes',
        advice: 'Your changes are safe here. Reload to get the new version; then they are sent.',
        reload: true,
      }
    case 'schema_too_new':
      return {
        title: 'The server is older than this version of HQ',
        advice: 'Your changes are safe here and are sent once the server has been updated.',
        reload: false,
      }
    case 'revoked':
      return {
        title: 'This device has been removed from the workspace',
        advice: 'Changes made here are kept but not sent. Ask an admin, or sign out and in again.',
        reload: false,
      }
    case 'forbidden':
    case 'wrong_tenant':
      return {
        title: 'The server does not take changes from you at present',
        advice: 'Changes made here are kept. Ask an admin of the workspace about your role.',
        reload: false,
      }
    default:
      return {
        title: 'Changes cannot be sent at present',
        advice: `The server says: ${reason.replaceAll('_', ' ')}. Changes made here are kept and tried again.`,
        reload: false,
      }
  }
}
