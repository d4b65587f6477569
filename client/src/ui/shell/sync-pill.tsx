import { Link } from '@tanstack/react-router'
import { cx, type Meaning } from '../cx.ts'
import { relative, useNow } from '../relative-time.tsx'
import { type Shape, StatusShape } from '../status.tsx'
import { Tooltip } from '../tooltip.tsx'

export type SyncPillProps = {
  state: 'synced' | 'syncing' | 'offline'
  /** Changes made here that the server has not acknowledged. */
  pending: number
  /** When the oldest of them was made, ms. */
  oldestAt?: number | null | undefined
  /** Since when the server can be reached but brings no changes, ms. */
  stalledAt?: number | null | undefined
  /** Rejected changes and conflicts: they wait for a person. */
  needYou: number
  /** The first sync: rows so far. */
  progress?: { done: number; total: number } | undefined
  /** The sync page. */
  to?: string | undefined
}

/** A server that starts again is like that for a few seconds; nobody needs to read about it. */
const STALLED_AFTER_MS = 10_000

export const isStalled = ({ state, stalledAt }: Pick<SyncPillProps, 'state' | 'stalledAt'>, now: number): boolean =>
  state !== 'offline' && stalledAt != null && now - stalledAt >= STALLED_AFTER_MS

const n = (value: number) => value.toLocaleString('en')
const changes = (count: number) => `${n(count)} ${count === 1 ? 'change' : 'changes'}`

/** The pill's words: one line, and a quieter second one. The most urgent truth first. */
export function syncWords(
  props: SyncPillProps,
  now: number,
): { title: string; detail: string | null; shape: Shape; meaning: Meaning } {
  const { state, pending, oldestAt, needYou, progress, stalledAt } = props
  const age = oldestAt ? `, oldest ${relative(oldestAt, now, false)}` : ''
  const waiting = pending > 0 ? `${changes(pending)} waiting${age}` : null
  if (needYou > 0) {
    const title = needYou === 1 ? '1 needs you' : `${n(needYou)} need you`
    return { title, detail: state === 'offline' ? 'Working offline' : waiting, shape: 'triangle', meaning: 'warning' }
  }
  if (state === 'offline') return { title: 'Working offline', detail: waiting, shape: 'off', meaning: 'waiting' }
  if (isStalled(props, now) && stalledAt != null) {
    const since = `for ${relative(stalledAt, now, false).replace('just now', 'less than a minute')}`
    return { title: 'Server busy', detail: waiting ?? `No changes ${since}`, shape: 'off', meaning: 'waiting' }
  }
  if (progress)
    return {
      title: 'Syncing',
      detail: `${n(progress.done)} of ${n(progress.total)} rows`,
      shape: 'arc',
      meaning: 'busy',
    }
  if (state === 'syncing' || pending > 0) return { title: 'Syncing', detail: waiting, shape: 'arc', meaning: 'busy' }
  return { title: 'Synced', detail: null, shape: 'check', meaning: 'good' }
}

/** The one place that says how this browser stands with the server. */
export function SyncPill({ compact, ...props }: SyncPillProps & { compact?: boolean }) {
  const { title, detail, shape, meaning } = syncWords(props, useNow())
  const spoken = detail ? `${title}: ${detail}` : title
  const part = props.progress ? props.progress.done / Math.max(1, props.progress.total) : null
  const pill = (
    <Link
      to={props.to ?? '/'}
      aria-label={compact ? `Sync: ${spoken}` : undefined}
      className={cx(
        'relative flex min-w-0 items-center gap-2 overflow-hidden rounded-control text-left hover:bg-surface-3',
        compact ? 'size-8 justify-center touch:size-11' : 'min-h-8 w-full px-2 py-1 touch:min-h-11',
      )}
    >
      <StatusShape shape={shape} meaning={meaning} />
      {!compact && (
        <span className="min-w-0 flex-1 leading-4">
          <span className="block truncate text-xs font-medium">
            <span className="sr-only">Sync: </span>
            {title}
          </span>
          {detail && (
            <span className="nums line-clamp-2 text-2xs leading-[14px] text-text-3 [overflow-wrap:normal]">
              {detail}
            </span>
          )}
        </span>
      )}
      {part !== null && (
        <span aria-hidden="true" className="absolute inset-x-2 bottom-0 h-0.5 rounded-full bg-surface-3">
          <span className="block h-full rounded-full bg-accent" style={{ width: `${part * 100}%` }} />
        </span>
      )}
    </Link>
  )
  return (
    <>
      {compact ? (
        <Tooltip content={spoken} side="right">
          {pill}
        </Tooltip>
      ) : (
        pill
      )}
      <span role="status" className="sr-only">
        {title}
      </span>
    </>
  )
}
