/**
 * Setting, replacing and revoking a secret, as statements of one local transaction. The value is sealed here, before anything is written: what is kept, sent or
 * copied of it, also while offline, is ciphertext for its gateway only.
 */
import { type SealedPlace, seal } from '@hq/shared/domain/sealing.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Statement } from '@hq/shared/sync/contract.ts'

type Secret = Pick<
  Row<'secrets'>,
  'id' | 'tenant_id' | 'gateway_id' | 'agent_id' | 'category' | 'key' | 'name' | 'note' | 'version' | 'created_by'
>
export type NewSecret = Omit<Secret, 'version'>

const placeOf = ({ id, tenant_id, gateway_id, agent_id, category, key }: NewSecret, version: number): SealedPlace => ({
  tenantId: tenant_id,
  gatewayId: gateway_id,
  secretId: id,
  version,
  use: [key, agent_id ?? '', category],
})

async function sealedRow(
  secret: NewSecret,
  version: number,
  id: string,
  publicKey: string,
  value: string,
): Promise<Statement> {
  const sealed = await seal(publicKey, placeOf(secret, version), value)
  return {
    sql: 'insert into sealed_secrets (id, tenant_id, gateway_id, secret_id, version, sealed, public_key) values ($1, $2, $3, $4, $5, $6, $7)',
    params: [id, secret.tenant_id, secret.gateway_id, secret.id, version, sealed, publicKey],
  }
}

/** @param rowId of the sealed row · @param publicKey of the gateway */
export async function addSecret(
  secret: NewSecret,
  rowId: string,
  publicKey: string,
  value: string,
): Promise<Statement[]> {
  const { id, tenant_id, gateway_id, agent_id, category, key, name, note, created_by } = secret
  return [
    {
      sql: 'insert into secrets (id, tenant_id, gateway_id, agent_id, category, key, name, note, created_by) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)',
      params: [id, tenant_id, gateway_id, agent_id, category, key, name, note, created_by],
    },
    await sealedRow(secret, 1, rowId, publicKey, value),
  ]
}

/** A new value; two people who set one without having seen each other: the second is told. */
export async function replaceSecret(
  secret: Secret,
  rowId: string,
  publicKey: string,
  value: string,
): Promise<Statement[]> {
  const version = secret.version + 1
  return [
    { sql: 'update secrets set version = $2 where id = $1', params: [secret.id, version] },
    await sealedRow(secret, version, rowId, publicKey, value),
  ]
}

export const revokeSecret = (id: string): Statement[] => [
  { sql: 'update secrets set deleted_at = now() where id = $1', params: [id] },
]
