import { Check, Copy, WrapText } from 'lucide-react'
import { type ReactNode, useMemo, useState } from 'react'
import { cx } from './cx.ts'
import { highlight, type Language, languageOf, type Token } from './highlight.ts'
import { IconButton } from './icon-button.tsx'

const COLOR: Record<Token['kind'], string | undefined> = {
  plain: undefined,
  comment: 'text-text-3 italic',
  string: 'text-good-ink',
  number: 'text-warning-ink',
  keyword: 'text-accent-ink',
  key: 'text-busy-ink',
  heading: 'font-semibold text-text-1',
}

/** One highlighted line's pieces; shared with DiffView. */
export function Tokens({ tokens }: { tokens: readonly Token[] }) {
  return tokens.map((token, i) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a line's tokens have no other identity
    <span key={i} className={COLOR[token.kind]}>
      {token.text}
    </span>
  ))
}

export type CodeViewProps = {
  code: string
  /** A file name; gives title and language. */
  path?: string | undefined
  language?: Language | undefined
  lineNumbers?: boolean
  actions?: ReactNode
  className?: string | undefined
}

/** Source to read and copy. Up to some thousand lines. */
export function CodeView({ code, path, language, lineNumbers = true, actions, className }: CodeViewProps) {
  const [wrap, setWrap] = useState(false)
  const [copied, setCopied] = useState(false)
  const lines = useMemo(
    () => highlight(code.replace(/\n$/, '').split('\n'), language ?? languageOf(path ?? '')),
    [code, language, path],
  )
  const copy = async () => {
    await navigator.clipboard.writeText(code)
    setCopied(true)
    setTimeout(() => setCopied(false), 1600)
  }
  const label = path ?? 'Code'
  return (
    <section
      aria-label={label}
      className={cx('flex min-h-0 flex-col overflow-hidden rounded-card border border-line bg-surface-1', className)}
    >
      <header className="flex h-9 shrink-0 items-center gap-2 border-b border-line pr-1.5 pl-3 touch:h-12">
        <span className="min-w-0 flex-1 truncate font-mono text-xs text-text-2">{path ?? language ?? ''}</span>
        {actions}
        <IconButton size="sm" label="Wrap lines" icon={WrapText} pressed={wrap} onClick={() => setWrap(!wrap)} />
        <IconButton
          size="sm"
          label={copied ? 'Copied' : 'Copy'}
          icon={copied ? Check : Copy}
          onClick={() => void copy()}
        />
      </header>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        className="min-h-0 flex-1 overflow-auto py-2 font-mono text-xs/[20px] focus-visible:-outline-offset-2"
      >
        <code className="grid">
          {lines.map((tokens, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line's number is its identity
            <span key={i} className="flex pr-4">
              {lineNumbers && (
                <span
                  aria-hidden="true"
                  className="nums sticky left-0 w-11 shrink-0 bg-surface-1 pr-3 text-right text-text-3 select-none"
                >
                  {i + 1}
                </span>
              )}
              <span
                className={cx(
                  'min-w-0 flex-1',
                  wrap ? 'wrap-anywhere whitespace-pre-wrap' : 'whitespace-pre',
                  !lineNumbers && 'pl-3',
                )}
              >
                <Tokens tokens={tokens} />
                {tokens.length === 1 && tokens[0]?.text === '' ? '\n' : ''}
              </span>
            </span>
          ))}
        </code>
      </pre>
    </section>
  )
}
