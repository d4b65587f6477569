/**
 * How gateways come in and go.
 *
 *  1. A registration token works once, for an hour (or for good, for the local gateway's file), can be withdrawn until then, and is kept as a hash only.
 *  2. A gateway makes its bearer token and its key pair itself; the server gets the token's hash and the public key. The row, the hash and the use of the
 *     registration token are one transaction. The same registration token from the same gateway (hash and key) gets the same answer again, however often its
 *     answer was lost; from another one it is refused.
 *  3. Retiring revokes the token at once and keeps row and history; agents that it hosted stay, and can be moved;
 *     what waits there is refused with the reason, never silently lost.
 *  4. A slug once taken is not given to another gateway; asking for it again gets the next free `slug-2`.
 *  5. Who names the token names the gateway; a token without a label leaves that to the gateway.
 */
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Principal } from '@hq/shared/sync/protocol.ts'
import { z } from 'zod'
import { hashToken, newId, newToken } from '../database/ids.ts'
import { type Pool, type Queryable, transaction } from '../database/pool.ts'
import { HttpError } from '../errors.ts'
import { parse } from '../people/input.ts'

type Person = Principal & { kind: 'person' }

/** Prefix of a registration token. */
const REGISTRATION_TOKEN = 'hqreg_'
const TOKEN_MINUTES = 60

const tokenSchema = z.object({
  label: z.string().trim().max(100, 'That name is too long: 100 characters at most.').nullish(),
})

export interface RegistrationToken {
  readonly id: string
  readonly token: string
  readonly expires_at: string
}

export async function createRegistrationToken(pool: Pool, person: Person, input: unknown): Promise<RegistrationToken> {
  const { label } = parse(tokenSchema, input)
  return insertToken(pool, person.tenant_id, {
    label: label || null,
    createdBy: person.person_id,
    minutes: TOKEN_MINUTES,
  })
}

async function insertToken(
  pool: Pool,
  tenantId: string,
  { label, createdBy, minutes }: { label: string | null; createdBy: string | null; minutes: number },
): Promise<RegistrationToken> {
  const id = newId()
  const token = REGISTRATION_TOKEN + newToken()
  const { rows } = await pool.query<{ expires_at: Date }>(
    `insert into gateway_registration_tokens (id, tenant_id, label, token_hash, created_by, expires_at)
     values ($1, $2, $3, $4, $5, now() + make_interval(mins => $6)) returning expires_at`,
    [id, tenantId, label, hashToken(token), createdBy, minutes],
  )
  return { id, token, expires_at: (rows[0]?.expires_at ?? new Date()).toISOString() }
}

export interface OpenToken {
  readonly id: string
  readonly label: string | null
  readonly created_by: string
  readonly expires_at: string
  /** The gateway that registered with it; null: nobody yet. */
  readonly gateway_id: string | null
}

/** Those of people, newest first: the ones that can still be used, and the ones of the last day that were. */
export async function listRegistrationTokens(pool: Pool, tenantId: string): Promise<OpenToken[]> {
  const { rows } = await pool.query<OpenToken>(
    `select t.id, t.label, p.name as created_by, t.expires_at, t.consumed_by_gateway_id as gateway_id
       from gateway_registration_tokens t join people p on p.id = t.created_by
      where t.tenant_id = $1 and t.revoked_at is null
        and (t.consumed_at > now() - interval '1 day' or (t.consumed_at is null and t.expires_at > now()))
      order by t.created_at desc limit 100`,
    [tenantId],
  )
  return rows
}

export async function revokeRegistrationToken(pool: Pool, tenantId: string, id: string): Promise<void> {
  const { rowCount } = await pool.query(
    `update gateway_registration_tokens set revoked_at = now()
      where id = $1 and tenant_id = $2 and created_by is not null and consumed_at is null and revoked_at is null`,
    [id, tenantId],
  )
  if (!rowCount)
    throw new HttpError(
      404,
      'not_found',
      'There is no such open token: it was used or withdrawn already. A gateway that registered with it can be retired.',
    )
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
  bearer_hash: z
    .string('Please give the hash of the bearer token that the gateway made.')
    .regex(/^[0-9a-f]{64}$/, 'This is not a SHA-256 in hexadecimal digits.'),
  public_key: z
    .string('Please give the public key that the gateway made.')
    .regex(/^[A-Za-z0-9_-]{43}$/, 'This is not an X25519 key in base64url.'),
})
type RegisterInput = z.infer<typeof registerSchema>

export interface Registration {
  readonly gateway_id: string
  readonly tenant_id: string
  readonly slug: string
}

/** (2) `isNew`: false for an answer that was given before. */
export async function registerGateway(
  pool: Pool,
  input: unknown,
): Promise<{ registration: Registration; isNew: boolean }> {
  const asked = parse(registerSchema, input)
  return transaction(pool, async (client) => {
    const { rows } = await client.query<TokenRow>(
      `select id, tenant_id, label, consumed_by_gateway_id, consumed_at is not null as used, revoked_at is not null as revoked,
              expires_at <= now() as expired
         from gateway_registration_tokens where token_hash = $1 for update`,
      [hashToken(asked.token)],
    )
    const token = rows[0]
    if (!token) throw new HttpError(401, 'token_unknown', `This registration token is not valid. ${MAKE_ANOTHER}`)
    if (token.used) return { registration: await registeredBefore(client, token, asked), isNew: false }
    if (token.revoked)
      throw new HttpError(410, 'token_revoked', `This registration token was withdrawn. ${MAKE_ANOTHER}`)
    if (token.expired) throw new HttpError(410, 'token_expired', `This registration token has expired. ${MAKE_ANOTHER}`)

    // From here on one after the other: slugs and bearers are compared with all others.
    await client.query('lock table gateways in share row exclusive mode')
    const known = await gatewayOf(client, asked)
    if (known === 'other')
      throw new HttpError(
        409,
        'bearer_revoked',
        'The bearer token that this gateway made is not accepted any more. It has to make another one.',
      )
    const registration = known ?? (await insertGateway(client, token, asked))
    await client.query(
      'update gateway_registration_tokens set consumed_at = now(), consumed_by_gateway_id = $2 where id = $1',
      [token.id, registration.gateway_id],
    )
    return { registration, isNew: known === undefined }
  })
}

const MAKE_ANOTHER = 'Make a new one in the app under Gateways, Add a gateway.'

interface TokenRow {
  readonly id: string
  readonly tenant_id: string
  readonly label: string | null
  readonly consumed_by_gateway_id: string
  readonly used: boolean
  readonly revoked: boolean
  readonly expired: boolean
}

async function registeredBefore(client: Queryable, token: TokenRow, asked: RegisterInput): Promise<Registration> {
  const known = await gatewayOf(client, asked)
  if (known && known !== 'other' && known.gateway_id === token.consumed_by_gateway_id) return known
  throw new HttpError(
    410,
    'token_used',
    known === 'other'
      ? `This gateway was retired after it registered with this token. ${MAKE_ANOTHER}`
      : `This registration token has already been used by another gateway. ${MAKE_ANOTHER}`,
  )
}

/** Whose bearer this is; `other`: one that was revoked, or that belongs to another key. */
async function gatewayOf(
  client: Queryable,
  { bearer_hash, public_key }: RegisterInput,
): Promise<Registration | 'other' | undefined> {
  const { rows } = await client.query<Registration & { good: boolean }>(
    `select c.gateway_id, c.tenant_id, g.slug, c.revoked_at is null and g.deleted_at is null and g.public_key = $2 as good
       from gateway_credentials c join gateways g on g.id = c.gateway_id where c.token_hash = $1`,
    [bearer_hash, public_key],
  )
  const [found] = rows
  if (!found) return undefined
  if (!found.good) return 'other'
  return { gateway_id: found.gateway_id, tenant_id: found.tenant_id, slug: found.slug }
}

async function insertGateway(client: Queryable, token: TokenRow, asked: RegisterInput): Promise<Registration> {
  const id = newId()
  const taken = await client.query<{ slug: string }>('select slug from gateways where tenant_id = $1', [
    token.tenant_id,
  ])
  const slug = freeSlug(asked.slug, new Set(taken.rows.map((row) => row.slug)))
  await client.query(
    `insert into gateways (id, tenant_id, gateway_id, slug, label, public_key, status) values ($1, $2, $1, $3, $4, $5, 'provisioning')`,
    [id, token.tenant_id, slug, token.label ?? asked.label, asked.public_key],
  )
  await client.query(
    'insert into gateway_credentials (id, gateway_id, tenant_id, token_hash) values ($1, $2, $3, $4)',
    [newId(), id, token.tenant_id, asked.bearer_hash],
  )
  return { gateway_id: id, tenant_id: token.tenant_id, slug }
}

function freeSlug(wanted: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wanted)) return wanted
  for (let n = 2; ; n++) if (!taken.has(`${wanted}-${n}`)) return `${wanted}-${n}`
}

/**
 * (3) With agents it is refused (`agents_bound`, with their names), unless `leaveAgents`: then what waits there is visibly refused. Commands fail with the reason,
 * its agents say what happened, and their wakes fail too; they are taken along when somebody moves the agent to another gateway.
 */
export async function retireGateway(
  pool: Pool,
  tenantId: string,
  gatewayId: string,
  { leaveAgents = false }: { readonly leaveAgents?: boolean } = {},
): Promise<void> {
  await transaction(pool, async (client) => {
    const { rows } = await client.query<{ label: string }>(
      'select label from gateways where id = $1 and tenant_id = $2 for update',
      [gatewayId, tenantId],
    )
    const [gateway] = rows
    if (!gateway) throw new HttpError(404, 'not_found', 'There is no such gateway.')
    const agents = await client.query<{ id: string; name: string }>(
      'select id, name from agents where gateway_id = $1 and tenant_id = $2 and deleted_at is null order by name for update',
      [gatewayId, tenantId],
    )
    if (agents.rows.length > 0 && !leaveAgents)
      throw new HttpError(
        409,
        'agents_bound',
        `${names(agents.rows.map(({ name }) => name))} still live${agents.rows.length === 1 ? 's' : ''} on “${gateway.label}”. Move them to another gateway first, or retire it anyway: then they stop until somebody moves them.`,
        { detail: { agents: agents.rows } },
      )
    const why = `The gateway “${gateway.label}” was retired.`
    await client.query(
      `update gateways set status = 'retired', deleted_at = coalesce(deleted_at, now()), updated_at = now() where id = $1`,
      [gatewayId],
    )
    await client.query(
      'update gateway_credentials set revoked_at = now() where gateway_id = $1 and revoked_at is null',
      [gatewayId],
    )
    await refuseWhatWaits(client, gatewayId, why)
  })
}

async function refuseWhatWaits(client: Queryable, gatewayId: string, why: string): Promise<void> {
  await client.query(
    `update agent_commands set status = 'failed', error_message = $2, completed_at = now(), lease_owner = null, leased_until = null, updated_at = now()
      where gateway_id = $1 and status in ('pending', 'leased', 'running')`,
    [gatewayId, `${why} Nobody runs this any more; send it to another gateway.`],
  )
  await client.query(
    `update agent_inbox_items set status = 'failed', error_message = $2, lease_owner = null, leased_until = null, updated_at = now()
      where gateway_id = $1 and status in ('pending', 'leased')`,
    [gatewayId, why],
  )
  await client.query(
    `update agent_runs set status = 'interrupted', ended_at = now(), error_message = $2, updated_at = now()
      where gateway_id = $1 and status = 'running'`,
    [gatewayId, why],
  )
  const next = `${why} Move the agent to another gateway.`
  await client.query(
    `update agents set status = 'error', status_reason = $2, gate = 'agent_error', gate_detail = $2, gate_until = null, updated_at = now()
      where gateway_id = $1 and deleted_at is null`,
    [gatewayId, next],
  )
}

const names = (all: readonly string[]): string => {
  const shown = all.length > 5 ? [...all.slice(0, 4), `${all.length - 4} more`] : all
  return shown.length < 2 ? (shown[0] ?? '') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
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
    : (await insertToken(pool, tenantId, { label: LOCAL_LABEL, createdBy: null, minutes: 10 * 365 * 24 * 60 })).token
  await writeFile(`${file}.new`, `${JSON.stringify({ url, token, slug: 'local', label: LOCAL_LABEL }, null, 2)}\n`, {
    mode: 0o600,
  })
  await chmod(`${file}.new`, 0o600)
  await rename(`${file}.new`, file)
}

const LOCAL_LABEL = 'This machine'

async function isKnown(
  pool: Pool,
  table: 'gateway_credentials' | 'gateway_registration_tokens',
  token: string,
): Promise<boolean> {
  const live =
    table === 'gateway_credentials'
      ? 'revoked_at is null'
      : 'consumed_at is null and revoked_at is null and expires_at > now()'
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
