import type { Row } from '@hq/shared/schema/tables.ts'
import { Link } from '@tanstack/react-router'
import { Badge } from '../../ui/badge.tsx'
import type { Meaning } from '../../ui/cx.ts'
import { duration, RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { money } from './agent-query.ts'

export type RunRow = Row<'agent_runs'> & { readonly task_title: string | null }

export const RUNS_SQL = 'select r.*, t.title as task_title from agent_runs r left join tasks t on t.id = r.task_id'

export const RUN_STATUS: Record<RunRow['status'], { meaning: Meaning; label: string }> = {
  running: { meaning: 'busy', label: 'Running' },
  done: { meaning: 'good', label: 'Done' },
  failed: { meaning: 'danger', label: 'Failed' },
  cancelled: { meaning: 'neutral', label: 'Stopped' },
  interrupted: { meaning: 'warning', label: 'Interrupted' },
}

/** One run in a line: outcome, on what, how long, at what cost. */
export function RunLine({ run, slug, current = false }: { run: RunRow; slug: string; current?: boolean }) {
  const now = useNow()
  const status = RUN_STATUS[run.status]
  const took = (run.ended_at ? Date.parse(run.ended_at) : now) - Date.parse(run.started_at)
  return (
    <li>
      <Link
        to="/agents/$slug"
        params={{ slug }}
        search={{ tab: 'runs', run: run.id }}
        aria-current={current || undefined}
        className="flex min-h-9 min-w-0 items-center gap-3 px-2 py-1 hover:bg-surface-2 touch:min-h-11 aria-[current]:bg-surface-2"
      >
        <Status meaning={status.meaning} label={status.label} />
        <span className="min-w-0 flex-1 truncate">{run.task_title ?? 'without a task'}</span>
        {run.demo && <Badge meaning="warning">Demo</Badge>}
        <span className="nums text-xs text-text-3 max-sm:hidden">
          {run.tool_calls} tool calls · {money(run.cost_usd)}
        </span>
        <span className="nums text-xs text-text-3">{duration(Math.max(0, took))}</span>
        <RelativeTime at={run.started_at} className="text-xs text-text-3" />
      </Link>
    </li>
  )
}
