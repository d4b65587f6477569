/**
 * `POST /v1/mutations`: a batch of a replica's mutations, in one transaction.
 *
 *  1. `client_progress` of the replica is locked first: two pushes of one replica go one after the other. Whatever is acknowledged is in the same commit.
 *  2. A `seq` at or below `last_seq` is a repeat if it names the mutation that was taken under it: its stored result is returned, nothing is done. Any
 *     other was made by a copy of this replica: 409 `identity_taken`, and nothing of the batch is done. A gap is 409 `out_of_order` with the
 *     `expected_seq`.
 *  3. Each new mutation stands or falls alone: what is malformed, too large, forbidden or refused by Postgres is recorded in `mutation_results`, and the next is
 *     tried. Its `seq` is used up either way, so that an outbox never wedges on one bad entry.
 *  4. What is nobody's fault (deadlock, full disk, shutdown) undoes the whole batch: tried again here, then 503.
 *  5. The newest `REMEMBERED` numbers of a replica are kept with their mutation ids. An older one can't be an honest repeat: a replica sends in order, and
 *     waits for the answer. So it is treated as a copy's: better two rows of history than a change that is taken for another and lost.
 *  6. A mutation has its effect once, also when a copied replica sends it again under its new identity: whoever of the same owner sends a mutation id that
 *    was taken gets it as applied. Pushes of one owner therefore go one after the other.
 */
import { derivedId, isUuid } from '@hq/shared/domain/ids.ts'
import {
  LIMITS,
  type Mutation,
  mutationSchema,
  type Patch,
  PROTOCOL_VERSION,
  type Principal,
  type PushResponse,
  type PushResult,
  pushRequestSchema,
} from '@hq/shared/sync/protocol.ts'
import { type Client, isDatabaseAway, type Pool, sqlState, transaction } from '../database/pool.ts'
import { HttpError } from '../errors.ts'
import type { AccessChanges, Log } from '../http/context.ts'
import type { Replicas } from '../http/replicas.ts'
import { loadStore } from './load.ts'
import { type Entry, planMutation, Rejected } from './plan.ts'
import { type Failure, rejectionOf } from './refusals.ts'
import { otherMutation, sequence } from './sequence.ts'

export type Push = (principal: Principal, body: string, label?: string) => Promise<PushResponse>

export interface PushServices {
  readonly pool: Pool
  readonly replicas: Replicas
  readonly accessChanges: AccessChanges
  readonly schemaVersion: string
  readonly log: Log
}

/** At least as many as an honest replica may have sent without having heard the answer: one push (5). */
const REMEMBERED = 2_000
const TRIES = 4
/** Serialisation failure, deadlock, lock not available. */
const AGAIN = new Set(['40001', '40P01', '55P03'])

export const createPush =
  (services: PushServices): Push =>
  async (principal, body, label) => {
    const request = readRequest(body, services.schemaVersion)
    await services.replicas.check(principal, request.replica_id, label)
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await transaction(services.pool, (client) =>
          pushBatch(client, principal, request, services.log),
        )
        if (request.touchesAccess) services.accessChanges.announce()
        return response
      } catch (error) {
        if (error instanceof HttpError) throw error
        const state = sqlState(error) ?? ''
        if (AGAIN.has(state) && attempt < TRIES) {
          await new Promise((later) => setTimeout(later, Math.random() * 50 * attempt))
          continue
        }
        // What is left is a defect of ours.
        if (!AGAIN.has(state) && !isDatabaseAway(error)) throw error
        services.log('error', 'A push could not be stored.', {
          state,
          error: error instanceof Error ? error.message : String(error),
        })
        const why = state === '53100' ? 'its disk is full' : 'its database is busy'
        throw new HttpError(
          503,
          'busy',
          `The server can't store changes just now: ${why}. They are kept here and sent again.`,
          {},
          { 'retry-after': '2' },
        )
      }
    }
  }

type Item = { readonly seq: number | undefined; readonly mutationId: string | undefined } & (
  | { readonly mutation: Mutation }
  | { readonly problem: Rejected }
)

interface Request {
  readonly replica_id: string
  readonly items: Item[]
  readonly touchesAccess: boolean
}

function readRequest(body: string, schemaVersion: string): Request {
  let input: unknown
  try {
    input = JSON.parse(body)
  } catch (error) {
    throw new HttpError(400, 'malformed', `The push is not JSON: ${error instanceof Error ? error.message : ''}`)
  }
  const protocol = (input as { protocol?: unknown } | null)?.protocol
  if (protocol !== undefined && protocol !== PROTOCOL_VERSION) {
    throw new HttpError(
      426,
      'protocol',
      `This server speaks protocol ${PROTOCOL_VERSION}, the app ${String(protocol)}. Reload the app, or update the server.`,
    )
  }
  const parsed = pushRequestSchema.safeParse(input)
  if (!parsed.success)
    throw new HttpError(400, 'malformed', `The push is not of the agreed form: ${describe(parsed.error.issues)}`)
  const { replica_id, schema_version, mutations } = parsed.data
  if (schema_version > schemaVersion) {
    throw new HttpError(
      426,
      'schema_too_new',
      `The app (${schema_version}) is newer than the server (${schemaVersion}). Update the server; changes are kept until then.`,
    )
  }
  const items = mutations.map(readItem)
  const touchesAccess = items.some((item) => 'mutation' in item && item.mutation.patches.some(changesAccess))
  return { replica_id: replica_id.toLowerCase(), items, touchesAccess }
}

/** A gateway's heartbeat, which comes all the time, is no change of access. */
const changesAccess = ({ table, op, set }: Patch): boolean =>
  table === 'people' || (table === 'gateways' && (op === 'delete' || 'deleted_at' in set))

function readItem(input: unknown): Item {
  const raw = typeof input === 'object' && input !== null ? (input as Record<string, unknown>) : {}
  const seq = Number.isSafeInteger(raw['seq']) ? (raw['seq'] as number) : undefined
  const mutationId = isUuid(raw['mutation_id']) ? raw['mutation_id'] : undefined
  const refused = (problem: Rejected): Item => ({ seq, mutationId, problem })
  try {
    if (JSON.stringify(input).length > LIMITS.mutationBytes) {
      return refused(
        new Rejected(
          'too_large',
          `This change is larger than ${LIMITS.mutationBytes / 1024 / 1024} MiB. Make it in smaller steps.`,
        ),
      )
    }
    const parsed = mutationSchema.safeParse(input)
    if (parsed.success) return { seq, mutationId, mutation: parsed.data }
    const tooMany = Array.isArray(raw['patches']) && raw['patches'].length > LIMITS.patchesPerMutation
    if (tooMany)
      return refused(
        new Rejected(
          'too_large',
          `This change touches more than ${LIMITS.patchesPerMutation} rows. Make it in smaller steps.`,
        ),
      )
    return refused(new Rejected('malformed', `The server can't read this change: ${describe(parsed.error.issues)}`))
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return refused(new Rejected('malformed', 'The server can’t read this change: it is nested too deep.'))
  }
}

const describe = (issues: readonly { path: PropertyKey[]; message: string }[]): string =>
  issues
    .slice(0, 3)
    .map(({ path, message }) => `${path.map(String).join('.') || 'it'}: ${message}`)
    .join('; ')
    .slice(0, 500)

async function pushBatch(
  client: Client,
  principal: Principal,
  { replica_id: replicaId, items }: Request,
  log: Log,
): Promise<PushResponse> {
  const last = await lockProgress(client, principal, replicaId)
  const ordered = sequence(numbered(items, last), last)
  if (ordered.type === 'out_of_order') {
    const { expected, found } = ordered
    throw new HttpError(409, 'out_of_order', `The next change of this replica is number ${expected}, not ${found}.`, {
      expected_seq: expected,
    })
  }
  const { repeats, fresh } = ordered
  const results: PushResult[] = []
  if (repeats.length > 0) {
    await checkRepeats(client, replicaId, repeats)
    const seqs = repeats.map(({ seq }) => seq)
    results.push(...(await storedResults(client, replicaId, seqs)))
  }
  if (fresh.length > 0) {
    const elsewhere = await takenElsewhere(client, principal, replicaId, fresh)
    results.push(...(await applyAll(client, { principal, replicaId, log, elsewhere }, fresh)))
    await recordTaken(client, replicaId, fresh)
  }
  return { last_seq: fresh.at(-1)?.seq ?? last, results }
}

/** Of an entry whose id can't be read, one that every repeat of it has as well. */
const mutationIdOf = (replicaId: string, { seq, mutationId }: Numbered): string =>
  mutationId?.toLowerCase() ?? derivedId('mutation', replicaId, String(seq))

/** Throws unless each of them is the mutation that was taken under its number (2, 5). */
async function checkRepeats(client: Client, replicaId: string, repeats: readonly Numbered[]): Promise<void> {
  const { rows } = await client.query<{ seq: string; mutation_id: string }>({
    name: 'push_taken',
    text: 'select seq, mutation_id from taken_mutations where replica_id = $1 and seq between $2 and $3',
    values: [replicaId, repeats[0]?.seq, repeats.at(-1)?.seq],
  })
  const taken = new Map(rows.map(({ seq, mutation_id }) => [Number(seq), mutation_id]))
  const named = repeats.map((repeat) => ({ seq: repeat.seq, mutationId: mutationIdOf(replicaId, repeat) }))
  const other = otherMutation(named, taken)
  if (!other) return
  throw new HttpError(
    409,
    'identity_taken',
    `Another copy of this replica has already sent a change number ${other.seq}. This one needs an identity of its own; its changes are kept and sent under that.`,
    { detail: { seq: other.seq } },
  )
}

/** Mutations that took effect when another replica of the same owner sent them (6). */
async function takenElsewhere(
  client: Client,
  principal: Principal,
  replicaId: string,
  fresh: readonly Numbered[],
): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ mutation_id: string }>({
    name: 'push_elsewhere',
    text: `select t.mutation_id from taken_mutations t join replicas r on r.id = t.replica_id
            where t.mutation_id = any ($1) and t.replica_id <> $2 and coalesce(r.person_id, r.gateway_id) = $3
              and not exists (select from mutation_results m where m.replica_id = t.replica_id and m.seq = t.seq and m.outcome = 'rejected')`,
    values: [fresh.map((item) => mutationIdOf(replicaId, item)), replicaId, ownerOf(principal)],
  })
  return new Set(rows.map(({ mutation_id }) => mutation_id))
}

const ownerOf = (principal: Principal): string =>
  principal.kind === 'person' ? principal.person_id : principal.gateway_id

/** What was taken, and how far the replica has come: one statement. */
async function recordTaken(client: Client, replicaId: string, fresh: readonly Numbered[]): Promise<void> {
  const ids = fresh.map((item) => mutationIdOf(replicaId, item))
  const lastSeq = fresh.at(-1)?.seq ?? 0
  await client.query({
    name: 'push_progress',
    text: `with taken as (
             insert into taken_mutations (replica_id, seq, mutation_id) select $1, * from unnest($2::bigint[], $3::uuid[])
           ), forgotten as (
             delete from taken_mutations where replica_id = $1 and seq <= $5
           )
           update client_progress set last_seq = $4, last_mutation_id = $6, updated_at = clock_timestamp() where id = $1`,
    values: [replicaId, fresh.map(({ seq }) => seq), ids, lastSeq, lastSeq - REMEMBERED, ids.at(-1)],
  })
}

async function lockProgress(client: Client, principal: Principal, replicaId: string): Promise<number> {
  await client.query({
    name: 'push_owner',
    text: "select pg_advisory_xact_lock(hashtextextended('push ' || $1, 0))",
    values: [ownerOf(principal)],
  })
  const select = {
    name: 'push_lock',
    text: 'select last_seq from client_progress where id = $1 for no key update',
    values: [replicaId],
  }
  const found = await client.query<{ last_seq: string }>(select)
  if (found.rows[0]) return Number(found.rows[0].last_seq)
  await client.query(
    'insert into client_progress (id, tenant_id, replica_id, last_seq) values ($1, $2, $1, 0) on conflict do nothing',
    [replicaId, principal.tenant_id],
  )
  const made = await client.query<{ last_seq: string }>(select)
  return Number(made.rows[0]?.last_seq ?? 0)
}

type Numbered = Item & { readonly seq: number }

/** Gives an entry without a readable number the one that its place says. */
function numbered(items: readonly Item[], last: number): Numbered[] {
  let previous = last
  return items.map((item) => {
    previous = item.seq ?? previous + 1
    return { ...item, seq: previous }
  })
}

async function storedResults(client: Client, replicaId: string, seqs: readonly number[]): Promise<PushResult[]> {
  const { rows } = await client.query<PushResult & { seq: string }>(
    `select seq, outcome, code, message from mutation_results where replica_id = $1 and seq = any ($2) and outcome = 'rejected'`,
    [replicaId, seqs],
  )
  const rejected = new Map(rows.map((row) => [Number(row.seq), row]))
  return seqs.map((seq) => {
    const row = rejected.get(seq)
    return row
      ? rejectedResult(seq, new Rejected(row.code ?? 'invalid', row.message ?? ''))
      : { seq, outcome: 'applied' as const }
  })
}

const rejectedResult = (seq: number, { code, message }: Rejected): PushResult => ({
  seq,
  outcome: 'rejected',
  code,
  message,
})

interface Pushing {
  readonly principal: Principal
  readonly replicaId: string
  readonly log: Log
  readonly elsewhere: ReadonlySet<string>
}

async function applyAll(client: Client, pushing: Pushing, fresh: readonly Numbered[]): Promise<PushResult[]> {
  const { principal, replicaId } = pushing
  const results: PushResult[] = []
  // What stumbles over one mutation may stumble over two hundred: said once.
  let said = false
  const saying: Pushing = {
    ...pushing,
    log: (...line) => {
      if (!said) pushing.log(...line)
      said = true
    },
  }
  let rest: Numbered[] = [...fresh]
  // Usually one turn: everything is planned in memory and written by one call. It takes another after each mutation that the database itself refuses: what
  // was planned behind it is planned anew. So after a refusal little is planned at once, lest a push full of them cost the square of its length.
  let atOnce = rest.length
  while (rest.length > 0) {
    const turn = rest.slice(0, atOnce)
    const mutations = turn.flatMap((item) => ('mutation' in item ? [item.mutation] : []))
    const store = await loadStore(client, principal.tenant_id, mutations)
    const context = { principal, replicaId, store, now: Date.now() }
    const planned = turn.map((item) => planItem(item, context, saying))
    const { rows } = await client.query<{ outcome: { failed: null } | Failure }>({
      name: 'push_apply',
      text: 'select hq_apply($1, $2, $3) as outcome',
      values: [principal.tenant_id, replicaId, JSON.stringify(planned.map(({ entry }) => entry))],
    })
    const outcome = rows[0]?.outcome
    const done = outcome?.failed ?? planned.length
    results.push(...planned.slice(0, done).map(({ result }) => result))
    const failed = turn[done]
    rest = rest.slice(done)
    if (failed && outcome && outcome.failed !== null) {
      rest[0] = { seq: failed.seq, mutationId: failed.mutationId, problem: rejectionOf(outcome) }
      atOnce = 2
    } else atOnce *= 4
  }
  return results
}

function planItem(
  item: Numbered,
  context: Parameters<typeof planMutation>[1],
  { replicaId, log, elsewhere }: Pushing,
): { entry: Entry; result: PushResult } {
  const { seq } = item
  if (elsewhere.has(mutationIdOf(replicaId, item))) {
    const nothing = { seq, mutation_id: mutationIdOf(replicaId, item), ops: [], audit: [], clocks: [], result: null }
    return { entry: nothing, result: { seq, outcome: 'applied' } }
  }
  try {
    if ('problem' in item) throw item.problem
    return { entry: planMutation(item.mutation, context), result: { seq, outcome: 'applied' } }
  } catch (error) {
    const rejected = error instanceof Rejected ? error : unforeseen(error, seq, log)
    const mutationId = mutationIdOf(replicaId, item)
    const { code, message, detail } = rejected
    return {
      entry: {
        seq,
        mutation_id: mutationId,
        ops: [],
        audit: [],
        clocks: [],
        result: {
          id: derivedId('result', replicaId, String(seq)),
          outcome: 'rejected',
          code,
          message: message.slice(0, 1000),
          detail,
        },
      },
      result: rejectedResult(seq, rejected),
    }
  }
}

/** A defect of ours must not keep everything behind it in the outbox for ever: the change is refused, kept by its replica, and can be sent again. */
function unforeseen(error: unknown, seq: number, log: Log): Rejected {
  log('error', 'A mutation could not be planned; it was refused.', {
    seq,
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  })
  return new Rejected(
    'invalid',
    'The server stumbled over this change; its log says where. The change is kept and can be sent again.',
  )
}
