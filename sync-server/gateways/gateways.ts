/**
 * How gateways come in and go.
 *
 *  1. A registration token works once, for an hour (or for good, for the local gateway's file), and is kept as a hash only.
 *  2. Registering makes the gateway's row and its bearer token in one transaction; the token is shown in that answer and never again.
 *  3. Retiring revokes the token at once and keeps row and history; agents that it hosted stay, and can be moved.
 *  4. A slug once taken is not given to another gateway; asking for it again gets the next free `slug-2`.
 */
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Principal } from '@hq/shared/sync/protocol.ts'
import { z } from 'zod'
import { hashToken, newId, newToken } from '../database/ids.ts'
import { type Pool, transaction } from '../database/pool.ts'
import { HttpError } from '../errors.ts'
import { parse } from '../people/input.ts'
import { GATEWAY_TOKEN } from '../people/principal.ts'

type Person = Principal & { kind: 'person' }

/** Prefix of a registration token. */
const REGISTRATION_TOKEN = 'hqreg_'
const TOKEN_MINUTES = 60

const tokenSchema = z.object({ label: z.string().trim().max(100, 'That label is too long.').nullish() })

export interface RegistrationToken {
  readonly token: string
  readonly expires_at: string
}

export async function createRegistrationToken(pool: Pool, person: Person, input: unknown): Promise<RegistrationToken> {
  const { label } = parse(tokenSchema, input)
  return insertToken(pool, person.tenant_id, {
    label: label ?? null,
    createdBy: person.person_id,
    minutes: TOKEN_MINUTES,
  })
}

async function insertToken(
  pool: Pool,
  tenantId: string,
  { label, createdBy, minutes }: { label: string | null; createdBy: string | null; minutes: number },
): Promise<RegistrationToken> {
  const token = REGISTRATION_TOKEN + newToken()
  const { rows } = await pool.query<{ expires_at: Date }>(
    `insert into gateway_registration_tokens (id, tenant_id, label, token_hash, created_by, expires_at)
     values ($1, $2, $3, $4, $5, now() + make_interval(mins => $6)) returning expires_at`,
    [newId(), tenantId, label, hashToken(token), createdBy, minutes],
  )
  return { token, expires_at: (rows[0]?.expires_at ?? new Date()).toISOString() }
}

const registerSchema = z.object({
  token: z.string('Please give the registration token.'),
  slug: z
    .string('Please give the gateway a slug.')
    .regex(
      /^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/,
      'A slug has 1 to 40 lower-case letters, digits and inner hyphens.',
    ),
  label: z.string().trim().min(1, 'Please give the gateway a label.').max(100, 'That label is too long.'),
})

export interface Registration {
  readonly gateway_id: string
  readonly tenant_id: string
  readonly slug: string
  readonly token: string
}

export async function registerGateway(pool: Pool, input: unknown): Promise<Registration> {
  const { token, slug, label } = parse(registerSchema, input)
  const bearer = GATEWAY_TOKEN + newToken()
  return transaction(pool, async (client) => {
    const { rows } = await client.query<{ id: string; tenant_id: string; used: boolean; expired: boolean }>(
      `select id, tenant_id, consumed_at is not null as used, expires_at <= now() as expired
         from gateway_registration_tokens where token_hash = $1 for update`,
      [hashToken(token)],
    )
    const found = rows[0]
    if (!found)
      throw new HttpError(
        401,
        'token_unknown',
        'This registration token is not valid. Make a new one under Settings, Gateways.',
      )
    if (found.used)
      throw new HttpError(
        410,
        'token_used',
        'This registration token has already been used. Make a new one under Settings, Gateways.',
      )
    if (found.expired)
      throw new HttpError(
        410,
        'token_expired',
        'This registration token has expired. Make a new one under Settings, Gateways.',
      )

    const id = newId()
    await client.query('lock table gateways in share row exclusive mode')
    const taken = await client.query<{ slug: string }>('select slug from gateways where tenant_id = $1', [
      found.tenant_id,
    ])
    const free = freeSlug(slug, new Set(taken.rows.map((row) => row.slug)))
    await client.query(
      `insert into gateways (id, tenant_id, gateway_id, slug, label, status) values ($1, $2, $1, $3, $4, 'provisioning')`,
      [id, found.tenant_id, free, label],
    )
    await client.query(
      'insert into gateway_credentials (id, gateway_id, tenant_id, token_hash) values ($1, $2, $3, $4)',
      [newId(), id, found.tenant_id, hashToken(bearer)],
    )
    await client.query(
      'update gateway_registration_tokens set consumed_at = now(), consumed_by_gateway_id = $2 where id = $1',
      [found.id, id],
    )
    return { gateway_id: id, tenant_id: found.tenant_id, slug: free, token: bearer }
  })
}

function freeSlug(wanted: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wanted)) return wanted
  for (let n = 2; ; n++) if (!taken.has(`${wanted}-${n}`)) return `${wanted}-${n}`
}

/** (3) */
export async function retireGateway(pool: Pool, tenantId: string, gatewayId: string): Promise<void> {
  await transaction(pool, async (client) => {
    const { rowCount } = await client.query(
      `update gateways set status = 'retired', deleted_at = coalesce(deleted_at, now()), updated_at = now() where id = $1 and tenant_id = $2`,
      [gatewayId, tenantId],
    )
    if (!rowCount) throw new HttpError(404, 'not_found', 'There is no such gateway.')
    await client.query(
      'update gateway_credentials set revoked_at = now() where gateway_id = $1 and revoked_at is null',
      [gatewayId],
    )
  })
}

/**
 * The gateway that runs beside this server registers by itself: while it hasn't, `HQ_HOME/gateway/registration.json` (0600) holds
 * `{url, token, slug, label}`. The gateway deletes the file once it is registered and keeps its bearer token in
 * `HQ_HOME/gateway/credentials.json`; while that exists, nothing is written. A token from an earlier start that was never used still works.
 */
export async function offerLocalRegistration(pool: Pool, tenantId: string, home: string, url: string): Promise<void> {
  const folder = join(home, 'gateway')
  const file = join(folder, 'registration.json')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const credentials = await readJson(join(folder, 'credentials.json'))
  if (
    typeof credentials?.['token'] === 'string' &&
    (await isKnown(pool, 'gateway_credentials', credentials['token']))
  ) {
    await rm(file, { force: true })
    return
  }
  const earlier = (await readJson(file))?.['token']
  const usable = typeof earlier === 'string' && (await isKnown(pool, 'gateway_registration_tokens', earlier))
  const token = usable
    ? earlier
    : (await insertToken(pool, tenantId, { label: 'local', createdBy: null, minutes: 10 * 365 * 24 * 60 })).token
  await writeFile(`${file}.new`, `${JSON.stringify({ url, token, slug: 'local', label: 'This machine' }, null, 2)}\n`, {
    mode: 0o600,
  })
  await chmod(`${file}.new`, 0o600)
  await rename(`${file}.new`, file)
}

async function isKnown(
  pool: Pool,
  table: 'gateway_credentials' | 'gateway_registration_tokens',
  token: string,
): Promise<boolean> {
  const live = table === 'gateway_credentials' ? 'revoked_at is null' : 'consumed_at is null and expires_at > now()'
  const { rowCount } = await pool.query(`select from ${table} where token_hash = $1 and ${live}`, [hashToken(token)])
  return Boolean(rowCount)
}

async function readJson(file: string): Promise<Record<string, unknown> | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new Error(`${dirname(file)} could not be read`, { cause: error })
  }
}
