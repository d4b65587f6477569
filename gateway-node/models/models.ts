/**
 * Which model the agents of this gateway use: the connection that people made for it in the app, else the gateway's own environment (`builtin/config.ts`).
 *
 *  M1 The newest connection with `is_default` counts. It is read anew for every run, so that a change counts with the next one.
 *  M2 Its key is a secret of category `model`, opened here at the moment of asking; it is in no row, file, log or message, and goes to no agent.
 *  M3 A connection that can't be used is a sentence; it is never passed over for another one, or for the demo model.
 *  M4 A connection that people sign in to has a token instead of a key (oauth/sign-ins.ts): renewed before it ends, and otherwise like a key (M2, M3).
 *  M5 Each connection is tried after a change, and when somebody asks: `status`, `status_detail`, `checked_at` say how that went. Not
 *     while somebody signs in.
 */
import type { Row } from '@hq/shared/schema/tables.ts'
import { signInsOf } from '../oauth/sign-ins.ts'
import {
  type ConfigResult,
  DEFAULT_URL,
  type ModelConfig,
  type ProviderName,
  readModelConfig,
  WINDOW,
} from '../runtime/builtin/config.ts'
import { PRICES } from '../runtime/builtin/prices.ts'
import { listModels } from '../runtime/builtin/providers.ts'
import type { GatewayContext, Log, Service } from '../service.ts'
import { openModelSecret } from './sealed.ts'

export interface Models extends Service {
  /** What the next run uses. Never throws. */
  resolve(): Promise<ConfigResult>
  /** Tries every connection and says how it is (M5). */
  check(signal?: AbortSignal): Promise<void>
}

export type ModelsContext = Pick<GatewayContext, 'replica' | 'gatewayId' | 'tenantId' | 'home' | 'env' | 'now'> & {
  readonly log: Log & { addSecret?(value: string): void }
}

type Connection = Row<'model_connections'>

const OPENROUTER = 'https://openrouter.ai/api/v1'

export function createModels(context: ModelsContext): Models {
  const { replica, gatewayId, home, env, now, log } = context
  const signIns = signInsOf(context)
  /** What was tried, by connection. */
  const tried = new Map<string, string>()
  let checking: Promise<void> = Promise.resolve()
  let stopped = false
  let ends: (() => void)[] = []
  const stopping = new AbortController()

  const connections = (): Promise<Connection[]> =>
    replica.query<Connection>(
      'select * from model_connections where gateway_id = $1 and deleted_at is null order by created_at desc, id desc',
      [gatewayId],
    )

  async function resolve(): Promise<ConfigResult> {
    try {
      const chosen = (await connections()).find((connection) => connection.is_default)
      return chosen ? await configOf(chosen) : await readModelConfig(home, env)
    } catch (error) {
      log('error', 'The model connection could not be read', {
        error: error instanceof Error ? error.message : String(error),
      })
      return { ok: false, message: 'The model connection could not be read on this gateway; its log says why.' }
    }
  }

  async function configOf(connection: Connection): Promise<ConfigResult> {
    const provider: ProviderName = connection.provider === 'openrouter' ? 'openai' : connection.provider
    const signedIn = connection.oauth === null ? undefined : await signIns.token(connection)
    if (signedIn && !signedIn.ok)
      return { ok: false, message: `The model connection “${connection.label}” can’t be used: ${signedIn.message}` }
    const key = signedIn
      ? signedIn.value
      : connection.secret_id === null
        ? undefined
        : await openModelSecret(context, connection.secret_id)
    if (key === null)
      return {
        ok: false,
        message: `The key of the model connection “${connection.label}” is not on this gateway: it was revoked, or sealed for a key that the gateway does not have. Set it again under Models in the app.`,
      }
    if (key === undefined && connection.provider !== 'ollama' && connection.base_url === null)
      return {
        ok: false,
        message: `The model connection “${connection.label}” has no key. Remove it and connect it anew with one, under Models in the app.`,
      }
    const config: ModelConfig = {
      provider,
      baseUrl: addressOf(connection),
      apiKey: key,
      ...(signedIn ? { bearer: true } : {}),
      model: connection.default_model ?? undefined,
      contextTokens: WINDOW[provider],
      prices: PRICES,
    }
    return { ok: true, config }
  }

  /** So that a connection is tried again when something of it changed. */
  async function marksOf(all: readonly Connection[]): Promise<Map<string, string>> {
    const versions = await replica.query<{ id: string; version: number; gone: boolean; there: number }>(
      `select s.id, s.version, s.deleted_at is not null as gone,
         (select count(*)::int from sealed_secrets x where x.secret_id = s.id and x.deleted_at is null and x.sealed <> '') as there
       from secrets s where s.gateway_id = $1 and s.category = 'model'`,
      [gatewayId],
    )
    const secrets = new Map(versions.map(({ id, ...rest }) => [id, JSON.stringify(rest)]))
    const marks = new Map<string, string>()
    for (const { id, provider, base_url, secret_id, default_model, oauth } of all) {
      const key = oauth === null ? [secret_id, secret_id && secrets.get(secret_id)] : [oauth, await signIns.mark(id)]
      marks.set(id, JSON.stringify([provider, base_url, default_model, ...key]))
    }
    return marks
  }

  async function tryThem(which: 'changed' | 'all', signal: AbortSignal): Promise<void> {
    const all = await connections()
    const marks = await marksOf(all)
    for (const connection of all) {
      if (stopped) return
      // The row says then that a person is waited for.
      if (connection.oauth !== null && (await signIns.isPending(connection.id))) continue
      const mark = marks.get(connection.id) ?? ''
      // One that an earlier process has tried is not tried again for a restart.
      if (which === 'changed' && !tried.has(connection.id) && connection.status !== 'unchecked')
        tried.set(connection.id, mark)
      if (which === 'changed' && tried.get(connection.id) === mark) continue
      tried.set(connection.id, mark)
      const read = await configOf(connection)
      const listing = read.ok ? await listModels(read.config, signal) : read
      if (stopped) return
      const known = listing.ok && 'models' in listing ? listing.models : []
      const wanted = connection.default_model
      const missing = listing.ok && wanted !== null && known.length > 0 && !known.some(({ model }) => model === wanted)
      const detail = !listing.ok
        ? listing.message
        : missing
          ? `The provider answers, but does not list the model “${wanted}”.`
          : `${known.length} models`
      await replica.write((tx) =>
        tx.query('update model_connections set status = $2, status_detail = $3, checked_at = $4 where id = $1', [
          connection.id,
          listing.ok && !missing ? 'ok' : 'failed',
          detail,
          new Date(now()).toISOString(),
        ]),
      )
    }
  }

  function enqueue(which: 'changed' | 'all', signal: AbortSignal): Promise<void> {
    const next = checking.then(() => (stopped ? undefined : tryThem(which, signal)))
    checking = next.catch((error: unknown) =>
      log('warn', 'A model connection could not be tried', {
        error: error instanceof Error ? error.message : String(error),
      }),
    )
    return next
  }

  const poke = (): void => {
    if (!stopped && replica.status().initial.done) enqueue('changed', stopping.signal).catch(() => undefined) // logged by the queue
  }

  return {
    resolve,
    check: (signal) => enqueue('all', signal ? AbortSignal.any([signal, stopping.signal]) : stopping.signal),
    start: async () => {
      ends = [
        replica.onStatus(poke),
        replica.onChange((changes) => {
          if (changes.has('model_connections') || changes.has('secrets') || changes.has('sealed_secrets')) poke()
        }),
      ]
      await signIns.start()
      poke()
    },
    stop: async () => {
      stopped = true
      await signIns.stop()
      stopping.abort()
      for (const end of ends.splice(0)) end()
      await checking
    },
  }
}

function addressOf({ provider, base_url }: Connection): string | undefined {
  const given = base_url?.replace(/\/+$/, '')
  if (provider === 'openrouter') return given ?? OPENROUTER
  if (given === undefined) return DEFAULT_URL[provider]
  // People give the address of the program; its interface is below it.
  return provider === 'ollama' && URL.parse(given)?.pathname === '/' ? `${given}/api` : given
}

/** One for a gateway, for parts that are made at different times. */
const made = new WeakMap<object, Models>()

export function modelsOf(context: ModelsContext): Models {
  const known = made.get(context) ?? createModels(context)
  made.set(context, known)
  return known
}
