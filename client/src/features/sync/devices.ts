/** How a device stands. Pure. */
export type DeviceState = 'active' | 'idle' | 'revoked'

/** The server notes once a minute that a device was heard of. */
export const ACTIVE_MS = 3 * 60_000

/** @param online this very device, and it is connected */
export function deviceState(
  row: { readonly revoked_at: string | null; readonly last_seen_at: string | null },
  online: boolean,
  now: number,
): DeviceState {
  if (row.revoked_at !== null) return 'revoked'
  if (online) return 'active'
  return row.last_seen_at !== null && now - Date.parse(row.last_seen_at) < ACTIVE_MS ? 'active' : 'idle'
}
