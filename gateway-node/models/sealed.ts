/** Opening what people sealed for this gateway itself: secrets of category `model`. The value is known to the log, which hides it, before anybody has it. */
import { open } from '@hq/shared/domain/sealing.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import { readCredentials } from '../registration.ts'
import type { GatewayContext, Log } from '../service.ts'

export type SealedContext = Pick<GatewayContext, 'replica' | 'gatewayId' | 'tenantId' | 'home'> & {
  readonly log: Log & { addSecret?(value: string): void }
}

/** The newest value that opens, or that of one sealed row; null: there is none, or it can't be opened. */
export async function openModelSecret(
  { replica, gatewayId, tenantId, home, log }: SealedContext,
  secretId: string,
  sealedId?: string,
): Promise<string | null> {
  const own = await readCredentials(home)
  const [secret] = await replica.query<Row<'secrets'>>(
    'select * from secrets where id = $1 and gateway_id = $2 and deleted_at is null',
    [secretId, gatewayId],
  )
  if (!own || !secret || secret.category !== 'model') return null
  const sealed = await replica.query<Row<'sealed_secrets'>>(
    `select * from sealed_secrets where secret_id = $1 and deleted_at is null and sealed <> ''
       and ($2::uuid is null or id = $2::uuid) order by version desc`,
    [secretId, sealedId ?? null],
  )
  for (const { version, sealed: text } of sealed) {
    const place = { tenantId, gatewayId, secretId, version, use: [secret.key, secret.agent_id ?? '', secret.category] }
    const opened = await open(own.private_key, place, text)
    if (!opened.ok) continue
    log.addSecret?.(opened.value)
    return opened.value
  }
  return null
}
