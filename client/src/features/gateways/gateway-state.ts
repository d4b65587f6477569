/**
 * How a gateway stands, and how far a new one has come. Derived from what is known here, never stored. Pure.
 *
 *  G1 Only being heard of lately is 'online'; one that registered and was never heard of waits to connect, it isn't silent.
 *  G2 A token leads to at most one gateway. Whether it was used is the server's word; whether that gateway is connected, its replicated row's.
 */
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Meaning } from '../../ui/cx.ts'
import type { Shape } from '../../ui/status.tsx'
import { isSilent } from '../agents/agent-state.ts'

export interface GatewayState {
  readonly key: 'connecting' | 'silent' | 'paused' | 'error' | 'online'
  readonly meaning: Meaning
  readonly shape?: Shape
  readonly label: string
}

type Facts = Pick<Row<'gateways'>, 'status' | 'last_seen_at' | 'pause_requested_at'>

/** @param now milliseconds since 1970 */
export function gatewayState(gateway: Facts, now: number): GatewayState {
  if (gateway.last_seen_at === null)
    return { key: 'connecting', meaning: 'waiting', shape: 'clock', label: 'Waiting to connect' }
  if (isSilent(gateway.last_seen_at, now)) return { key: 'silent', meaning: 'waiting', shape: 'off', label: 'Silent' }
  if (gateway.status === 'error') return { key: 'error', meaning: 'danger', label: 'Error' }
  if (gateway.pause_requested_at !== null) return { key: 'paused', meaning: 'neutral', shape: 'pause', label: 'Paused' }
  return { key: 'online', meaning: 'good', label: 'Online' }
}

/** A registration token as the server lists it. */
export interface ListedToken {
  readonly id: string
  readonly label: string | null
  readonly created_by: string
  readonly expires_at: string
  /** The gateway that registered with it. */
  readonly gateway_id: string | null
}

export type NewcomerState =
  | { readonly key: 'waiting' | 'expired' | 'withdrawn' }
  | { readonly key: 'registered' | 'connected'; readonly gatewayId: string; readonly label: string | undefined }

/**
 * Of the token that was just made (G2).
 * @param listed what the server says of its tokens; undefined: it was not asked since this one was made
 */
export function newcomerState(
  token: { readonly id: string; readonly expires_at: string },
  listed: readonly ListedToken[] | undefined,
  gateways: readonly (Pick<Row<'gateways'>, 'id' | 'label'> & Facts)[],
  now: number,
): NewcomerState {
  const own = listed?.find(({ id }) => id === token.id)
  if (own?.gateway_id) {
    const gateway = gateways.find(({ id }) => id === own.gateway_id)
    const key = gateway && gatewayState(gateway, now).key !== 'connecting' ? 'connected' : 'registered'
    return { key, gatewayId: own.gateway_id, label: gateway?.label }
  }
  if (Date.parse(token.expires_at) <= now) return { key: 'expired' }
  if (listed && !own) return { key: 'withdrawn' }
  return { key: 'waiting' }
}

/** Whether the address in a command means “this very machine”, so that no other can use it. */
export function namesThisMachine(command: string): boolean {
  const url = URL.parse(/HQ_SERVER_URL=(\S+)/.exec(command)?.[1] ?? '')
  return url !== null && /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)
}

/** Those that can still be used. */
export const openTokens = (listed: readonly ListedToken[], now: number): ListedToken[] =>
  listed.filter(({ gateway_id, expires_at }) => gateway_id === null && Date.parse(expires_at) > now)
