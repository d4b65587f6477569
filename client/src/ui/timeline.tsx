import type { ReactNode } from 'react'
import { type Actor, Avatar } from './avatar.tsx'
import type { Meaning } from './cx.ts'
import { RelativeTime } from './relative-time.tsx'
import { type Shape, StatusShape } from './status.tsx'

export type TimelineEvent = {
  id: string
  at: number | string | Date
  /** Who did it; or a mark when it just happened. */
  actor?: Actor | undefined
  mark?: { shape: Shape; meaning: Meaning } | undefined
  /** "moved it to In review". The actor's name comes before it. */
  text: ReactNode
  /** A comment, a quote, a file: below the line. */
  body?: ReactNode
}

/** What happened, oldest first: a task's conversation, an agent's day. */
export function Timeline({ label, events }: { label: string; events: readonly TimelineEvent[] }) {
  return (
    <ol aria-label={label}>
      {events.map((event, i) => (
        <li key={event.id} className="relative flex gap-3 pb-3 last:pb-0">
          {i < events.length - 1 && (
            <span aria-hidden="true" className="absolute top-6 bottom-0 left-[9.5px] w-px bg-line" />
          )}
          <span className="grid size-5 shrink-0 place-items-center">
            {event.actor ? (
              <Avatar actor={event.actor} decorative />
            ) : (
              <StatusShape shape={event.mark?.shape ?? 'ring'} meaning={event.mark?.meaning ?? 'neutral'} />
            )}
          </span>
          <div className="min-w-0 flex-1">
            <p className="text-text-2">
              {event.actor && <span className="font-medium text-text-1">{event.actor.name} </span>}
              {event.text}
              <RelativeTime at={event.at} className="ml-2 text-xs text-text-3" />
            </p>
            {event.body && <div className="mt-1">{event.body}</div>}
          </div>
        </li>
      ))}
    </ol>
  )
}
