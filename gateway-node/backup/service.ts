/**
 * Backups by themselves.
 *
 * | variable | default | |
 * |---|---|---|
 * | `HQ_BACKUP_EVERY` | `24h` | how often: `90m`, `6h`, `1d`; `off`: only when somebody asks |
 * | `HQ_BACKUP_ON_STOP` | `off` | `on`: one more when the gateway is stopped, if it takes no longer than some seconds |
 *
 *  V1 The first comes some minutes after the start, later ones when the newest is older than the interval; only while the server is there.
 *  V2 One that failed is tried again after a quarter of an hour, then at longer intervals, up to the interval itself. People see it (`problems`) until one succeeds.
 *  V3 At a stop it takes at most `STOP_MS`, and a failure there keeps nothing from stopping.
 */
import { SetupError } from '../config.ts'
import type { GatewayContext, Service } from '../service.ts'
import { isOn } from '../switches.ts'
import { explainBackup, failUnfinished, type TakeOptions, takeBackup } from './backup.ts'
import { ServerAway } from './blobs.ts'
import { ensureRecoveryKey, formatRecoveryKey } from './recovery-key.ts'

export interface BackupServiceOptions {
  readonly firstMs?: number
  readonly lookMs?: number
}

const STOP_MS = 12_000
const RETRY_MS = 15 * 60_000
const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 60 * 60_000, d: 24 * 60 * 60_000 }

/** In ms; undefined: off. */
export function readInterval(text: string | undefined): number | undefined {
  const value = (text || '24h').trim().toLowerCase()
  if (value === 'off') return undefined
  const [, count = '', unit = ''] = /^(\d{1,4})\s*([mhd])$/.exec(value) ?? []
  const ms = Number(count) * (UNITS[unit] ?? 0)
  if (ms >= 60_000) return ms
  throw new SetupError('home', `HQ_BACKUP_EVERY is “${text}”. It can be such as 90m, 6h, 1d, or off.`)
}

export function createBackups(context: GatewayContext, options: BackupServiceOptions = {}): Service {
  const { firstMs = 10 * 60_000, lookMs = 60_000 } = options
  const { replica, gatewayId, env, log, problems } = context
  const stopping = new AbortController()
  let everyMs: number | undefined
  let first: NodeJS.Timeout | undefined
  let timer: NodeJS.Timeout | undefined
  let working: Promise<void> | undefined
  let failures = 0
  let notBefore = 0
  let started = false

  async function make({ reason, signal }: TakeOptions): Promise<void> {
    try {
      const { commit } = await takeBackup(context, { reason, signal })
      await replica.write(commit)
      failures = 0
      problems.clear('backup')
    } catch (error) {
      if (signal.aborted) {
        log('warn', 'A backup was stopped before it was done', { reason })
        return
      }
      failures++
      notBefore = context.now() + Math.min(RETRY_MS * 2 ** (failures - 1), everyMs ?? RETRY_MS)
      const words = explainBackup(error)
      log(
        'warn',
        'A backup did not succeed',
        error instanceof ServerAway ? { reason, words } : { reason, words, error },
      )
      // A server that is away is seen elsewhere.
      if (!(error instanceof ServerAway)) problems.report('backup', `The last backup of this gateway failed. ${words}`)
    }
  }

  async function look(): Promise<void> {
    if (everyMs === undefined || replica.status().connection !== 'online' || context.now() < notBefore) return
    const [newest] = await replica.query<{ finished_at: string }>(
      `select finished_at from backups where gateway_id = $1 and status = 'done' and deleted_at is null order by finished_at desc limit 1`,
      [gatewayId],
    )
    if (newest && context.now() - Date.parse(newest.finished_at) < everyMs) return
    await make({ reason: 'schedule', signal: stopping.signal })
  }

  function poke(): void {
    if (working || stopping.signal.aborted) return
    working = look()
      .catch((error: unknown) => log('warn', 'Whether a backup is due could not be found out', { error }))
      .finally(() => {
        working = undefined
      })
  }

  return {
    start: async () => {
      everyMs = readInterval(env['HQ_BACKUP_EVERY'])
      const key = await ensureRecoveryKey(context.home)
      const secretLog: typeof log & { addSecret?(value: string): void } = log
      secretLog.addSecret?.(formatRecoveryKey(key))
      started = true
      if (replica.status().initial.done) await failUnfinished(context)
      first = setTimeout(() => {
        poke()
        timer = setInterval(poke, lookMs)
      }, firstMs)
    },
    stop: async () => {
      clearTimeout(first)
      clearInterval(timer)
      const wasStopped = stopping.signal.aborted
      stopping.abort(new Error('The gateway stops'))
      await working
      if (!started || wasStopped || !isOn(env, 'HQ_BACKUP_ON_STOP')) return
      await make({ reason: 'shutdown', signal: AbortSignal.timeout(STOP_MS) })
    },
  }
}
