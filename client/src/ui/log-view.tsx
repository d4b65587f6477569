import { useVirtualizer } from '@tanstack/react-virtual'
import { ArrowDown, Check, Copy } from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from './button.tsx'
import { cx } from './cx.ts'
import { IconButton } from './icon-button.tsx'

export type LogLine = {
  /** Its place in the whole output. */
  n: number
  text: string
  stream?: 'out' | 'err' | 'system'
  /** Ms; shown at the left where given. */
  at?: number | undefined
}

export type LogViewProps = {
  label: string
  lines: readonly LogLine[]
  /** More may come: follows the end until a person scrolls up. */
  live?: boolean
  /** Beside the title: status, cancel. */
  actions?: ReactNode
  empty?: string
  /** A height class; grows to `max-h-80` when left out. */
  className?: string | undefined
}

/** Terminal colours and cursor movements carry nothing here. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what they are
const ANSI = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g
/** A line without escapes; after a carriage return only what was written last. */
export function plainLine(text: string): string {
  const clean = text.replace(ANSI, '').replace(/\r+$/, '')
  return clean.slice(clean.lastIndexOf('\r') + 1)
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })

/** Output of a process: monospace, virtual, following its end. */
export function LogView({ label, lines, live = false, actions, empty = 'No output yet.', className }: LogViewProps) {
  const scroller = useRef<HTMLDivElement>(null)
  const [following, setFollowing] = useState(true)
  const [seen, setSeen] = useState(0)
  const [copied, setCopied] = useState(false)
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 18,
    overscan: 20,
    getItemKey: (i) => lines[i]?.n ?? i,
  })
  const count = lines.length
  useEffect(() => {
    if (!following) return
    setSeen(count)
    if (live && count > 0) virtual.scrollToIndex(count - 1, { align: 'end' })
  }, [count, following, live, virtual])

  const onScroll = () => {
    const el = scroller.current
    if (el && live) setFollowing(el.scrollHeight - el.scrollTop - el.clientHeight < 24)
  }
  const copy = async () => {
    await navigator.clipboard.writeText(lines.map((line) => plainLine(line.text)).join('\n'))
    setCopied(true)
    setTimeout(() => setCopied(false), 1600)
  }
  return (
    <section
      aria-label={label}
      className={cx(
        'relative flex min-h-0 flex-col overflow-hidden rounded-card border border-line bg-surface-2',
        className ?? 'max-h-80',
      )}
    >
      <header className="flex h-9 shrink-0 items-center gap-2 border-b border-line pr-1.5 pl-3 touch:h-12">
        <span className="truncate text-xs font-medium text-text-2">{label}</span>
        <span className="nums text-xs text-text-3">{count.toLocaleString('en')} lines</span>
        <span className="ml-auto flex items-center gap-1">
          {actions}
          <IconButton
            size="sm"
            label={copied ? 'Copied' : 'Copy the output'}
            icon={copied ? Check : Copy}
            disabled={count === 0}
            onClick={() => void copy()}
          />
        </span>
      </header>
      <div
        ref={scroller}
        role="log"
        aria-label={label}
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        onScroll={onScroll}
        className="min-h-0 flex-1 overflow-auto py-2 font-mono text-xs/[18px] focus-visible:-outline-offset-2"
      >
        {count === 0 && <p className="px-3 text-text-3">{empty}</p>}
        <div className="relative" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start, key }) => {
            const line = lines[index]
            if (!line) return null
            return (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                style={{ transform: `translateY(${start}px)` }}
                className={cx(
                  'absolute inset-x-0 top-0 flex gap-3 px-3',
                  line.stream === 'err' && 'text-danger-ink',
                  line.stream === 'system' && 'text-text-3 italic',
                )}
              >
                {line.at !== undefined && (
                  <span className="nums shrink-0 text-text-3 select-none">{clock.format(line.at)}</span>
                )}
                <span className="min-w-0 flex-1 wrap-anywhere whitespace-pre-wrap">{plainLine(line.text) || ' '}</span>
              </div>
            )
          })}
        </div>
      </div>
      {live && !following && (
        <div className="absolute inset-x-0 bottom-2 flex justify-center">
          <Button size="sm" icon={ArrowDown} onClick={() => setFollowing(true)}>
            {count > seen ? `${count - seen} new lines` : 'Follow'}
          </Button>
        </div>
      )}
    </section>
  )
}
