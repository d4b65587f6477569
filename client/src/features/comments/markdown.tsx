/**
 * Markdown to read: GitHub's dialect, drawn as React elements.
 *
 * M1 No HTML of the text ever becomes HTML of the page: tags are shown as they are written.
 * M2 Links go to http, https, mailto, tel or inside the app; anything else is text. Pictures are links, so that reading never calls out.
 * M3 Headings begin below the page's own (`###`), so that the outline of the page stays right.
 */
import { Lexer, type Token, type Tokens } from 'marked'
import { Fragment, memo, type ReactNode, useMemo } from 'react'
import { type Mentionable, mentionsIn } from './mentions.ts'

export interface MarkdownProps {
  readonly text: string
  /** Who is highlighted when mentioned. */
  readonly mentionable?: readonly Mentionable[] | undefined
  /** `read`: 15 px at 70 characters, for documents; `base`: the interface's size, for comments. */
  readonly size?: 'base' | 'read'
}

const NOBODY: readonly Mentionable[] = []

export const Markdown = memo(function Markdown({ text, mentionable = NOBODY, size = 'base' }: MarkdownProps) {
  const blocks = useMemo(() => Lexer.lex(text, { gfm: true, breaks: true }), [text])
  return (
    <div className={size === 'read' ? 'reading grid min-w-0 gap-3' : 'grid min-w-0 max-w-[78ch] gap-2 break-words'}>
      {blocks.map((token, i) => draw(token, i, mentionable))}
    </div>
  )
})

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: '\u00a0' }
const plain = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (whole, name) => ENTITIES[name] ?? whole)

/** M2: the address to use, or undefined for text. */
export function safeHref(href: string): string | undefined {
  if (href.startsWith('/') && !href.startsWith('//')) return href
  try {
    const { protocol } = new URL(href)
    return ['http:', 'https:', 'mailto:', 'tel:'].includes(protocol) ? href : undefined
  } catch {
    // Not an address: it stays text.
    return undefined
  }
}

function Anchor({ href, children }: { href: string; children: ReactNode }) {
  const safe = safeHref(href)
  if (!safe) return <>{children}</>
  const outside = !safe.startsWith('/')
  return (
    <a href={safe} className="link underline" {...(outside ? { target: '_blank', rel: 'noopener noreferrer' } : {})}>
      {children}
    </a>
  )
}

const inline = (tokens: readonly Token[] | undefined, who: readonly Mentionable[]): ReactNode =>
  tokens?.map((token, i) => draw(token, i, who))

function Words({ text, who }: { text: string; who: readonly Mentionable[] }) {
  const found = mentionsIn(text, who)
  if (found.length === 0) return <>{text}</>
  const parts: ReactNode[] = []
  let at = 0
  for (const mention of found) {
    parts.push(text.slice(at, mention.start))
    parts.push(
      <span key={mention.start} className="rounded-sm bg-accent-soft px-1 font-medium text-accent-ink">
        {text.slice(mention.start, mention.end)}
      </span>,
    )
    at = mention.end
  }
  return (
    <>
      {parts}
      {text.slice(at)}
    </>
  )
}

const HEADING = ['text-lg', 'text-md', 'text-base', 'text-base', 'text-base', 'text-base'] as const

function draw(token: Token, key: number, who: readonly Mentionable[]): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'paragraph':
      return <p key={key}>{inline(token.tokens, who)}</p>
    case 'heading': {
      const { depth } = token as Tokens.Heading
      const Tag = `h${Math.min(6, depth + 2)}` as 'h3' | 'h4' | 'h5' | 'h6'
      return (
        <Tag key={key} className={`mt-2 font-semibold first:mt-0 ${HEADING[depth - 1] ?? ''}`}>
          {inline(token.tokens, who)}
        </Tag>
      )
    }
    case 'text':
      return token.tokens ? (
        <Fragment key={key}>{inline(token.tokens, who)}</Fragment>
      ) : (
        <Words key={key} text={plain((token as Tokens.Text).text)} who={who} />
      )
    case 'escape':
      return <Fragment key={key}>{plain((token as Tokens.Escape).text)}</Fragment>
    case 'strong':
      return <strong key={key}>{inline(token.tokens, who)}</strong>
    case 'em':
      return <em key={key}>{inline(token.tokens, who)}</em>
    case 'del':
      return <del key={key}>{inline(token.tokens, who)}</del>
    case 'br':
      return <br key={key} />
    case 'hr':
      return <hr key={key} className="my-1 border-line" />
    case 'codespan':
      return (
        <code key={key} className="rounded-sm bg-surface-3 px-1 py-px font-mono text-[0.92em]">
          {(token as Tokens.Codespan).text}
        </code>
      )
    case 'code':
      return (
        <pre
          key={key}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
          tabIndex={0}
          className="overflow-x-auto rounded-control border border-line bg-surface-2 px-3 py-2 font-mono text-xs whitespace-pre"
        >
          <code>{(token as Tokens.Code).text}</code>
        </pre>
      )
    case 'blockquote':
      return (
        <blockquote key={key} className="grid gap-2 border-l-2 border-line-strong pl-3 text-text-2">
          {inline(token.tokens, who)}
        </blockquote>
      )
    case 'link': {
      const link = token as Tokens.Link
      return (
        <Anchor key={key} href={link.href}>
          {inline(link.tokens, NOBODY)}
        </Anchor>
      )
    }
    case 'image': {
      const image = token as Tokens.Image
      return (
        <Anchor key={key} href={image.href}>
          Picture: {image.text || image.href}
        </Anchor>
      )
    }
    case 'list':
      return <List key={key} list={token as Tokens.List} who={who} />
    case 'table':
      return <Table key={key} table={token as Tokens.Table} who={who} />
    default:
      // M1, and whatever a newer dialect brings: shown as written.
      return token.type === 'html' && 'block' in token && token.block ? (
        <p key={key} className="whitespace-pre-wrap">
          {token.raw.trim()}
        </p>
      ) : (
        <Fragment key={key}>{token.raw}</Fragment>
      )
  }
}

function List({ list, who }: { list: Tokens.List; who: readonly Mentionable[] }) {
  const items = list.items.map((item, i) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: text has no other identity
    <li key={i} className={item.task ? 'list-none' : undefined}>
      {item.task && (
        <span className="-ml-5 mr-1.5 inline-block w-3.5 text-text-2">
          <span aria-hidden="true">{item.checked ? '☑' : '☐'}</span>
          <span className="sr-only">{item.checked ? 'done: ' : 'to do: '}</span>
        </span>
      )}
      {item.tokens
        .filter((token) => token.type !== 'checkbox')
        .map((token, j) =>
          token.type === 'paragraph' ? <div key={token.raw}>{inline(token.tokens, who)}</div> : draw(token, j, who),
        )}
    </li>
  ))
  return list.ordered ? (
    <ol start={list.start === '' ? 1 : list.start} className="nums list-decimal space-y-0.5 pl-6 marker:text-text-3">
      {items}
    </ol>
  ) : (
    <ul className="list-disc space-y-0.5 pl-6 marker:text-text-3">{items}</ul>
  )
}

function Table({ table, who }: { table: Tokens.Table; who: readonly Mentionable[] }) {
  const align = (i: number) => ({ textAlign: table.align[i] ?? 'left' }) as const
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    <div role="group" aria-label="Table" tabIndex={0} className="overflow-x-auto rounded-control border border-line">
      <table className="nums w-full border-collapse text-base">
        <thead className="bg-surface-2">
          <tr>
            {table.header.map((cell, i) => (
              <th
                // biome-ignore lint/suspicious/noArrayIndexKey: text has no other identity
                key={i}
                scope="col"
                style={align(i)}
                className="px-2.5 py-1 font-medium whitespace-nowrap text-text-2"
              >
                {inline(cell.tokens, who)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, r) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: text has no other identity
            <tr key={r} className="border-t border-line">
              {row.map((cell, i) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: text has no other identity
                <td key={i} style={align(i)} className="px-2.5 py-1 align-top">
                  {inline(cell.tokens, who)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
