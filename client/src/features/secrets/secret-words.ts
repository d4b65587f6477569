/** How a secret stands, in words. Pure. */
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Meaning } from '../../ui/cx.ts'
import type { Shape } from '../../ui/status.tsx'

export interface SecretState {
  readonly meaning: Meaning
  readonly shape: Shape
  readonly label: string
  readonly detail: string | undefined
}

type Facts = Pick<Row<'secrets'>, 'sync_status' | 'sync_error' | 'version' | 'synced_version' | 'deleted_at'>

/** @param away the gateway that has to take it up is not heard of; its name */
export function secretState(secret: Facts, away: string | undefined): SecretState {
  const on = (meaning: Meaning, shape: Shape, label: string, detail?: string): SecretState => ({
    meaning,
    shape,
    label,
    detail,
  })
  const back = away === undefined ? undefined : `when ${away} is back`
  if (secret.deleted_at)
    return secret.sync_status === 'revoked'
      ? on('neutral', 'slash', 'Revoked', 'gone from its gateway')
      : on('waiting', 'clock', 'Being revoked', back)
  if (secret.synced_version !== null && secret.synced_version < secret.version)
    return on('waiting', 'clock', 'Old value in use', back ?? 'the new one is on its way')
  const states: Record<Enum<'secret_sync_status'>, SecretState> = {
    active: on('good', 'check', 'In use', undefined),
    pending: on('waiting', 'clock', 'On its way', back),
    waiting: on('waiting', 'clock', 'Waits', secret.sync_error ?? back),
    error: on('danger', 'cross', 'Can’t be used', secret.sync_error ?? undefined),
    revoked: on('neutral', 'slash', 'Revoked', 'gone from its gateway'),
  }
  return states[secret.sync_status]
}

export const CATEGORY: Record<Enum<'secret_category'>, string> = {
  user: 'For programs of agents',
  channel: 'Channel',
  integration: 'Integration',
  model: 'Model key',
}
