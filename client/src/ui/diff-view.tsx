import { UnfoldVertical } from 'lucide-react'
import { Fragment, useMemo, useState } from 'react'
import { cx } from './cx.ts'
import { type DiffLine, diffLines } from './diff.ts'

export type DiffViewProps = {
  before: string
  after: string
  /** File or field name. */
  title: string
  /** Prose wraps and is set in the reading face. */
  prose?: boolean
  /** Unchanged lines kept around a change. */
  context?: number
  className?: string | undefined
}

type Chunk = { kind: 'lines'; lines: DiffLine[] } | { kind: 'fold'; lines: DiffLine[]; id: number }

/** Long runs of unchanged lines become folds. */
function chunks(lines: readonly DiffLine[], context: number): Chunk[] {
  const near = lines.map(() => false)
  lines.forEach((line, i) => {
    if (line.kind === 'same') return
    for (let j = Math.max(0, i - context); j <= Math.min(lines.length - 1, i + context); j++) near[j] = true
  })
  const out: Chunk[] = []
  lines.forEach((line, i) => {
    const kind = near[i] ? 'lines' : 'fold'
    const last = out.at(-1)
    if (last?.kind === kind) last.lines.push(line)
    else out.push(kind === 'lines' ? { kind, lines: [line] } : { kind, lines: [line], id: i })
  })
  // A fold of one or two lines is more noise than the lines.
  return out.map((chunk) =>
    chunk.kind === 'fold' && chunk.lines.length < 3 ? { kind: 'lines', lines: chunk.lines } : chunk,
  )
}

const SIGN = { same: ' ', removed: '−', added: '+' }
const WORD = { same: '', removed: 'removed: ', added: 'added: ' }

/** What changed, one column; the words that differ are marked. */
export function DiffView({ before, after, title, prose, context = 3, className }: DiffViewProps) {
  const lines = useMemo(() => diffLines(before, after), [before, after])
  const parts = useMemo(() => chunks(lines, context), [lines, context])
  const [unfolded, setUnfolded] = useState<ReadonlySet<number>>(new Set())
  const added = lines.filter((line) => line.kind === 'added').length
  const removed = lines.filter((line) => line.kind === 'removed').length
  return (
    <section
      aria-label={`Changes in ${title}`}
      className={cx('flex min-h-0 flex-col overflow-hidden rounded-card border border-line bg-surface-1', className)}
    >
      <header className="flex h-9 shrink-0 items-center gap-3 border-b border-line px-3">
        <span className="min-w-0 flex-1 truncate font-mono text-xs text-text-2">{title}</span>
        <span className="nums text-xs text-good-ink">
          <span className="sr-only">lines added: </span>+{added}
        </span>
        <span className="nums text-xs text-danger-ink">
          <span className="sr-only">lines removed: </span>−{removed}
        </span>
      </header>
      {added + removed === 0 ? (
        <p className="px-3 py-4 text-text-3">Nothing changed.</p>
      ) : (
        <section
          aria-label={`${title}, line by line`}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
          tabIndex={0}
          className={cx(
            'min-h-0 flex-1 overflow-auto py-1 focus-visible:-outline-offset-2',
            prose ? 'text-md/[22px]' : 'font-mono text-xs/[20px]',
          )}
        >
          {parts.map((chunk) =>
            chunk.kind === 'fold' && !unfolded.has(chunk.id) ? (
              <button
                key={`fold${chunk.id}`}
                type="button"
                onClick={() => setUnfolded(new Set(unfolded).add(chunk.id))}
                className="my-1 flex h-6 w-full items-center gap-2 bg-surface-2 px-3 font-sans text-xs text-text-3 hover:text-text-1 focus-visible:-outline-offset-2 touch:h-11"
              >
                <UnfoldVertical className="size-3.5" aria-hidden="true" />
                {chunk.lines.length} unchanged lines
              </button>
            ) : (
              <Fragment key={`${chunk.kind}${chunk.lines[0]?.before ?? ''}-${chunk.lines[0]?.after ?? ''}`}>
                {chunk.lines.map((line) => (
                  <Line key={`${line.before ?? ''}-${line.after ?? ''}`} line={line} prose={prose ?? false} />
                ))}
              </Fragment>
            ),
          )}
        </section>
      )}
    </section>
  )
}

function Line({ line, prose }: { line: DiffLine; prose: boolean }) {
  return (
    <div className={cx('flex', line.kind === 'added' && 'bg-good-soft', line.kind === 'removed' && 'bg-danger-soft')}>
      {!prose && (
        <span aria-hidden="true" className="nums w-9 shrink-0 pr-2 text-right text-text-3 select-none">
          {line.after ?? line.before}
        </span>
      )}
      <span
        aria-hidden="true"
        className={cx(
          'w-5 shrink-0 text-center select-none',
          line.kind === 'added' && 'text-good-ink',
          line.kind === 'removed' && 'text-danger-ink',
        )}
      >
        {SIGN[line.kind]}
      </span>
      <span className="min-w-0 flex-1 pr-3 wrap-anywhere whitespace-pre-wrap">
        <span className="sr-only">{WORD[line.kind]}</span>
        {line.parts
          ? line.parts.map((part, i) =>
              part.changed ? (
                <mark
                  // biome-ignore lint/suspicious/noArrayIndexKey: a line's parts have no other identity
                  key={i}
                  className={cx('rounded-xs text-text-1', line.kind === 'added' ? 'bg-good/28' : 'bg-danger/25')}
                >
                  {part.text}
                </mark>
              ) : (
                part.text
              ),
            )
          : line.text || ' '}
      </span>
    </div>
  )
}
