/**
 * How the backups of a gateway stand. Derived from rows, never stored. Pure.
 *
 *  B1 Only what the server has whole counts as a backup: a row that is `done`.
 *  B2 A gateway without one, and one whose newest is older than it should be, are said to be at risk; a retired gateway makes none any more.
 *  B3 A command that waits and one that runs are one thing to a person: it is being done, and another one has to wait.
 */
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Meaning } from '../../ui/cx.ts'
import type { Shape } from '../../ui/status.tsx'
import { isSilent } from '../agents/agent-state.ts'

export type Backup = Row<'backups'>

export type GatewayBackups = Pick<
  Row<'gateways'>,
  'id' | 'tenant_id' | 'label' | 'slug' | 'last_seen_at' | 'created_at'
> & {
  /** When the newest whole one was finished. */
  readonly newest_at: string | null
  /** The newest command that was about backups. */
  readonly command_id: string | null
  readonly command_action: 'backup' | 'restore' | null
  readonly command_at: string | null
  readonly command_status: Row<'agent_commands'>['status'] | null
}

export const GATEWAYS_SQL = `select g.id, g.tenant_id, g.label, g.slug, g.last_seen_at, g.created_at,
    (select max(b.finished_at) from backups b where b.gateway_id = g.id and b.status = 'done' and b.deleted_at is null) as newest_at,
    c.id as command_id, c.action as command_action, c.created_at as command_at, c.status as command_status
  from gateways g
  left join lateral (select id, action, created_at, status from agent_commands where gateway_id = g.id and action in ('backup', 'restore') and deleted_at is null
    order by created_at desc, id desc limit 1) c on true
  where g.deleted_at is null order by g.label, g.id limit 100`
export const GATEWAYS_TABLES = ['gateways', 'backups', 'agent_commands'] as const

export const BACKUPS_SQL = `select * from backups where gateway_id = $1 and deleted_at is null order by created_at desc, id desc limit 30`

const DAY = 24 * 60 * 60_000
/** Made by the day where nobody has set anything else. */
export const LATE_AFTER_MS = 2 * DAY

export interface Protection {
  readonly key: 'never' | 'late' | 'fresh'
  readonly meaning: Meaning
  readonly shape: Shape
  readonly label: string
}

/** @param now milliseconds since 1970 */
export function protectionOf({ newest_at }: Pick<GatewayBackups, 'newest_at'>, now: number): Protection {
  if (newest_at === null) return { key: 'never', meaning: 'warning', shape: 'triangle', label: 'Never backed up' }
  const age = now - Date.parse(newest_at)
  if (age > LATE_AFTER_MS)
    return {
      key: 'late',
      meaning: 'warning',
      shape: 'triangle',
      label: `Last backup ${Math.floor(age / DAY)} days ago`,
    }
  return { key: 'fresh', meaning: 'good', shape: 'check', label: 'Backed up' }
}

/** (B3) */
export const isBeingMade = ({ command_status }: Pick<GatewayBackups, 'command_status'>): boolean =>
  command_status !== null && ['pending', 'leased', 'running'].includes(command_status)

/** Its progress is shown while there is any; how bringing back ended, for a day. */
export const isShown = (
  gateway: Pick<GatewayBackups, 'command_status' | 'command_action' | 'command_at'>,
  now: number,
): boolean =>
  isBeingMade(gateway) ||
  (gateway.command_action === 'restore' && gateway.command_at !== null && now - Date.parse(gateway.command_at) < DAY)

/** Why a new one doesn't come now although it was asked for. */
export const isAway = ({ last_seen_at }: Pick<GatewayBackups, 'last_seen_at'>, now: number): boolean =>
  last_seen_at === null || isSilent(last_seen_at, now)

export const BACKUP_STATUS: Record<Backup['status'], { meaning: Meaning; shape: Shape; label: string }> = {
  running: { meaning: 'busy', shape: 'arc', label: 'Being made' },
  done: { meaning: 'good', shape: 'check', label: 'At the server' },
  failed: { meaning: 'danger', shape: 'cross', label: 'Failed' },
  removed: { meaning: 'neutral', shape: 'slash', label: 'Cleared away' },
}

export const REASONS: Record<Backup['reason'], string> = {
  demand: 'Asked for',
  schedule: 'Scheduled',
  shutdown: 'When it stopped',
}

/** `820 B`, `14 KB`, `2.3 MB`. */
export function sizeWords(bytes: number | string | null): string {
  if (bytes === null) return '–'
  let rest = Number(bytes)
  for (const unit of ['B', 'KB', 'MB', 'GB']) {
    if (rest < 1000 || unit === 'GB') return `${rest < 10 && unit !== 'B' ? rest.toFixed(1) : Math.round(rest)} ${unit}`
    rest /= 1000
  }
  return ''
}
