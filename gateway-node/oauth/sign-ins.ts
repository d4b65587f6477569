/**
 * Signing in at a model provider instead of giving it a key: begun here, finished by a person, renewed here.
 *
 *  S1 Verifier, device code and tokens are in this gateway's memory and its owner-only file (kept.ts), and known to the log as secrets before that; never in a row.
 *  S2 What concerns one connection happens one after the other: however many ask for a token that has run out, it is renewed once.
 *  S3 A sign-in that was begun goes on after a restart. It ends once: signed in, refused, or out of time; and the connection's row says which.
 *  S4 A renewal that the provider refuses ends the tokens: people sign in again. One that didn't get through ends nothing, and is tried again.
 *  S5 Tokens go to nobody but who gave them: with another token address or client, people sign in again.
 */
import { randomBytes } from 'node:crypto'
import { isLoopbackHost, readOauth, type SignInFlow, STILL_COUNTS } from '@hq/shared/domain/oauth-settings.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import { withoutSecret } from '../runtime/builtin/errors.ts'
import type { GatewayContext, Log, Service } from '../service.ts'
import { createMutex } from '../workspaces/mutex.ts'
import { dropKept, type Kept, type KeptTokens, keptIds, type Pending, readKept, writeKept } from './kept.ts'
import { ask, isDown, issuerOf, troubleOf } from './post.ts'
import {
  authorizeUrl,
  codeForm,
  deviceForm,
  pollForm,
  type Read,
  readDevice,
  readPasted,
  readTokens,
  verifierOf,
} from './protocol.ts'
import { createTokens, isDue } from './tokens.ts'

type Connection = Pick<Row<'model_connections'>, 'id' | 'label' | 'base_url' | 'oauth'>

/** What people need for the rest, and nothing that lets anybody else do it (S1). */
export type Begun =
  | { readonly flow: 'paste'; readonly authorize_url: string; readonly expires_at: string }
  | {
      readonly flow: 'device'
      readonly user_code: string
      readonly verification_url: string
      readonly verification_url_complete: string | null
      readonly expires_at: string
    }

export interface SignIns extends Service {
  begin(connection: Connection, flow: SignInFlow, signal: AbortSignal): Promise<Read<Begun>>
  /** @param sealedId what the text was sealed in: doing it again with the same does nothing more */
  paste(connection: Connection, sealedId: string, text: string, signal: AbortSignal): Promise<Read<null>>
  /** Whether `paste` was done with this already. */
  isUsed(connectionId: string, sealedId: string): Promise<boolean>
  /** At once, whether it has run out or not. */
  refresh(connection: Connection, signal: AbortSignal): Promise<Read<{ readonly expires_at: number | null }>>
  /** A token that can be used now. */
  token(connection: Connection, signal?: AbortSignal): Promise<Read<string>>
  /** Whether a person is being waited for. */
  isPending(connectionId: string): Promise<boolean>
  /** Changes with each sign-in and renewal; tells nothing of the tokens. */
  mark(connectionId: string): Promise<string>
}

export type SignInsContext = Pick<GatewayContext, 'replica' | 'gatewayId' | 'home' | 'now'> & {
  readonly log: Log & { addSecret?(value: string): void }
}

export interface SignInsOptions {
  /** How long a second of a provider's interval is, in ms. */
  readonly secondMs?: number
  /** How often it is looked whether a token runs out soon. */
  readonly sweepMs?: number
}

/** To find the browser, sign in and come back. */
const PASTE_MS = 30 * 60_000
const SLOW_DOWN = 5
const LONGEST = 60

export function createSignIns(context: SignInsContext, options: SignInsOptions = {}): SignIns {
  const { replica, gatewayId, home, now, log } = context
  const { secondMs = 1_000, sweepMs = 30_000 } = options
  const stopping = new AbortController()
  const mutexes = new Map<string, ReturnType<typeof createMutex>>()
  const polls = new Map<string, NodeJS.Timeout>()
  const working = new Set<Promise<void>>()
  let sweeper: NodeJS.Timeout | undefined
  let end: (() => void) | undefined

  const serially = <T>(id: string, work: () => Promise<T>): Promise<T> => {
    const mutex = mutexes.get(id) ?? createMutex()
    mutexes.set(id, mutex)
    return mutex(work)
  }
  const known = async (id: string): Promise<Kept> => (await readKept(home, id)) ?? {}
  const hide = (...values: readonly (string | null)[]): void => {
    for (const value of values) if (value !== null) log.addSecret?.(value)
  }
  const bad = (message: string): { readonly ok: false; readonly message: string } => ({ ok: false, message })
  const outer = (signal?: AbortSignal): AbortSignal =>
    signal ? AbortSignal.any([signal, stopping.signal]) : stopping.signal

  const { token, refresh } = createTokens({ replica, home, now, hide, serially, outer })

  /** Work in the background: waited for at the end, its errors logged. */
  function inBackground(work: () => Promise<void>): void {
    const running: Promise<void> = work()
      .catch((error: unknown) => {
        if (!stopping.signal.aborted) log('warn', 'A sign-in at a model provider could not go on', { error })
      })
      .finally(() => working.delete(running))
    working.add(running)
  }

  const connectionOf = async (id: string): Promise<Connection | undefined> =>
    (
      await replica.query<Connection>(
        'select id, label, base_url, oauth from model_connections where id = $1 and gateway_id = $2 and deleted_at is null',
        [id, gatewayId],
      )
    )[0]

  async function begin(connection: Connection, flow: SignInFlow, signal: AbortSignal): Promise<Read<Begun>> {
    const read = readOauth(connection.oauth)
    if (!read.ok) return bad(`“${connection.label}” can’t be signed in to: ${read.message}`)
    const { settings } = read
    if (flow === 'paste' ? !settings.authorize_url : !settings.device_url)
      return bad(
        flow === 'paste'
          ? `“${connection.label}” has no address where a browser signs in. Use a device code, or add the address.`
          : `“${connection.label}” has no address that gives device codes. Sign in with a browser, or add the address.`,
      )
    return serially(connection.id, async () => {
      const before = await known(connection.id)
      const issuer = issuerOf(settings)
      if (flow === 'paste') {
        const pending: Pending = {
          issuer,
          flow,
          state: verifierOf(randomBytes(24)),
          verifier: verifierOf(randomBytes(32)),
          expires_at: now() + PASTE_MS,
        }
        hide(pending.verifier)
        await writeKept(home, connection.id, { ...before, pending })
        unschedule(connection.id)
        return {
          ok: true,
          value: {
            flow,
            authorize_url: authorizeUrl(settings, pending.state, pending.verifier),
            expires_at: new Date(pending.expires_at).toISOString(),
          },
        }
      }
      const posted = await ask(connection, settings.device_url ?? '', deviceForm(settings), outer(signal))
      if (!posted.ok || posted.refusal || posted.status >= 300)
        return bad(`The provider gave no device code. ${troubleOf(posted)}`)
      const device = readDevice(posted.body, now())
      if (!device.ok) return device
      const { device_code, user_code, interval, expires_at, verification_url, verification_url_complete } = device.value
      hide(device_code)
      const shown = [verification_url, verification_url_complete ?? '']
      if (shown.some((url) => url.includes(device_code)))
        return bad('The provider’s answer has its secret code in an address that people would see; it is not used.')
      const unsafe = shown.some((url) => url !== '' && isUnsafePage(url))
      if (unsafe) return bad('The provider’s page to sign in at is not https, so it is not shown to anybody.')
      await writeKept(home, connection.id, {
        ...before,
        pending: { issuer, flow, device_code, user_code, interval, expires_at },
      })
      schedule(connection.id, interval)
      return {
        ok: true,
        value: {
          flow,
          user_code,
          verification_url,
          verification_url_complete,
          expires_at: new Date(expires_at).toISOString(),
        },
      }
    })
  }

  function paste(connection: Connection, sealedId: string, text: string, signal: AbortSignal): Promise<Read<null>> {
    return serially(connection.id, async () => {
      const kept = await known(connection.id)
      if (kept.used === sealedId) return { ok: true, value: null }
      const read = readOauth(connection.oauth)
      const { pending } = kept
      if (!read.ok || pending?.flow !== 'paste' || pending.issuer !== issuerOf(read.settings))
        return bad(
          'No sign-in waits for this any more: it was finished, replaced, or its addresses were changed. Start it again.',
        )
      if (pending.expires_at <= now()) return bad('The sign-in took too long. Start it again.')
      hide(text)
      const code = readPasted(text, pending.state)
      if (!code.ok) return bad(withoutSecret(code.message, text))
      hide(code.value)
      const form = codeForm(read.settings, code.value, pending.verifier)
      const posted = await ask(connection, read.settings.token_url, form, outer(signal))
      if (isDown(posted))
        return bad(`The provider could not be asked for the token. ${troubleOf(posted)} Paste it again.`)
      const tokens = posted.ok && !posted.refusal && posted.status < 300 ? readTokens(posted.body, now()) : undefined
      if (!tokens?.ok) {
        // A code is good for one try.
        const { pending: _over, ...rest } = kept
        await writeKept(home, connection.id, rest)
        return bad(
          `The provider did not accept the code. ${tokens?.message ?? troubleOf(posted)} Start the sign-in again.`,
        )
      }
      hide(tokens.value.access_token, tokens.value.refresh_token)
      const fresh: KeptTokens = { ...tokens.value, issuer: pending.issuer }
      await writeKept(home, connection.id, { tokens: fresh, used: sealedId })
      return { ok: true, value: null }
    })
  }

  function unschedule(id: string): void {
    clearTimeout(polls.get(id))
    polls.delete(id)
  }

  function schedule(id: string, seconds: number): void {
    unschedule(id)
    if (stopping.signal.aborted) return
    polls.set(
      id,
      setTimeout(() => {
        polls.delete(id)
        inBackground(() => serially(id, () => poll(id, seconds)))
      }, seconds * secondMs),
    )
  }

  /** One question of RFC 8628 §3.4. @param waited since the one before, in seconds */
  async function poll(id: string, waited: number): Promise<void> {
    const kept = await known(id)
    const { pending } = kept
    if (pending?.flow !== 'device' || stopping.signal.aborted) return
    const connection = await connectionOf(id)
    const read = connection && readOauth(connection.oauth)
    if (!connection || !read?.ok || issuerOf(read.settings) !== pending.issuer)
      return over(id, kept, 'The connection was changed meanwhile. Start the sign-in again.')
    if (pending.expires_at <= now()) return over(id, kept, 'The code was not entered in time. Start the sign-in again.')
    const form = pollForm(read.settings, pending.device_code)
    const posted = await ask(connection, read.settings.token_url, form, stopping.signal)
    if (stopping.signal.aborted) return
    const error = posted.ok ? posted.refusal?.error : undefined
    if (error === 'authorization_pending') return schedule(id, pending.interval)
    if (error === 'slow_down') {
      const interval = pending.interval + SLOW_DOWN
      await writeKept(home, id, { ...kept, pending: { ...pending, interval } })
      return schedule(id, interval)
    }
    if (isDown(posted))
      return schedule(id, Math.min(Math.max(waited * 2, pending.interval), Math.max(LONGEST, pending.interval)))
    if (error === 'access_denied') return over(id, kept, 'The sign-in was refused at the provider.')
    if (error === 'expired_token') return over(id, kept, 'The code was not entered in time. Start the sign-in again.')
    const tokens = posted.ok && !posted.refusal && posted.status < 300 ? readTokens(posted.body, now()) : undefined
    if (!tokens?.ok)
      return over(id, kept, `The provider did not finish the sign-in. ${tokens?.message ?? troubleOf(posted)}`)
    hide(tokens.value.access_token, tokens.value.refresh_token)
    await writeKept(home, id, { tokens: { ...tokens.value, issuer: pending.issuer } })
    await say(id, 'unchecked', 'Signed in; it is tried now.')
  }

  /** (S3) Within `serially`. */
  async function over(id: string, kept: Kept, why: string): Promise<void> {
    const { pending: _over, ...rest } = kept
    unschedule(id)
    await writeKept(home, id, rest.tokens ? rest : { ...rest, refused: why })
    await (rest.tokens ? say(id, 'ok', `${STILL_COUNTS} ${why}`) : say(id, 'failed', why))
  }

  const say = async (id: string, status: Row<'model_connections'>['status'], detail: string): Promise<void> => {
    await replica.write((tx) =>
      tx.query(
        `update model_connections set status = $2, status_detail = $3, checked_at = $4
         where id = $1 and deleted_at is null and (status, status_detail) is distinct from ($2, $3)`,
        [id, status, detail, new Date(now()).toISOString()],
      ),
    )
  }

  /** What runs out is renewed or ended; what belongs to no connection any more is deleted. */
  async function sweep(): Promise<void> {
    if (!replica.status().initial.done) return
    for (const id of await keptIds(home)) {
      if (stopping.signal.aborted) return
      const connection = await connectionOf(id)
      if (!connection || connection.oauth === null) {
        unschedule(id)
        await serially(id, () => dropKept(home, id))
        continue
      }
      const { pending, tokens } = await known(id)
      if (pending && pending.expires_at <= now())
        await serially(id, async () => {
          const kept = await known(id)
          if (kept.pending && kept.pending.expires_at <= now())
            await over(id, kept, 'The sign-in was not finished in time. Start it again.')
        })
      else if (pending?.flow === 'device' && !polls.has(id)) schedule(id, pending.interval)
      if (!tokens?.refresh_token || !isDue(tokens, now())) continue
      const renewed = await token(connection)
      if (!renewed.ok) await say(id, 'failed', renewed.message)
    }
  }

  return {
    begin,
    paste,
    refresh,
    token,
    isUsed: async (id, sealedId) => (await known(id)).used === sealedId,
    isPending: async (id) => ((await known(id)).pending?.expires_at ?? 0) > now(),
    mark: async (id) => String((await known(id)).tokens?.obtained_at ?? ''),
    start: async () => {
      const look = (): void => inBackground(sweep)
      const ends = [
        replica.onChange((changes) => changes.has('model_connections') && look()),
        replica.onStatus(({ initial }) => initial.done && look()),
      ]
      end = () => {
        for (const each of ends) each()
      }
      sweeper = setInterval(look, sweepMs)
      look()
    },
    stop: async () => {
      stopping.abort()
      end?.()
      clearInterval(sweeper)
      for (const id of polls.keys()) unschedule(id)
      await Promise.all(working)
    },
  }
}

const isUnsafePage = (url: string): boolean => {
  const { protocol = '', hostname = '' } = URL.parse(url) ?? {}
  return protocol !== 'https:' && !(protocol === 'http:' && isLoopbackHost(hostname))
}

/** One for a gateway, for parts that are made at different times. */
const made = new WeakMap<object, SignIns>()

export function signInsOf(context: SignInsContext, options?: SignInsOptions): SignIns {
  const knownOne = made.get(context) ?? createSignIns(context, options)
  made.set(context, knownOne)
  return knownOne
}
