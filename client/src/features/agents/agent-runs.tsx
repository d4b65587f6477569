/** The runs of an agent, and one of them as a readable transcript that grows while it happens. */
import { useRows } from '../../replica/hooks.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import type { AgentRow } from './agent-query.ts'
import { RUNS_SQL, RunLine, type RunRow } from './run-line.tsx'
import { RunTranscript } from './run-transcript.tsx'

export function AgentRuns({ agent, runId }: { agent: AgentRow; runId: string | undefined }) {
  const { rows, ready } = useRows<RunRow>(
    `${RUNS_SQL} where r.agent_id = $1 and r.deleted_at is null order by r.started_at desc, r.id limit 50`,
    [agent.id],
    { tables: ['agent_runs', 'tasks'] },
  )
  const chosen = rows.find(({ id }) => id === runId) ?? rows[0]
  if (ready && rows.length === 0)
    return (
      <EmptyState drawing="commands" title={`${agent.name} has not run yet`}>
        A run is one stretch of work: what it was told, what it did, what it cost. It begins when a task is assigned to
        it.
      </EmptyState>
    )
  return (
    <div className="grid items-start gap-6 xl:grid-cols-[minmax(320px,2fr)_3fr]">
      <ul aria-label="Runs" className="divide-y divide-line border-y border-line">
        {rows.map((run) => (
          <RunLine key={run.id} run={run} slug={agent.slug} current={run.id === chosen?.id} />
        ))}
      </ul>
      {chosen && <RunTranscript run={chosen} />}
    </div>
  )
}
