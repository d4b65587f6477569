/**
 * Replicas: which device a request is for.
 *
 *  1. A replica belongs to whoever used it first (a person or a gateway); anybody else gets 403.
 *  2. A revoked replica gets 403 `revoked`; its outbox is then parked, not dropped.
 *  3. The database is asked once in 30 s per replica, and again when access changed (once for all requests that wait for it); `last_seen_at` moves
 *     once a minute, half as often when there are many, and for all that are due together: each move is a change that every replica is sent.
 */
import { isUuid } from '@hq/shared/domain/ids.ts'
import type { Principal } from '@hq/shared/sync/protocol.ts'
import type { Pool } from '../database/pool.ts'
import { HttpError } from '../errors.ts'
import type { AccessChanges, Log } from './context.ts'

export interface Replicas {
  /** Registers the replica at first sight, and throws unless `principal` may use it. */
  check(principal: Principal, replicaId: string | undefined, label?: string | undefined): Promise<string>
}

const KNOWN_MS = 30_000
const SEEN_MS = 60_000
/** Many move more seldom, but often enough to be called active (features/sync/devices.ts). */
const SEEN_MS_EACH = 500
const MOST_SEEN_MS = 2 * SEEN_MS
const GATHER_MS = 5_000

export function createReplicas(pool: Pool, changes: AccessChanges, log: Log): Replicas {
  const known = new Map<string, { owner: string; until: number; loaded: Promise<void> }>()
  changes.subscribe(() => known.clear())
  const seen = createSeen(pool, () => known.size, log)

  return {
    async check(principal, replicaId, label) {
      if (!isUuid(replicaId))
        throw new HttpError(400, 'malformed', 'The request names no replica (replica_id, a UUID).')
      const id = replicaId.toLowerCase()
      const owner = principal.kind === 'person' ? principal.person_id : principal.gateway_id
      const cached = known.get(id)
      if (cached && cached.owner === owner && cached.until > Date.now()) {
        await cached.loaded
        return id
      }
      if (known.size > 20_000) known.clear()
      const entry = {
        owner,
        until: Date.now() + KNOWN_MS,
        loaded: load(pool, principal, id, owner, label, seen),
      }
      known.set(id, entry)
      try {
        await entry.loaded
      } catch (error) {
        if (known.get(id) === entry) known.delete(id)
        throw error
      }
      return id
    },
  }
}

async function load(
  pool: Pool,
  principal: Principal,
  replicaId: string,
  owner: string,
  label: string | undefined,
  seen: Seen,
): Promise<void> {
  const isPerson = principal.kind === 'person'
  await pool.query(
    `insert into replicas (id, tenant_id, replica_id, kind, label, person_id, gateway_id, last_seen_at)
     values ($1, $2, $1, $3, $4, $5, $6, now()) on conflict (id) do nothing`,
    [
      replicaId,
      principal.tenant_id,
      isPerson ? 'browser' : 'gateway',
      label?.slice(0, 200) ?? null,
      isPerson ? owner : null,
      isPerson ? null : owner,
    ],
  )
  const { rows } = await pool.query<{ owner: string | null; tenant_id: string; revoked: boolean; stale: boolean }>(
    `select coalesce(person_id, gateway_id) as owner, tenant_id, revoked_at is not null as revoked,
            last_seen_at is null or last_seen_at < now() - make_interval(secs => $2) as stale
       from replicas where id = $1`,
    [replicaId, seen.everyMs() / 1000],
  )
  const row = rows[0]
  if (!row || row.tenant_id !== principal.tenant_id)
    throw new HttpError(403, 'wrong_tenant', 'This replica belongs to another workspace.')
  if (row.owner !== owner)
    throw new HttpError(403, 'forbidden', 'This replica belongs to somebody else; this device needs a new one for you.')
  if (row.revoked)
    throw new HttpError(
      403,
      'revoked',
      'This device was removed from the workspace. What is not sent yet is kept on it; ask an admin to let it in again.',
    )
  if (row.stale) seen.note(replicaId, label)
}

interface Seen {
  /** How old `last_seen_at` may get. */
  everyMs(): number
  note(replicaId: string, label: string | undefined): void
}

function createSeen(pool: Pool, count: () => number, log: Log): Seen {
  const due = new Map<string, string | null>()
  let timer: NodeJS.Timeout | undefined
  const write = async (): Promise<void> => {
    const all = [...due]
    due.clear()
    await pool.query(
      `update replicas r set last_seen_at = now(), updated_at = now(), label = coalesce(s.label, r.label)
         from unnest($1::uuid[], $2::text[]) s (id, label) where r.id = s.id`,
      [all.map(([id]) => id), all.map(([, label]) => label)],
    )
  }
  return {
    everyMs: () => Math.min(MOST_SEEN_MS, Math.max(SEEN_MS, count() * SEEN_MS_EACH)),
    note(replicaId, label) {
      due.set(replicaId, label?.slice(0, 200) ?? due.get(replicaId) ?? null)
      timer ??= setTimeout(() => {
        timer = undefined
        // They are noted again when they are asked about next.
        write().catch((error: unknown) =>
          log('debug', 'When devices were seen is not written.', { error: String(error) }),
        )
      }, GATHER_MS)
      timer.unref()
    },
  }
}
