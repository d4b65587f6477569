import { Link } from '@tanstack/react-router'
import { ChevronRight } from 'lucide-react'
import { useMemo } from 'react'
import { useRows } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Status, StatusShape } from '../../ui/status.tsx'
import { Markdown } from '../comments/markdown.tsx'
import { money, tokens } from './agent-query.ts'
import { RUN_STATUS, type RunRow } from './run-line.tsx'
import { type RunEventRow, type TranscriptEntry, transcript } from './transcript.ts'

const EVENTS =
  'select id, seq, kind, data, created_at from agent_run_events where run_id = $1 and deleted_at is null order by seq, id limit 2000'

/** A run, readable like a chat: what it said, tool calls folded, cost and time above. */
export function RunTranscript({ run }: { run: RunRow }) {
  const { rows } = useRows<RunEventRow>(EVENTS, [run.id], { tables: ['agent_run_events'] })
  const entries = useMemo(() => transcript(rows), [rows])
  const status = RUN_STATUS[run.status]
  return (
    <section aria-label="Transcript" className="grid min-w-0 gap-3">
      <header className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <Status meaning={status.meaning} label={status.label} />
        {run.task_id && (
          <Link to="/tasks/$taskId" params={{ taskId: run.task_id }} className="link min-w-0 truncate">
            {run.task_title}
          </Link>
        )}
        <span className="nums ml-auto text-xs text-text-3">
          {run.model ?? run.runtime} · {tokens(run.input_tokens + run.output_tokens)} tokens · {money(run.cost_usd)} ·{' '}
          <RelativeTime at={run.started_at} words />
        </span>
      </header>
      {run.demo && <p className="text-xs text-warning-ink">Written by the demo model: no real model was asked.</p>}
      {run.error_message && (
        <Banner meaning="danger" title="The run ended badly">
          {run.error_message}
        </Banner>
      )}
      <ol className="grid min-w-0 gap-2" aria-live={run.status === 'running' ? 'polite' : undefined}>
        {entries.map((entry) => (
          <li key={entry.id} className="min-w-0">
            <Entry entry={entry} live={run.status === 'running'} />
          </li>
        ))}
      </ol>
    </section>
  )
}

function Entry({ entry, live }: { entry: TranscriptEntry; live: boolean }) {
  switch (entry.kind) {
    case 'message':
      return (
        <div className="rounded-card border border-line bg-surface-1 px-4 py-3">
          <Markdown text={entry.text} />
        </div>
      )
    case 'reasoning':
      return (
        <details className="group">
          <Summary>Thought</Summary>
          <p className="mt-1 pl-5 text-text-2 whitespace-pre-wrap">{entry.text}</p>
        </details>
      )
    case 'tool': {
      const state = entry.result ? (entry.result.ok ? 'good' : 'danger') : live ? 'busy' : 'warning'
      return (
        <details className="group rounded-control border border-line bg-surface-2 px-2 py-1">
          <Summary>
            <StatusShape
              shape={{ good: 'check', danger: 'cross', busy: 'arc', warning: 'triangle' }[state] as 'check'}
              meaning={state}
              label={{ good: 'worked', danger: 'failed', busy: 'running', warning: 'no result' }[state]}
            />
            <span className="font-mono text-xs">{entry.tool}</span>
            <span className="min-w-0 flex-1 truncate font-mono text-xs text-text-3">
              {entry.input.replace(/\s+/g, ' ')}
            </span>
          </Summary>
          <pre className="mt-1 overflow-auto font-mono text-xs whitespace-pre-wrap text-text-2">{entry.input}</pre>
          <pre className="mt-1 max-h-64 overflow-auto border-t border-line pt-1 font-mono text-xs whitespace-pre-wrap">
            {entry.result?.output ?? 'No result.'}
          </pre>
        </details>
      )
    }
    case 'error':
      return (
        <Banner meaning="danger" title="Error">
          {entry.text}
        </Banner>
      )
    case 'usage':
      return (
        <p className="nums text-right text-xs text-text-3">
          {tokens(entry.inputTokens)} tokens in, {tokens(entry.outputTokens)} out · {money(entry.cost)}
        </p>
      )
    case 'note':
      return <p className="text-xs text-text-3">{entry.text}</p>
  }
}

function Summary({ children }: { children: React.ReactNode }) {
  return (
    <summary className="flex min-w-0 cursor-default list-none items-center gap-2 rounded-control text-text-2 [&::-webkit-details-marker]:hidden">
      <ChevronRight
        aria-hidden="true"
        className="size-3.5 shrink-0 text-text-3 transition-transform group-open:rotate-90"
      />
      {children}
    </summary>
  )
}
