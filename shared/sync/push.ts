/**
 * The pusher as IO: carries out what `core/push.ts` decides. Its rules are W1–W5 there.
 *
 * Numbers in the database belong to the identity of that moment; every statement that takes a number names the identity it means (W5).
 */
import type { PGlite } from '@electric-sql/pglite'
import type { ReplicaEnvironment } from './contract.ts'
import { newPush, type PushEffect, type PushEvent, push } from './core/push.ts'
import { backoffMs, type Link } from './link.ts'
import { errorBodySchema, LIMITS, PROTOCOL_VERSION, pushResponseSchema } from './protocol.ts'

export interface Pusher {
  /** There is something to send. */
  poke(): void
  /** The replica has taken a new identity. */
  renewed(replicaId: string): void
  /** Why nothing is sent although we are online; null: nothing is in the way. */
  parked(): string | null
  stop(): Promise<void>
}

export interface PusherOptions {
  readonly db: PGlite
  readonly link: Link
  readonly replicaId: () => string
  readonly schemaVersion: string
  readonly log: ReplicaEnvironment['log']
  /** The answer to a push: what of it was applied. */
  readonly onAccepted: (applied: ReadonlySet<number>) => void
  /** The server has less than it had acknowledged: it was restored. */
  readonly onRealigned: () => void
  readonly onParked: (reason: string | null) => void
  /** Takes a new identity, and says so by `renewed`. */
  readonly onCloned: (reason: string) => Promise<void>
}

const REQUEST_TIMEOUT_MS = 30_000
/** A parked outbox tries again after this long, or at once when the connection is made anew. */
const PARKED_RETRY_MS = 15_000
const UNAUTHORIZED_RETRY_MS = 5_000
/** Below the limit of a push, for what its envelope and JSON's spaces add. */
const BATCH_BYTES = LIMITS.pushBytes - 512 * 1024

export function createPusher(options: PusherOptions): Pusher {
  const { db, link, log } = options
  const closing = new AbortController()
  const waiting: PushEvent[] = []
  const begun = new Set<Promise<void>>()
  let state = newPush(options.replicaId(), LIMITS.mutationsPerPush)
  /** What `read` found, for `send`. */
  let batch: readonly string[] = []
  let working = false

  /** Events one after the other; the effects of each are carried out before the next, also of one that comes of an effect. */
  const happen = (event: PushEvent): void => {
    waiting.push(event)
    if (working) return
    working = true
    try {
      for (let next = waiting.shift(); next && !closing.signal.aborted; next = waiting.shift()) {
        const after = push(state, next, LIMITS.mutationsPerPush)
        state = after.state
        for (const effect of after.effects) carryOut(effect)
      }
    } finally {
      working = false
    }
  }

  const carryOut = (effect: PushEffect): void => {
    switch (effect.type) {
      case 'set_parked':
        options.onParked(effect.reason)
        return
      case 'set_unauthorized':
        link.setUnauthorized(effect.unauthorized)
        return
      case 'log':
        log(effect.level, effect.message)
        return
      default: {
        // What takes time reports by an event of its own: meanwhile `poked` and `renewed` are heard.
        const work = begin(effect).finally(() => begun.delete(work))
        begun.add(work)
      }
    }
  }

  /** Never rejects. */
  const begin = async (effect: Begun): Promise<void> => {
    try {
      const event = await perform(effect)
      if (event && !closing.signal.aborted) happen(event)
    } catch (error) {
      if (closing.signal.aborted) return
      log('error', `The outbox could not be read or sent: ${messageOf(error)}`)
      happen({ type: 'failed', reason: messageOf(error) })
    }
  }

  const perform = async (effect: Begun): Promise<PushEvent | undefined> => {
    switch (effect.type) {
      case 'read':
        return readBatch(effect.most)
      case 'send':
        return send(batch)
      case 'look':
        return look(effect.seq)
      case 'accept':
        await db.query('select sync.accept($1, $2)', [effect.upto, effect.replicaId])
        if (options.replicaId() === effect.replicaId) options.onAccepted(new Set(effect.applied))
        return { type: 'stored' }
      case 'realign':
        await db.query('select sync.realign($1, $2)', [effect.expected, effect.replicaId])
        if (options.replicaId() === effect.replicaId) options.onRealigned()
        return { type: 'stored' }
      case 'renew':
        // Its end comes by `renewed`, from whoever takes the new identity.
        return void (await options.onCloned(effect.reason))
      case 'sleep':
        await link.sleep(sleepMs(effect), closing.signal)
        return { type: 'woke' }
    }
  }

  const readBatch = async (most: number): Promise<PushEvent> => {
    const { rows } = await db.query<{ replica: string; seq: string | null; body: string }>(
      'select r.replica_id as replica, p.seq::text, p.body from sync.replica r left join sync.to_push($1, $2) p on true order by p.seq',
      [most, BATCH_BYTES],
    )
    const found = rows.filter(({ seq }) => seq !== null)
    batch = found.map(({ body }) => body)
    return { type: 'read', replicaId: rows[0]?.replica ?? '', first: Number(found[0]?.seq ?? 0), count: found.length }
  }

  const send = async (mutations: readonly string[]): Promise<PushEvent> => {
    const { replicaId } = state
    const head = { protocol: PROTOCOL_VERSION, replica_id: replicaId, schema_version: options.schemaVersion }
    // The mutations are JSON already; parsing them only to print them again would cost digits and time.
    const body = `${JSON.stringify(head).slice(0, -1)},"mutations":[${mutations.join(',')}]}`
    let response: Response
    let text: string
    try {
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)])
      const headers = { 'content-type': 'application/json' }
      response = await link.request('/v1/mutations', { method: 'POST', headers, body, signal })
      text = await response.text()
    } catch (error) {
      return { type: 'failed', reason: messageOf(error) }
    }
    if (response.status === 200) {
      return { type: 'accepted', replicaId, answer: pushResponseSchema.safeParse(parseJson(text)).data }
    }
    return {
      type: 'refused',
      replicaId,
      status: response.status,
      body: errorBodySchema.safeParse(parseJson(text)).data,
      retryAfterMs: Number(response.headers.get('retry-after') ?? 0) * 1000 || 0,
    }
  }

  const look = async (seq: number): Promise<PushEvent> => {
    const { rows } = await db.query<{ replica: string; next: string; held: boolean }>(
      `select replica_id as replica, next_seq::text as next, exists (select from sync.outbox where seq = $1 and state <> 'rejected') as held from sync.replica`,
      [seq],
    )
    const row = rows[0]
    return { type: 'looked', replicaId: row?.replica ?? '', next: Number(row?.next ?? 1), held: row?.held ?? false }
  }

  happen({ type: 'poked' })
  return {
    poke: () => happen({ type: 'poked' }),
    renewed: (replicaId) => happen({ type: 'renewed', replicaId }),
    parked: () => state.parked,
    async stop() {
      closing.abort()
      await Promise.all(begun)
    },
  }
}

type Begun = Exclude<PushEffect, { type: 'set_parked' | 'set_unauthorized' | 'log' }>

const sleepMs = (effect: Extract<PushEffect, { type: 'sleep' }>): number => {
  switch (effect.why) {
    case 'backoff':
      return Math.max(effect.atLeastMs, backoffMs(effect.attempt))
    case 'parked':
      return PARKED_RETRY_MS
    case 'unauthorized':
      return UNAUTHORIZED_RETRY_MS
  }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON: a proxy's page, or a cut answer. The caller treats it as an answer that it cannot read.
    return undefined
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
