import { useRow } from '../../replica/hooks.ts'

/**
 * Whether this device was taken out of the workspace. Its own row says so, which is the last thing it is sent; so it is known also when nothing
 * waits to be refused.
 */
export const useRevokedHere = (): boolean =>
  useRow('select 1 from replicas r join sync.replica me using (replica_id) where r.revoked_at is not null', undefined, {
    tables: ['replicas', 'sync'],
  }).row !== undefined
