import { cx } from './cx.ts'

/** How a row stands with the server. `synced` shows nothing: quiet is normal. */
export type RowSync = 'synced' | 'pending' | 'rejected' | 'conflict'

export type SyncDotProps = {
  state: RowSync
  /** Why it was refused, or who else wrote. */
  reason?: string | undefined
  /** Leads to where the row's change can be seen and dealt with. */
  onOpen?: (() => void) | undefined
  /** -1 inside the rows of a list that has the focus itself. */
  tabIndex?: number | undefined
}

const WORDS: Record<Exclude<RowSync, 'synced'>, string> = {
  pending: 'Waiting to sync',
  rejected: 'Rejected by the server',
  conflict: 'Changed in two places',
}

/** Hollow dot: waits. Amber square: rejected. Split circle: conflict. 12 px, so that a row keeps its place for it. */
export function SyncDot({ state, reason, onOpen, tabIndex }: SyncDotProps) {
  if (state === 'synced') return null
  const label = reason ? `${WORDS[state]}: ${reason}` : WORDS[state]
  const mark = (
    <svg role="img" aria-label={label} viewBox="0 0 12 12" className="size-3 shrink-0">
      <title>{label}</title>
      {state === 'pending' && <circle cx="6" cy="6" r="3.25" fill="none" stroke="var(--waiting)" strokeWidth="1.5" />}
      {state === 'rejected' && (
        <path
          d="M6 1.6l4.6 8.2H1.4Z"
          fill="var(--warning)"
          stroke="var(--warning)"
          strokeWidth="1.2"
          strokeLinejoin="round"
        />
      )}
      {state === 'conflict' && (
        <>
          <path d="M5 1.6a4.5 4.5 0 0 0 0 8.8Z" fill="var(--hue-7)" />
          <path
            d="M7 1.6a4.5 4.5 0 0 1 0 8.8Z"
            fill="none"
            stroke="var(--hue-7)"
            strokeWidth="1.3"
            strokeLinejoin="round"
          />
        </>
      )}
    </svg>
  )
  if (!onOpen) return mark
  return (
    <button
      type="button"
      tabIndex={tabIndex}
      onClick={(event) => {
        // The row around it opens something else.
        event.stopPropagation()
        event.preventDefault()
        onOpen()
      }}
      className="relative z-10 inline-grid size-5 shrink-0 place-items-center rounded-sm hover:bg-surface-3 touch:size-11"
    >
      {mark}
    </button>
  )
}

/** For the row's own element: the amber edge of a rejected row, nothing else. */
export function syncEdge(state: RowSync): string {
  return cx(state === 'rejected' && 'shadow-[inset_2px_0_0_var(--warning)]')
}
