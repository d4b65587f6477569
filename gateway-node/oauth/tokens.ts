/**
 * The tokens of finished sign-ins: given out while they are good, renewed before they end. Part of sign-ins.ts; its S2, S4 and S5 are kept here.
 */
import { type OauthSettings, readOauth } from '@hq/shared/domain/oauth-settings.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { GatewayContext } from '../service.ts'
import { type Kept, type KeptTokens, readKept, writeKept } from './kept.ts'
import { ask, isDown, issuerOf, troubleOf } from './post.ts'
import { type Read, readTokens, renewalForm } from './protocol.ts'

type Connection = Pick<Row<'model_connections'>, 'id' | 'label' | 'base_url' | 'oauth'>

export interface Tokens {
  token(connection: Connection, signal?: AbortSignal): Promise<Read<string>>
  refresh(connection: Connection, signal: AbortSignal): Promise<Read<{ readonly expires_at: number | null }>>
}

interface Parts extends Pick<GatewayContext, 'replica' | 'home' | 'now'> {
  /** From the log, before anybody has it. */
  readonly hide: (...values: readonly (string | null)[]) => void
  /** One after the other for each connection (S2). */
  readonly serially: <T>(id: string, work: () => Promise<T>) => Promise<T>
  /** Ends with the gateway too. */
  readonly outer: (signal?: AbortSignal) => AbortSignal
}

/** A token is renewed so long before its end, at most a fifth of its life: a run that begins now should not outlive it. */
const MARGIN_MS = 5 * 60_000

export const isDue = ({ expires_at, obtained_at }: KeptTokens, at: number): boolean =>
  expires_at !== null && expires_at - Math.min(MARGIN_MS, (expires_at - obtained_at) / 5) <= at

const bad = (message: string): { readonly ok: false; readonly message: string } => ({ ok: false, message })

export function createTokens({ replica, home, now, hide, serially, outer }: Parts): Tokens {
  const known = async (id: string): Promise<Kept> => (await readKept(home, id)) ?? {}

  /** Within `serially`. */
  async function renew(
    connection: Connection,
    settings: OauthSettings,
    kept: Kept,
    signal: AbortSignal,
  ): Promise<Read<KeptTokens>> {
    const { tokens } = kept
    if (!tokens?.refresh_token)
      return bad('The provider gave nothing to renew the sign-in with: sign in again when it has run out.')
    const posted = await ask(connection, settings.token_url, renewalForm(settings, tokens.refresh_token), outer(signal))
    if (isDown(posted))
      return bad(`The sign-in could not be renewed just now, and is tried again. ${troubleOf(posted)}`)
    if (!posted.ok || posted.refusal || posted.status >= 300) {
      const { tokens: _ended, ...rest } = kept
      const refused = `Sign in again: the provider does not renew the sign-in. ${troubleOf(posted)}`
      await writeKept(home, connection.id, { ...rest, refused })
      return bad(refused)
    }
    const read = readTokens(posted.body, now(), tokens)
    if (!read.ok) return bad(`The sign-in could not be renewed just now, and is tried again. ${read.message}`)
    hide(read.value.access_token, read.value.refresh_token)
    const fresh: KeptTokens = { ...read.value, issuer: tokens.issuer }
    await writeKept(home, connection.id, { ...kept, tokens: fresh })
    // One that could not be renewed for a while is tried again.
    await replica.write((tx) =>
      tx.query(
        `update model_connections set status = 'unchecked', status_detail = 'Renewed; it is tried now.'
         where id = $1 and status = 'failed' and deleted_at is null`,
        [connection.id],
      ),
    )
    return { ok: true, value: fresh }
  }

  /** Tokens of whom the connection names now (S5). */
  function usable(connection: Connection, kept: Kept): Read<{ settings: OauthSettings; tokens: KeptTokens }> {
    const read = readOauth(connection.oauth)
    if (!read.ok) return bad(read.message)
    const { tokens, refused } = kept
    if (!tokens) return bad(refused ?? 'Nobody has signed in yet. Do it under Models in the app.')
    return tokens.issuer === issuerOf(read.settings)
      ? { ok: true, value: { settings: read.settings, tokens } }
      : bad('Sign in again: the connection’s addresses were changed since.')
  }

  async function token(connection: Connection, signal?: AbortSignal): Promise<Read<string>> {
    const first = usable(connection, await known(connection.id))
    if (!first.ok) return first
    hide(first.value.tokens.access_token, first.value.tokens.refresh_token)
    if (!isDue(first.value.tokens, now())) return { ok: true, value: first.value.tokens.access_token }
    return serially(connection.id, async () => {
      const kept = await known(connection.id)
      const found = usable(connection, kept)
      if (!found.ok) return found
      const { settings, tokens } = found.value
      // Somebody else has renewed it meanwhile (S2).
      if (!isDue(tokens, now())) return { ok: true, value: tokens.access_token }
      const renewed = await renew(connection, settings, kept, outer(signal))
      if (renewed.ok) return { ok: true, value: renewed.value.access_token }
      const stillGood = (tokens.expires_at ?? 0) > now() && (await known(connection.id)).tokens !== undefined
      return stillGood ? { ok: true, value: tokens.access_token } : bad(renewed.message)
    })
  }

  async function refresh(connection: Connection, signal: AbortSignal): Promise<Read<{ expires_at: number | null }>> {
    return serially(connection.id, async () => {
      const kept = await known(connection.id)
      const found = usable(connection, kept)
      if (!found.ok) return found
      const renewed = await renew(connection, found.value.settings, kept, signal)
      return renewed.ok ? { ok: true, value: { expires_at: renewed.value.expires_at } } : renewed
    })
  }

  return { token, refresh }
}
