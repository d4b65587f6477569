/** The one line under a task's title that says how its agent stands. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { Link } from '@tanstack/react-router'
import { useCount, useRow } from '../../replica/hooks.ts'
import { Avatar } from '../../ui/avatar.tsx'
import { useNow } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { AGENT_TABLES, AGENTS_SQL, type AgentRow as AgentWithFacts } from '../agents/agent-query.ts'
import { agentState } from '../agents/agent-state.ts'
import { type AgentRow, agentActor } from './directory.ts'
import type { Task } from './model.ts'
import type { RelatedTask } from './relations.tsx'
import { whyOf } from './why.ts'

type Wake = Pick<Row<'agent_inbox_items'>, 'status' | 'attempt_count' | 'max_attempts' | 'error_message'>

export function TaskWhy(props: { task: Task; agent: AgentRow; related: readonly RelatedTask[]; reviews: number }) {
  const { task, agent, related, reviews } = props
  const now = useNow()
  const facts = useRow<AgentWithFacts>(`${AGENTS_SQL} where a.id = $1::uuid`, [agent.id], { tables: AGENT_TABLES }).row
  const wake = useRow<Wake>(
    `select status, attempt_count, max_attempts, error_message from agent_inbox_items
     where task_id = $1::uuid and agent_id = $2::uuid and deleted_at is null order by created_at desc limit 1`,
    [task.id, agent.id],
    { tables: ['agent_inbox_items'] },
  )
  const running = useCount(
    `select count(*)::int from agent_runs where task_id = $1::uuid and agent_id = $2::uuid and status = 'running'`,
    [task.id, agent.id],
    { tables: ['agent_runs'] },
  )
  if (!facts || !wake.ready) return <div className="h-7" />
  const why = whyOf({
    status: task.status,
    agent: { name: agent.name, state: agentState(facts, now) },
    blockers: related
      .filter((each) => each.kind === 'blocked-by' && each.status !== 'done' && each.status !== 'cancelled')
      .map((each) => each.title),
    wake: wake.row,
    running: (running ?? 0) > 0,
    reviews,
  })
  if (!why) return null
  return (
    <p className="flex min-h-7 min-w-0 flex-wrap items-center gap-x-2">
      <Avatar actor={agentActor(agent)} decorative />
      <Link
        to="/agents/$slug"
        params={{ slug: agent.slug }}
        className="shrink-0 rounded-sm font-medium hover:underline"
      >
        {agent.name}
      </Link>
      <Status meaning={why.meaning} shape={why.shape} label={why.label} />
      {why.detail && <span className="min-w-0 text-text-3">{why.detail}</span>}
    </p>
  )
}
