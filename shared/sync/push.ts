/**
 * The pusher: brings what is pending to the server, in order, exactly once.
 *
 * W1 Batches go in order of `seq`, one at a time; a repeat after a lost answer is recognised by the server by its `seq`.
 * W2 An answer is used for flow only: `accepted` means "need not be sent again". A mutation ends through the read path (settle.ts).
 * W3 409: the server says which `seq` it expects. What we still hold from there on is sent again. What we do not hold, or have never made, means that
 *    this database or the server's was copied or restored: we take a new identity and number what is pending anew.
 * W4 Nothing is dropped: without rights, or with the wrong schema, the outbox is parked and tried again later.
 */
import type { PGlite } from '@electric-sql/pglite'
import type { ReplicaEnvironment } from './contract.ts'
import { backoffMs, type Link } from './link.ts'
import { errorBodySchema, LIMITS, PROTOCOL_VERSION, pushResponseSchema } from './protocol.ts'

export interface Pusher {
  /** There is something to send. */
  poke(): void
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
  readonly onParked: (reason: string | null) => void
  /** Takes a new identity; the pusher goes on with it. */
  readonly onCloned: (reason: string) => Promise<void>
}

const REQUEST_TIMEOUT_MS = 30_000
/** A parked outbox tries again after this long, or at once when the connection is made anew. */
const PARKED_RETRY_MS = 15_000
const UNAUTHORIZED_RETRY_MS = 5_000
/** Below the limit of a push, for what its envelope and JSON's spaces add. */
const BATCH_BYTES = LIMITS.pushBytes - 512 * 1024

type Outcome =
  | { readonly kind: 'sent'; readonly upto: number }
  | { readonly kind: 'resend' }
  | { readonly kind: 'smaller' }
  | { readonly kind: 'retry'; readonly reason: string; readonly afterMs?: number }
  | { readonly kind: 'parked'; readonly reason: string; readonly unauthorized: boolean }

export function createPusher(options: PusherOptions): Pusher {
  const { db, link, log } = options
  const closing = new AbortController()
  let dirty = true
  let parked: string | null = null
  let alarm: (() => void) | undefined
  let most: number = LIMITS.mutationsPerPush

  const setParked = (reason: string | null): void => {
    if (reason === parked) return
    parked = reason
    options.onParked(reason)
  }

  const run = async (): Promise<void> => {
    let failures = 0
    let expectedBefore: number | undefined
    while (!closing.signal.aborted) {
      if (!dirty) {
        await new Promise<void>((resolve) => {
          alarm = resolve
        })
        alarm = undefined
        continue
      }
      dirty = false
      try {
        const batch = await nextBatch()
        if (batch.length === 0) continue
        dirty = true
        const outcome = await send(batch, (expected) => {
          const again = expected === expectedBefore
          expectedBefore = expected
          return again
        })
        if (outcome.kind === 'sent') {
          failures = 0
          expectedBefore = undefined
          most = LIMITS.mutationsPerPush
          setParked(null)
          link.setUnauthorized(false)
        } else if (outcome.kind === 'smaller') {
          most = Math.max(1, Math.floor(batch.length / 2))
        } else if (outcome.kind === 'retry') {
          log('debug', `Push failed: ${outcome.reason}`)
          await link.sleep(Math.max(outcome.afterMs ?? 0, backoffMs(failures++)), closing.signal)
        } else if (outcome.kind === 'parked') {
          if (outcome.unauthorized) link.setUnauthorized(true)
          else setParked(outcome.reason)
          await link.sleep(outcome.unauthorized ? UNAUTHORIZED_RETRY_MS : PARKED_RETRY_MS, closing.signal)
        }
      } catch (error) {
        if (closing.signal.aborted) return
        dirty = true
        log('error', `The outbox could not be read or sent: ${messageOf(error)}`)
        await link.sleep(backoffMs(failures++), closing.signal)
      }
    }
  }

  const nextBatch = async (): Promise<{ seq: number; body: string }[]> => {
    const { rows } = await db.query<{ seq: string; body: string }>('select seq::text, body from sync.to_push($1, $2)', [
      most,
      BATCH_BYTES,
    ])
    return rows.map(({ seq, body }) => ({ seq: Number(seq), body }))
  }

  const send = async (
    batch: readonly { seq: number; body: string }[],
    sameAgain: (expected: number) => boolean,
  ): Promise<Outcome> => {
    const head = { protocol: PROTOCOL_VERSION, replica_id: options.replicaId(), schema_version: options.schemaVersion }
    // The mutations are JSON already; parsing them only to print them again would cost digits and time.
    const body = `${JSON.stringify(head).slice(0, -1)},"mutations":[${batch.map((mutation) => mutation.body).join(',')}]}`
    let response: Response
    let text: string
    try {
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)])
      const headers = { 'content-type': 'application/json' }
      response = await link.request('/v1/mutations', { method: 'POST', headers, body, signal })
      text = await response.text()
    } catch (error) {
      return { kind: 'retry', reason: messageOf(error) }
    }
    // A new identity taken meanwhile has other numbers: this answer is about nobody.
    if (options.replicaId() !== head.replica_id) return { kind: 'resend' }
    if (response.status === 200) return accept(text, batch)
    return refuse(response, text, batch, sameAgain)
  }

  const accept = async (text: string, batch: readonly { seq: number }[]): Promise<Outcome> => {
    const answer = pushResponseSchema.safeParse(parseJson(text))
    if (!answer.success) return { kind: 'retry', reason: 'the answer of the server was not readable' }
    const upto = answer.data.last_seq
    if (upto < (batch[0]?.seq ?? 0)) return { kind: 'retry', reason: 'the server took nothing of the batch' }
    if (await neverMade(upto)) {
      await options.onCloned(`the server has mutations up to ${upto} of this identity`)
      return { kind: 'resend' }
    }
    await db.query(`update sync.outbox set state = 'accepted' where state = 'pending' and seq > 0 and seq <= $1`, [
      upto,
    ])
    options.onAccepted(new Set(answer.data.results.flatMap(({ seq, outcome }) => (outcome === 'applied' ? [seq] : []))))
    return { kind: 'sent', upto }
  }

  const refuse = async (
    response: Response,
    text: string,
    batch: readonly unknown[],
    sameAgain: (expected: number) => boolean,
  ): Promise<Outcome> => {
    const parsed = errorBodySchema.safeParse(parseJson(text))
    const code = parsed.data?.code ?? `http_${response.status}`
    const expected = parsed.data?.expected_seq
    switch (response.status) {
      case 401:
        return { kind: 'parked', reason: code, unauthorized: true }
      case 409:
        if (expected === undefined) return { kind: 'retry', reason: code }
        if (sameAgain(expected)) return { kind: 'retry', reason: `the server keeps expecting ${expected}` }
        return realign(expected)
      case 413:
        return batch.length > 1 ? { kind: 'smaller' } : { kind: 'parked', reason: 'too_large', unauthorized: false }
      case 400:
      case 403:
      case 426:
        return { kind: 'parked', reason: code, unauthorized: false }
      default:
        return { kind: 'retry', reason: code, afterMs: Number(response.headers.get('retry-after') ?? 0) * 1000 || 0 }
    }
  }

  const neverMade = async (seq: number): Promise<boolean> =>
    (await db.query('select from sync.replica where next_seq <= $1', [seq])).rows.length > 0

  /** W3 */
  const realign = async (expected: number): Promise<Outcome> => {
    const { rows } = await db.query<{ next: string; held: boolean }>(
      `select next_seq::text as next, exists (select from sync.outbox where seq = $1 and state <> 'rejected') as held from sync.replica`,
      [expected],
    )
    const next = Number(rows[0]?.next ?? 1)
    if (expected > next) {
      await options.onCloned(
        `the server has mutations up to ${expected - 1} of this identity, we have made ${next - 1}`,
      )
    } else if (expected === next || rows[0]?.held) {
      log('info', `The server expects mutation ${expected}; sending from there.`)
      await db.query(
        `update sync.outbox set state = case when seq < $1 then 'accepted' else 'pending' end where state in ('pending', 'accepted') and seq > 0`,
        [expected],
      )
    } else {
      await options.onCloned(
        `the server expects mutation ${expected}, which is settled here; it was probably restored from a backup`,
      )
    }
    return { kind: 'resend' }
  }

  const finished = run()
  return {
    poke() {
      dirty = true
      alarm?.()
    },
    parked: () => parked,
    async stop() {
      closing.abort()
      alarm?.()
      await finished
    },
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
