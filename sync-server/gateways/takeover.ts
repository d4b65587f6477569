/**
 * A gateway that was restored from a backup takes its place back.
 *
 *  T1 One transaction: every credential that this gateway had ends, the new one begins, and what it had sent before is told. From then on a
 *     former process, which may still be running, is nobody to the server: what it has not sent stays with it.
 *  T2 Of the mutations that the backup held as waiting, `taken` are those that took effect since. The restored gateway sends the others, so that
 *     each counts once. (A replica's newest 2,000 are remembered.)
 *  T3 The same new credential again gets the same answer, so an answer may be lost. A retired gateway has no place to take.
 */
import { z } from 'zod'
import { newId } from '../database/ids.ts'
import { type Pool, transaction } from '../database/pool.ts'
import { HttpError } from '../errors.ts'
import { parse } from '../people/input.ts'

const schema = z.object({
  bearer_hash: z.string('Please give the hash of the new bearer token.').regex(/^[0-9a-f]{64}$/, 'This is no SHA-256.'),
  mutations: z.array(z.uuid()).max(100_000).default([]),
})

export interface Takeover {
  readonly gateway_id: string
  readonly slug: string
  readonly taken: readonly string[]
}

export function takeOver(pool: Pool, gatewayId: string, input: unknown): Promise<Takeover> {
  const { bearer_hash, mutations } = parse(schema, input)
  return transaction(pool, async (client) => {
    const { rows } = await client.query<{ tenant_id: string; slug: string; gone: boolean }>(
      `select tenant_id, slug, deleted_at is not null as gone from gateways where id = $1 for update`,
      [gatewayId],
    )
    const [gateway] = rows
    if (!gateway || gateway.gone)
      throw new HttpError(
        410,
        'retired',
        'This gateway was retired, so a backup of it can’t take its place. Add a gateway in the app, and move its agents there.',
      )
    await client.query(
      'update gateway_credentials set revoked_at = now() where gateway_id = $1 and revoked_at is null and token_hash <> $2',
      [gatewayId, bearer_hash],
    )
    const { rowCount } = await client.query(
      `insert into gateway_credentials (id, gateway_id, tenant_id, token_hash) values ($1, $2, $3, $4)
       on conflict (token_hash) do update set revoked_at = null where gateway_credentials.gateway_id = $2`,
      [newId(), gatewayId, gateway.tenant_id, bearer_hash],
    )
    if (!rowCount) throw new HttpError(409, 'token_used', 'That token belongs to another gateway. Make another one.')
    const taken = await client.query<{ mutation_id: string }>(
      `select distinct t.mutation_id from taken_mutations t join replicas r on r.id = t.replica_id
        where t.mutation_id = any ($1) and r.gateway_id = $2
          and not exists (select from mutation_results m where m.replica_id = t.replica_id and m.seq = t.seq and m.outcome = 'rejected')`,
      [mutations, gatewayId],
    )
    return { gateway_id: gatewayId, slug: gateway.slug, taken: taken.rows.map(({ mutation_id }) => mutation_id) }
  })
}
