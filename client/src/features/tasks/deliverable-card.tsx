/** One deliverable: what was handed in, its versions, and the decision. */
import { Link } from '@tanstack/react-router'
import { ExternalLink, FileText } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'
import { useRow, useWrite } from '../../replica/hooks.ts'
import { Avatar } from '../../ui/avatar.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { cx } from '../../ui/cx.ts'
import { Menu } from '../../ui/menu.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { Textarea } from '../../ui/textarea.tsx'
import { Markdown } from '../comments/markdown.tsx'
import { MarkOf } from '../sync/row-mark.tsx'
import {
  type Decision,
  type Deliverable,
  decisionProblem,
  deliverableName,
  type Link as EntityLink,
  REVIEW,
} from './deliverables.ts'
import type { Directory } from './directory.ts'
import { plural } from './model.ts'
import { report } from './use-actions.ts'

const DECIDE = `update entity_links set review_status = $2::text, review_note = $3::text, reviewed_by = $4::uuid, reviewed_at = now()
  where id = $1::uuid and review_status = $5::text`

const WORDS: Record<Decision, { readonly button: string; readonly label: string; readonly hint: string }> = {
  approved: { button: 'Approve', label: 'Note (optional)', hint: '' },
  revision_requested: {
    button: 'Request revision',
    label: 'What should change?',
    hint: 'The agent is woken with this note and hands in a new version.',
  },
  rejected: {
    button: 'Reject',
    label: 'Why?',
    hint: 'The agent hears of it; nothing more is expected of this version.',
  },
}

export function DeliverableCard(props: { deliverable: Deliverable; directory: Directory }) {
  const { deliverable, directory } = props
  const { current, older } = deliverable
  const id = useId()
  const write = useWrite()
  const [deciding, setDeciding] = useState<Decision>()
  const [note, setNote] = useState('')
  const [problem, setProblem] = useState<string>()
  const status = current.review_status ?? 'draft'
  const by = current.submitted_by_agent_id
    ? directory.actor({ type: 'agent', id: current.submitted_by_agent_id })
    : current.submitted_by_person_id
      ? directory.actor({ type: 'human', id: current.submitted_by_person_id })
      : undefined

  const decide = async (decision: Decision) => {
    const wrong = decisionProblem(current, decision, note)
    setProblem(wrong)
    if (wrong) return
    await write([
      { sql: DECIDE, params: [current.id, decision, note.trim() || null, directory.me, current.review_status] },
    ])
    setDeciding(undefined)
    setNote('')
  }
  const begin = (decision: Decision) => {
    setProblem(undefined)
    setDeciding(deciding === decision ? undefined : decision)
  }
  const act = (decision: Decision) => void decide(decision).catch(report)

  return (
    <article
      aria-labelledby={id}
      className={cx(
        'min-w-0 overflow-hidden rounded-card border',
        status === 'submitted' ? 'border-accent/50' : 'border-line',
      )}
    >
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-surface-2 px-3 py-2">
        <h3 id={id} className="flex min-w-0 flex-1 basis-52 items-center gap-2 font-medium">
          <FileText className="size-4 shrink-0 text-text-3" strokeWidth={1.75} aria-hidden="true" />
          <span className="truncate">{deliverableName(current)}</span>
        </h3>
        <MarkOf table="entity_links" id={current.id} />
        <Status {...REVIEW[status]} />
        <span className="flex items-center gap-1.5 text-xs text-text-3">
          {by && <Avatar actor={by} size="xs" />}
          {older.length > 0 && <span className="nums">version {older.length + 1} ·</span>}
          <RelativeTime at={current.created_at} words />
        </span>
      </header>
      <Body link={current} directory={directory} />
      {current.review_note && status !== 'submitted' && (
        <div className="border-t border-line px-4 py-2.5">
          <p className="text-xs text-text-3">
            {directory.person(current.reviewed_by)?.name ?? 'Somebody'}’s note
            {current.reviewed_at && (
              <>
                {' · '}
                <RelativeTime at={current.reviewed_at} words />
              </>
            )}
          </p>
          <Markdown text={current.review_note} mentionable={directory.mentionable} />
        </div>
      )}
      {older.length > 0 && (
        <details className="border-t border-line px-4 py-2">
          <summary className="cursor-default text-text-2">{plural(older.length, 'earlier version')}</summary>
          <ol className="grid gap-3 pt-2">
            {older.map((link, i) => (
              <Older key={link.id} number={older.length - i} link={link} directory={directory} />
            ))}
          </ol>
        </details>
      )}
      {directory.canWrite && status !== 'draft' && (
        <footer className="border-t border-line px-3 py-2">
          {deciding ? (
            <form
              className="grid gap-2"
              onSubmit={(event) => {
                event.preventDefault()
                act(deciding)
              }}
            >
              <Textarea
                label={WORDS[deciding].label}
                hint={WORDS[deciding].hint}
                error={problem}
                minRows={2}
                value={note}
                autoFocus
                onChange={(event) => {
                  setNote(event.target.value)
                  setProblem(undefined)
                }}
                onSubmit={() => act(deciding)}
              />
              <div className="flex justify-end gap-2">
                <Button variant="ghost" onClick={() => setDeciding(undefined)}>
                  Cancel
                </Button>
                <Button type="submit" variant={deciding === 'rejected' ? 'danger' : 'primary'} shortcut="mod+enter">
                  {WORDS[deciding].button}
                </Button>
              </div>
            </form>
          ) : status === 'submitted' ? (
            <div className="flex flex-wrap gap-2">
              <Button variant="primary" onClick={() => act('approved')}>
                Approve
              </Button>
              <Button onClick={() => begin('revision_requested')}>Request revision</Button>
              <Button variant="danger" onClick={() => begin('rejected')} className="sm:ml-auto">
                Reject
              </Button>
            </div>
          ) : (
            <Menu
              label="Change the decision"
              trigger={
                <Button variant="ghost" size="sm">
                  Change the decision
                </Button>
              }
              items={(Object.keys(WORDS) as Decision[])
                .filter((decision) => decision !== status)
                .map((decision) => ({
                  kind: 'item',
                  label: WORDS[decision].button,
                  onSelect: () => (decision === 'approved' ? act(decision) : begin(decision)),
                }))}
            />
          )}
        </footer>
      )}
    </article>
  )
}

function Older({ number, link, directory }: { number: number; link: EntityLink; directory: Directory }) {
  const look = link.review_status ? REVIEW[link.review_status] : undefined
  return (
    <li className="min-w-0 rounded-control border border-line">
      <details>
        <summary className="flex cursor-default flex-wrap items-center gap-x-3 px-3 py-1.5">
          <span className="nums font-medium">Version {number}</span>
          {look && <Status {...look} />}
          <RelativeTime at={link.created_at} words className="ml-auto text-xs text-text-3" />
        </summary>
        <Body link={link} directory={directory} />
      </details>
      {link.review_note && (
        <div className="border-t border-line px-3 py-1.5 text-text-2">
          <Markdown text={link.review_note} mentionable={directory.mentionable} />
        </div>
      )}
    </li>
  )
}

const LONG = 2_400

/** The content, folded when it is long. */
function Body({ link, directory }: { link: EntityLink; directory: Directory }) {
  const [whole, setWhole] = useState(false)
  const text = link.body ?? ''
  if (text !== '') {
    const long = text.length > LONG
    return (
      <div className="px-4 py-3">
        <div
          className={cx(
            long && !whole && 'max-h-96 overflow-hidden [mask-image:linear-gradient(#000_80%,transparent)]',
          )}
        >
          <Markdown text={text} size="read" mentionable={directory.mentionable} />
        </div>
        {long && (
          <Button variant="ghost" size="sm" onClick={() => setWhole(!whole)} className="-ml-2">
            {whole ? 'Show less' : 'Show all'}
          </Button>
        )}
      </div>
    )
  }
  if (link.target_type === 'agent_file' && link.url) return <AgentFile link={link} path={link.url} />
  return (
    <p className="px-4 py-3">
      <Target link={link} />
    </p>
  )
}

function AgentFile({ link, path }: { link: EntityLink; path: string }) {
  const { row, ready } = useRow<{ content: string | null }>(
    'select content from agent_files where agent_id = $1::uuid and path = $2::text and deleted_at is null',
    [link.submitted_by_agent_id, path],
    { tables: ['agent_files'], enabled: link.submitted_by_agent_id !== null },
  )
  if (row?.content && path.endsWith('.md'))
    return (
      <div className="max-h-[60dvh] overflow-auto px-4 py-3">
        <Markdown text={row.content} size="read" />
      </div>
    )
  if (row?.content) return <CodeView code={row.content} path={path} className="max-h-[60dvh] rounded-none border-0" />
  return (
    <p className="px-4 py-3 text-text-2">
      <code className="font-mono text-xs">{path}</code>
      {ready && ' lies with the agent; its content is not on this device.'}
    </p>
  )
}

function Target({ link }: { link: EntityLink }): ReactNode {
  if (link.target_type === 'url' && link.url && /^https?:/i.test(link.url))
    return (
      <a
        href={link.url}
        target="_blank"
        rel="noopener noreferrer"
        className="link inline-flex items-center gap-1.5 break-all"
      >
        {link.url}
        <ExternalLink className="size-3.5 shrink-0" aria-hidden="true" />
      </a>
    )
  if (link.target_type === 'task' && link.target_id)
    return (
      <Link to="/tasks/$taskId" params={{ taskId: link.target_id }} className="link">
        {link.label ?? 'A task'}
      </Link>
    )
  return <span className="text-text-2">{link.url ?? 'Nothing is attached to this deliverable.'}</span>
}
