/** One question: who asks, what will be done in full, how it stands, and the answer. */
import { Link } from '@tanstack/react-router'
import { ShieldQuestionMark, SquareTerminal, TabletSmartphone } from 'lucide-react'
import { type KeyboardEvent, useId, useState } from 'react'
import { replica, useSession, useWrite } from '../../replica/hooks.ts'
import { AgentAvatar } from '../../ui/avatar.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { cx } from '../../ui/cx.ts'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { Textarea } from '../../ui/textarea.tsx'
import { toast } from '../../ui/toast.tsx'
import { emojiOf } from '../agents/agent-query.ts'
import { RowMarkView } from '../sync/row-mark.tsx'
import type { RowMark } from '../sync/row-marks.ts'
import {
  type ApprovalRow,
  answer,
  approvalState,
  canBeStanding,
  detailOf,
  factName,
  type Verdict,
  visible,
} from './approval.ts'

const ICONS = { exec: SquareTerminal, tool: ShieldQuestionMark, pairing: TabletSmartphone } as const

export function ApprovalCard({ row, mark }: { row: ApprovalRow; mark: RowMark | undefined }) {
  const id = useId()
  const { principal, isAdmin, canWrite } = useSession()
  const write = useWrite()
  const now = useNow()
  const [denying, setDenying] = useState(false)
  const [note, setNote] = useState('')
  const state = approvalState(row, now)
  const Icon = ICONS[row.kind]
  const mayAnswer = canWrite && state.key === 'open'
  const standing = isAdmin && canBeStanding(row)

  const give = async (verdict: Verdict) => {
    const { result } = await write(answer(row, verdict, note, principal.person_id))
    setDenying(false)
    setNote('')
    if (result[0]?.length === 0)
      toast({ title: 'That was answered already', description: 'Your answer changed nothing.', meaning: 'warning' })
  }
  const act = (verdict: Verdict) => {
    give(verdict).catch((error: unknown) =>
      toast({
        title: 'Your answer was not kept',
        description: error instanceof Error ? error.message : String(error),
        meaning: 'danger',
      }),
    )
  }
  /** Letters answer the question that has the focus, and only that: a stray key must allow nothing. */
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    if (event.target !== event.currentTarget || event.metaKey || event.ctrlKey || event.altKey || !mayAnswer) return
    const key = event.key.toLowerCase()
    if (key !== 'a' && key !== 'd') return
    event.preventDefault()
    if (key === 'd') setDenying(true)
    else if (!event.shiftKey) act('once')
    else if (standing) act('always')
  }

  return (
    <article
      aria-labelledby={id}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: j and k go from question to question, letters answer the one that has the focus
      tabIndex={0}
      data-approval={row.id}
      onKeyDown={onKeyDown}
      className={cx(
        'min-w-0 overflow-hidden rounded-card border bg-surface-1',
        mayAnswer ? 'border-accent/50' : 'border-line',
      )}
    >
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-surface-2 px-3 py-2">
        <h3 id={id} className="flex min-w-0 flex-1 basis-60 items-start gap-2 font-medium">
          <Icon className="mt-0.5 size-4 shrink-0 text-text-3" strokeWidth={1.75} aria-hidden="true" />
          <span className="min-w-0 wrap-anywhere">{visible(row.title)}</span>
        </h3>
        <RowMarkView mark={mark} />
        <Status meaning={state.meaning} shape={state.shape} label={state.label} />
        <RelativeTime at={row.decided_at ?? row.created_at} words className="text-xs text-text-3" />
      </header>
      <Who row={row} />
      {state.key === 'over' || state.key === 'late' ? (
        <details className="px-4 py-2">
          <summary className="cursor-default text-text-2">What was asked</summary>
          <Detail detail={row.detail} />
        </details>
      ) : (
        <div className="px-4">
          <Detail detail={row.detail} />
        </div>
      )}
      {state.detail && <p className="border-t border-line px-4 py-2 text-text-2">{state.detail}</p>}
      {state.key === 'open' && row.expires_at && (
        <p className="border-t border-line px-4 py-2 text-xs text-text-3">
          Without an answer the agent goes on without it <RelativeTime at={row.expires_at} words />.
        </p>
      )}
      {row.note && (
        <p className="border-t border-line px-4 py-2">
          <span className="block text-xs text-text-3">{row.decided_by_name ?? 'Somebody'}’s note</span>
          <span className="wrap-anywhere whitespace-pre-line">{row.note}</span>
        </p>
      )}
      {mark?.state === 'rejected' && <Refused row={row} mark={mark} />}
      {mayAnswer && (
        <footer className="border-t border-line px-3 py-2">
          {denying ? (
            <form
              className="grid gap-2"
              onSubmit={(event) => {
                event.preventDefault()
                act('deny')
              }}
            >
              <Textarea
                label="Why? (optional)"
                hint="The agent reads it."
                minRows={2}
                value={note}
                autoFocus
                onChange={(event) => setNote(event.target.value)}
                onSubmit={() => act('deny')}
                onKeyDown={(event) => event.key === 'Escape' && setDenying(false)}
              />
              <div className="flex justify-end gap-2">
                <Button variant="ghost" onClick={() => setDenying(false)}>
                  Cancel
                </Button>
                <Button type="submit" variant="danger" shortcut="mod+enter">
                  Deny
                </Button>
              </div>
            </form>
          ) : (
            <div className="flex flex-wrap gap-2">
              <Button variant="primary" onClick={() => act('once')}>
                Allow once
              </Button>
              {standing && (
                <Button
                  onClick={() => act('always')}
                  aria-label={`Always allow ${row.subject} for ${row.agent_name ?? 'this agent'}`}
                >
                  Always allow {row.subject}
                </Button>
              )}
              <Button variant="danger" onClick={() => setDenying(true)} className="sm:ml-auto">
                Deny…
              </Button>
            </div>
          )}
        </footer>
      )}
      {!canWrite && state.key === 'open' && (
        <p className="border-t border-line px-4 py-2 text-text-2">Members and admins answer this; you may look.</p>
      )}
    </article>
  )
}

function Who({ row }: { row: ApprovalRow }) {
  const answered = row.status === 'allowed' || row.status === 'denied'
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 pt-3 text-text-2">
      {row.agent_name && row.agent_slug && (
        <Link
          to="/agents/$slug"
          params={{ slug: row.agent_slug }}
          className="flex items-center gap-2 hover:text-text-1"
        >
          <AgentAvatar name={row.agent_name} emoji={emojiOf({ meta: row.agent_meta })} size="xs" decorative />
          {row.agent_name}
        </Link>
      )}
      {row.task_id && row.task_title && (
        <Link to="/tasks/$taskId" params={{ taskId: row.task_id }} className="min-w-0 truncate hover:text-text-1">
          for “{row.task_title}”
        </Link>
      )}
      <span className="text-text-3">on {row.gateway_label ?? 'a gateway that is gone'}</span>
      {answered && row.decided_by_name && <span className="text-text-3">answered by {row.decided_by_name}</span>}
    </p>
  )
}

/** All of it: lines are wrapped, nothing stands out of sight to the right. */
function Detail({ detail }: { detail: ApprovalRow['detail'] }) {
  const { main, facts } = detailOf(detail)
  const lines = main?.text.split('\n').length ?? 0
  return (
    <div className="grid gap-2 py-3">
      {main && (
        <figure className="min-w-0">
          <figcaption className="mb-1 text-xs text-text-3">
            {factName(main.name)}
            {lines > 12 && <span className="nums"> · {lines.toLocaleString('en')} lines</span>}
          </figcaption>
          <pre
            // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
            tabIndex={0}
            className="max-h-[50dvh] overflow-auto rounded-control border border-line bg-surface-2 px-3 py-2 font-mono text-xs/[20px] wrap-anywhere whitespace-pre-wrap"
          >
            {main.text}
          </pre>
        </figure>
      )}
      {facts.length > 0 && (
        <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 text-xs">
          {facts.map(({ name, text }) => (
            <div key={name} className="contents">
              <dt className="text-text-3">{factName(name)}</dt>
              <dd className="font-mono wrap-anywhere whitespace-pre-wrap">{text}</dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  )
}

/** The server took somebody else's answer, or none: what this person said had no effect. */
function Refused({ row, mark }: { row: ApprovalRow; mark: RowMark }) {
  const [busy, setBusy] = useState(false)
  const other = row.status !== 'pending' && row.decided_by_name
  const forget = async () => {
    setBusy(true)
    try {
      await replica().discard(Number(mark.anchor.replace(/^change-/, '')))
    } catch (error) {
      setBusy(false)
      toast({
        title: 'That did not work',
        description: error instanceof Error ? error.message : String(error),
        meaning: 'danger',
      })
    }
  }
  return (
    <div className="border-t border-line p-3">
      <Banner
        meaning="warning"
        title={other ? `${row.decided_by_name} was first` : 'Your answer was not taken'}
        action={
          <Button size="sm" busy={busy} onClick={() => void forget()}>
            Understood
          </Button>
        }
      >
        {other
          ? `What counts is their answer: ${row.status}. Yours, given meanwhile, changed nothing.`
          : (mark.reason ?? 'The server gave no reason.')}
      </Banner>
    </div>
  )
}
