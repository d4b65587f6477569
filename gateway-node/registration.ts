/**
 * Who this gateway is, and how it became so.
 *
 * `credentials.json` (0600) in the home folder says who: `{url, gateway_id, tenant_id, slug, token, public_key, private_key}`. `registration.json`, which the
 * server beside it writes into the same folder, or `HQ_REGISTRATION_TOKEN`, lets it become somebody.
 *
 *  C1 Credentials once had are used without asking the server: a gateway starts without a network.
 *  C2 A `registration.json` beside credentials means that the server doesn't know them any more (another database). Only when the server says so
 *     itself, and has registered it anew, does everything of the former one move to `former-<time>/`; nothing is deleted.
 *  C3 Waiting for a server that isn't up yet never ends by itself; what the server refuses ends at once with its reason.
 *  C4 The gateway makes its bearer token and its keys itself and has them on the disk before it asks (registration-identity.ts). A process that ends anywhere
 *     between, also after the server has committed and before its answer came, is followed by one that becomes the same gateway with the same token.
 */
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorBodySchema, sessionResponseSchema } from '@hq/shared/sync/protocol.ts'
import { z } from 'zod'
import { checkServerUrl, type GatewayConfig, SetupError } from './config.ts'
import {
  bearerHash,
  dropPendingIdentity,
  type Identity,
  identitySchema,
  PENDING,
  pendingIdentity,
  renewPendingIdentity,
  writeDurably,
} from './registration-identity.ts'
import type { Log } from './service.ts'
import { isCode } from './workspaces/paths.ts'

const credentialsSchema = identitySchema.extend({
  url: z.string(),
  gateway_id: z.uuid(),
  tenant_id: z.uuid(),
  slug: z.string(),
})
export type Credentials = z.infer<typeof credentialsSchema>

const offerSchema = z.object({
  url: z.string().optional(),
  server_url: z.string().optional(),
  token: z.string().min(1),
  slug: z.string().optional(),
  label: z.string().optional(),
})

const answerSchema = z.object({
  gateway_id: z.uuid(),
  tenant_id: z.uuid(),
  slug: z.string(),
})

export interface RegistrationOptions {
  readonly config: GatewayConfig
  readonly log: Log
  readonly signal: AbortSignal
  readonly fetch?: typeof globalThis.fetch
  readonly now?: () => number
  /** How often to look for `registration.json`, and the first pause between tries, in ms. */
  readonly lookMs?: number
  /** How long to wait for `registration.json` at all, in ms; the server may be starting. */
  readonly patienceMs?: number
}

interface Offer {
  readonly url: string
  readonly token: string
  readonly slug: string
  readonly label: string
}

export async function obtainCredentials(options: RegistrationOptions): Promise<Credentials> {
  const { config, log } = options
  const known = await readCredentials(config.home)
  if (known) {
    const offer = await readOffer(config)
    const credentials = config.serverUrl
      ? { ...known, url: config.serverUrl }
      : offer
        ? { ...known, url: offer.url }
        : known
    if (!offer || !(await isForgotten(credentials, options))) {
      if (credentials.url !== known.url) await writeCredentials(config.home, credentials)
      await dropPendingIdentity(config.home)
      return credentials
    }
    log('warn', 'The server does not know this gateway any more; it registers anew')
  }
  const offer = await waitForOffer(options)
  const credentials = await becomeSomebody(offer, options)
  if (known) {
    const kept = await setAside(config.home, options.now?.() ?? Date.now())
    log('warn', 'What this gateway had under its former registration is kept', { kept })
  }
  await writeCredentials(config.home, credentials)
  await rm(offerFile(config.home), { force: true })
  await dropPendingIdentity(config.home)
  log('info', 'Registered', { gateway: credentials.gateway_id, slug: credentials.slug, server: credentials.url })
  return credentials
}

const credentialsFile = (home: string): string => join(home, 'credentials.json')
const offerFile = (home: string): string => join(home, 'registration.json')

export async function readCredentials(home: string): Promise<Credentials | undefined> {
  const text = await readText(credentialsFile(home))
  if (text === undefined) return undefined
  try {
    return credentialsSchema.parse(JSON.parse(text))
  } catch (error) {
    throw new SetupError(
      'credentials',
      `${credentialsFile(home)} can't be read, so the gateway doesn't know who it is. Restore it from a backup, or delete it to register anew.`,
      { cause: error },
    )
  }
}

const writeCredentials = (home: string, credentials: Credentials): Promise<void> =>
  writeDurably(credentialsFile(home), credentials)

async function readOffer(config: GatewayConfig): Promise<Offer | undefined> {
  const { registrationToken, serverUrl, slug, label } = config
  const text = await readText(offerFile(config.home))
  if (text !== undefined) {
    let json: unknown
    try {
      json = JSON.parse(text)
    } catch (error) {
      throw new SetupError(
        'not_registered',
        `${offerFile(config.home)} is not JSON. Restart the server: it writes the file anew.`,
        { cause: error },
      )
    }
    const said = offerSchema.safeParse(json)
    const url = serverUrl ?? said.data?.url ?? said.data?.server_url
    if (said.success && url) {
      return {
        url: checkServerUrl(url),
        token: said.data.token,
        slug: said.data.slug ?? slug,
        label: said.data.label ?? label,
      }
    }
  }
  if (!registrationToken) return undefined
  if (!serverUrl)
    throw new SetupError(
      'server_url',
      'HQ_REGISTRATION_TOKEN is set, but not HQ_SERVER_URL. Give the address of the HQ server.',
    )
  return { url: serverUrl, token: registrationToken, slug, label }
}

async function waitForOffer(options: RegistrationOptions): Promise<Offer> {
  const { config, signal, log, lookMs = 200, patienceMs = 60_000 } = options
  const start = Date.now()
  for (let looks = 0; ; looks++) {
    signal.throwIfAborted()
    const offer = await readOffer(config)
    if (offer) return offer
    if (Date.now() - start > patienceMs) {
      throw new SetupError(
        'not_registered',
        `This gateway isn't registered, and no registration came into ${config.home}. Start it with the server (npm start), or run the command that “Add a gateway” in the app shows (HQ_SERVER_URL and HQ_REGISTRATION_TOKEN).`,
      )
    }
    if (looks === 0) log('info', 'Waiting for the server to offer a registration', { folder: config.home })
    await sleep(lookMs, undefined, { signal })
  }
}

/** (C4) */
async function becomeSomebody(offer: Offer, options: RegistrationOptions): Promise<Credentials> {
  const { home } = options.config
  const asked = await register(offer, await pendingIdentity(home), options)
  if (asked !== 'revoked') return asked
  // An earlier try succeeded, was never heard of here, and was retired meanwhile; this token is good for another gateway.
  const again = await register(offer, await renewPendingIdentity(home), options)
  if (again !== 'revoked') return again
  throw new SetupError('registration_refused', `The server at ${offer.url} refuses a token that was made just now.`)
}

async function register(
  offer: Offer,
  identity: Identity,
  options: RegistrationOptions,
): Promise<Credentials | 'revoked'> {
  const { signal, log, fetch = globalThis.fetch, lookMs = 200 } = options
  const body = JSON.stringify({
    token: offer.token,
    slug: offer.slug,
    label: offer.label,
    bearer_hash: bearerHash(identity.token),
    public_key: identity.public_key,
  })
  for (let attempt = 0; ; attempt++) {
    let response: Response | undefined
    let answer: unknown
    try {
      response = await fetch(`${offer.url}/v1/gateways/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(15_000)]),
      })
      answer = await response.json()
    } catch (error) {
      // Not reached, or the answer was cut off. It may count already there; asking again gives the same answer.
      signal.throwIfAborted()
      if (attempt === 0)
        log('info', 'The server does not answer yet; trying again', { server: offer.url, reason: reasonOf(error) })
      if (response?.ok) response = undefined
    }
    if (response?.ok) {
      const { gateway_id, tenant_id, slug } = parseAnswer(answer, offer)
      return { url: offer.url, gateway_id, tenant_id, slug, ...identity }
    }
    if (response && response.status < 500 && response.status !== 429 && response.status !== 408) {
      const said = errorBodySchema.safeParse(answer)
      if (said.data?.code === 'bearer_revoked') return 'revoked'
      throw new SetupError(
        'registration_refused',
        `The server at ${offer.url} refused to register this gateway: ${said.data?.message ?? `status ${response.status}`}`,
      )
    }
    await sleep(Math.min(lookMs * 2 ** attempt, 10_000), undefined, { signal })
  }
}

/** `fetch` says only that it failed; why is in the cause. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: unknown }
  return cause instanceof Error && cause.message ? cause.message : String(error)
}

function parseAnswer(answer: unknown, { url }: Offer): z.infer<typeof answerSchema> {
  const parsed = answerSchema.safeParse(answer)
  if (parsed.success) return parsed.data
  throw new SetupError(
    'registration_refused',
    `What answers at ${url} is not an HQ server of this version. Check HQ_SERVER_URL, and that server and gateway have the same version.`,
    { cause: parsed.error },
  )
}

/** True only when the server itself answers that it knows no such gateway (C2). */
async function isForgotten(
  { url, token, gateway_id }: Credentials,
  { fetch = globalThis.fetch, signal }: RegistrationOptions,
): Promise<boolean> {
  try {
    const response = await fetch(`${url}/v1/session`, {
      headers: { authorization: `Bearer ${token}` },
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(5_000)]),
    })
    if (response.status === 401) return true
    if (!response.ok) return false
    const { principal } = sessionResponseSchema.parse(await response.json())
    return principal === null || principal.kind !== 'gateway' || principal.gateway_id !== gateway_id
  } catch {
    signal.throwIfAborted()
    // Not reached, or not an HQ server: nothing is known, so nothing is given up.
    return false
  }
}

/** Moves all but the offer, the identity of the new registration and the lock into a folder of its own. Credentials last: until then it can begin again. */
async function setAside(home: string, now: number): Promise<string> {
  const aside = `former-${new Date(now).toISOString().replaceAll(/[-:.]/g, '')}`
  await mkdir(join(home, aside), { mode: 0o700, recursive: true })
  const stays = (name: string): boolean =>
    name.startsWith('former-') || name.startsWith('gateway.lock') || STAY.includes(name)
  for (const name of await readdir(home)) {
    if (!stays(name)) await rename(join(home, name), join(home, aside, name))
  }
  await rename(credentialsFile(home), join(home, aside, 'credentials.json'))
  return aside
}
const STAY = ['registration.json', PENDING, 'credentials.json']

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}
