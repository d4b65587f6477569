/**
 * One backup of this gateway: taken, encrypted, sent, told; and older ones cleared away.
 *
 *  B1 One at a time. A row of an earlier process that never ended is told to have failed.
 *  B2 The row says `done` only when the server has the whole file. When anything goes wrong it says what, and older backups stay.
 *  B3 Plain text is in the gateway's own folder only, where it is anyway, and on the way nowhere: files go into the encryption directly, the repository by a bundle
 *     that is removed afterwards.
 *  B4 Kept are the newest `KEEP`, and of those what is younger than `KEEP_DAYS`; the newest one always. A row of a dropped one stays, as `removed`.
 */
import { createHash } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeArchive } from '@hq/shared/backup/archive.ts'
import { BackupError, keyIdOf } from '@hq/shared/backup/sealed-file.ts'
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { Tx } from '@hq/shared/sync/contract.ts'
import { readCredentials } from '../registration.ts'
import type { GatewayContext, Log } from '../service.ts'
import { WorkspaceError } from '../workspaces/contract.ts'
import { type Caller, listStored, removeStored, ServerAway, upload } from './blobs.ts'
import { ensureRecoveryKey, formatRecoveryKey, restoreToken } from './recovery-key.ts'
import { takeSnapshot } from './snapshot.ts'

export const KEEP = 3
export const KEEP_DAYS = 7

export type BackupStep = 'files' | 'repository' | 'encrypt' | 'send' | 'tidy'

export interface TakeOptions {
  readonly reason: Enum<'backup_reason'>
  readonly signal: AbortSignal
  readonly step?: (step: BackupStep, detail?: string) => void
}

export interface Taken {
  readonly id: string
  readonly size: number
  /** The row's end; for a command it belongs to the command's own transaction. */
  readonly commit: (tx: Tx) => Promise<void>
}

const busy = new Map<string, Promise<unknown>>()

/** Throws `BackupError`, `ServerAway`, `WorkspaceError` for people; `signal`'s reason; anything else is a defect. */
export async function takeBackup(context: GatewayContext, options: TakeOptions): Promise<Taken> {
  if (busy.has(context.home))
    throw new BackupError('refused', 'A backup of this gateway is being made already. Wait until it is done.')
  const working = take(context, options)
  busy.set(context.home, working)
  try {
    return await working
  } finally {
    busy.delete(context.home)
  }
}

async function take(context: GatewayContext, { reason, signal, step }: TakeOptions): Promise<Taken> {
  const { replica, gatewayId, tenantId, home } = context
  const log: Log & { addSecret?(value: string): void } = context.log
  const credentials = await readCredentials(home)
  if (!credentials) throw new Error('The gateway’s folder has no credentials.json.')
  const key = await ensureRecoveryKey(home)
  const restore = restoreToken(key)
  log.addSecret?.(formatRecoveryKey(key))
  log.addSecret?.(restore)
  const id = context.newId()
  await failUnfinished(context)
  await replica.write((tx) =>
    tx.query('insert into backups (id, tenant_id, gateway_id, reason, status) values ($1, $2, $3, $4, $5)', [
      id,
      tenantId,
      gatewayId,
      reason,
      'running',
    ]),
  )
  const folder = join(home, 'backup')
  try {
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const { entries, contents, manifest } = await takeSnapshot(context, folder, {
      signal,
      ...(step && { step }),
    })
    step?.('encrypt')
    const path = join(folder, `${id}.hqbackup`)
    const { size, sha256 } = await writeArchive(path, entries, {
      kind: 'gateway',
      secret: { key },
      at: manifest.at,
      signal,
    })
    step?.('send', `${Math.ceil(size / 1024)} KiB`)
    const caller: Caller = { url: credentials.url, token: credentials.token, signal }
    await upload(caller, path, { sha256, restoreHash: createHash('sha256').update(restore).digest('hex') })
    step?.('tidy')
    const removed = await clearOlder(context, caller, sha256)
    log('info', 'A backup is at the server', { backup: id, reason, size, removed })
    const finishedAt = new Date(context.now()).toISOString()
    return {
      id,
      size,
      commit: async (tx) => {
        await tx.query(
          `update backups set status = 'done', size = $2, sha256 = $3, key_id = $4, contents = $5::jsonb, finished_at = $6, error_message = null where id = $1`,
          [id, size, sha256, keyIdOf(key), JSON.stringify(contents), finishedAt],
        )
      },
    }
  } catch (error) {
    await replica.write((tx) => fail(tx, id, explainBackup(error, signal), context.now()))
    throw error
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const fail = (tx: Tx, id: string, message: string, now: number): Promise<unknown> =>
  tx.query(`update backups set status = 'failed', finished_at = $2, error_message = $3 where id = $1`, [
    id,
    new Date(now).toISOString(),
    message,
  ])

/** A sentence for people. */
export function explainBackup(error: unknown, signal?: AbortSignal): string {
  if (signal?.aborted) return 'It was stopped before it was done. The older backups are as they were.'
  if (error instanceof BackupError || error instanceof ServerAway || error instanceof WorkspaceError)
    return error.message
  if (error instanceof Error && 'code' in error && error.code === 'ENOSPC')
    return 'The disk of the gateway’s machine is full: a backup needs as much room as the repository. Free some space, then try again.'
  return `It stopped on something unforeseen: ${error instanceof Error ? error.message : String(error)}. The gateway’s log has the details.`
}

/** (B1) */
export async function failUnfinished(context: GatewayContext): Promise<void> {
  const open = await context.replica.query<{ id: string }>(
    `select id from backups where gateway_id = $1 and status = 'running' and deleted_at is null`,
    [context.gatewayId],
  )
  if (open.length === 0) return
  await context.replica.write(async (tx) => {
    for (const { id } of open)
      await fail(tx, id, 'The gateway ended before this backup was done. The next one replaces it.', context.now())
  })
}

interface Done {
  readonly id: string
  readonly sha256: string
  readonly finished_at: string
}

/** Called while the newest one is not `done` yet, so that it makes room for it (B4). The number of those dropped. */
async function clearOlder(context: GatewayContext, caller: Caller, newest: string): Promise<number> {
  const done = await context.replica.query<Done>(
    `select id, sha256, finished_at from backups where gateway_id = $1 and status = 'done' and sha256 is not null and deleted_at is null
      order by finished_at desc, id desc`,
    [context.gatewayId],
  )
  const oldest = context.now() - KEEP_DAYS * 24 * 60 * 60_000
  const dropped = done.filter(({ finished_at }, index) => index >= KEEP - 1 || Date.parse(finished_at) < oldest)
  for (const { id, sha256 } of dropped) {
    try {
      await removeStored(caller, sha256)
    } catch (error) {
      caller.signal.throwIfAborted()
      // The new one is there; the old one is tried again with the next.
      context.log('warn', 'An old backup could not be removed', { backup: id, error })
      continue
    }
    await context.replica.write((tx) => tx.query(`update backups set status = 'removed' where id = $1`, [id]))
  }
  // What no row speaks of: its backup was sent, and the gateway ended before it could say so.
  if (context.replica.status().initial.done) {
    const known = new Set([newest, ...done.map(({ sha256 }) => sha256)])
    for (const { sha256 } of await listStored(caller)) if (!known.has(sha256)) await removeStored(caller, sha256)
  }
  return dropped.length
}
