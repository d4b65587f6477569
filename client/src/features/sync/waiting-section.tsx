import { describeChange, groupOf } from '@hq/shared/domain/change-words.ts'
import { namedInChanges } from '@hq/shared/domain/row-names.ts'
import { useMemo, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { cx } from '../../ui/cx.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { StatusShape } from '../../ui/status.tsx'
import { useWaiting, useWaitingGroups, type WaitingGroup } from './entries.ts'
import { useNames } from './names.ts'
import { changeAnchor } from './row-marks.ts'

/** Rows of a group shown at first, and with each "more": nobody reads thousands at once. */
const FIRST = 8
const MORE = 100

const n = (value: number): string => value.toLocaleString('en')

/** What has not reached the server: how much of what, since when, and each change in words. */
export function WaitingSection({ target }: { target: number | undefined }) {
  const { rows, ready } = useWaitingGroups()
  const total = rows.reduce((sum, group) => sum + group.count, 0)
  return (
    <section aria-label="Waiting to be sent" className="flex flex-col gap-3">
      <h2 className="section-title">
        Waiting to be sent
        {total > 0 && <span className="nums ml-2 font-normal text-text-3">{n(total)}</span>}
      </h2>
      {ready && total === 0 ? (
        <EmptyState drawing="done" title="Nothing waits" className="rounded-card border border-line py-8">
          Every change made on this device has reached the server.
        </EmptyState>
      ) : (
        rows.map((group) => <Group key={group.table} group={group} target={target} />)
      )}
    </section>
  )
}

function Group({ group, target }: { group: WaitingGroup; target: number | undefined }) {
  const [most, setMost] = useState(FIRST)
  const entries = useWaiting(group.table, most, target)
  const names = useNames(useMemo(() => namedInChanges(entries), [entries]))
  const title = groupOf([{ table: group.table, id: '', op: 'update', set: {}, base: {} }])
  const left = group.count - entries.length
  return (
    <section aria-label={title} className="overflow-hidden rounded-card border border-line bg-surface-1">
      <header className="flex flex-wrap items-baseline gap-x-3 border-b border-line px-3 py-2">
        <h3 className="font-medium">{title}</h3>
        <span className="nums text-text-3">
          {group.count === 1 ? '1 change' : `${n(group.count)} changes`}
          {group.accepted > 0 && `, ${n(group.accepted)} received and being confirmed`}
        </span>
        <span className="ml-auto text-xs text-text-3">
          oldest <RelativeTime at={group.since} words />
        </span>
      </header>
      <ul>
        {entries.map((entry) => (
          <li
            key={entry.seq}
            id={changeAnchor(entry.seq)}
            tabIndex={-1}
            className={cx(
              'flex min-h-(--row) items-center gap-3 border-b border-line px-3 py-1 last:border-0',
              entry.seq === target && 'bg-accent-soft',
            )}
          >
            <StatusShape
              shape={entry.state === 'accepted' ? 'half' : 'ring'}
              meaning="waiting"
              label={entry.state === 'accepted' ? 'Received, being confirmed' : 'Waiting'}
            />
            <span className="line-clamp-2 min-w-0 flex-1 [overflow-wrap:anywhere]">
              {describeChange(entry.patches, names)}
            </span>
            <RelativeTime at={entry.createdAt} className="shrink-0 text-xs text-text-3" />
          </li>
        ))}
      </ul>
      {left > 0 && (
        <div className="border-t border-line px-1.5 py-1">
          <Button size="sm" variant="ghost" onClick={() => setMost(most + MORE)}>
            Show {n(Math.min(MORE, left))} more of {n(left)}
          </Button>
        </div>
      )}
    </section>
  )
}
