import { Link } from '@tanstack/react-router'
import { AgentAvatar } from '../../ui/avatar.tsx'
import { Badge } from '../../ui/badge.tsx'
import { useNow } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { MarkOf } from '../sync/row-mark.tsx'
import { type AgentRow, emojiOf, money, teamOf } from './agent-query.ts'
import { agentState } from './agent-state.ts'

/** One agent at a glance: who, what it does or why not, what waits with it. */
export function AgentCard({ agent }: { agent: AgentRow }) {
  const now = useNow()
  const state = agentState(agent, now)
  const team = teamOf(agent)
  return (
    <article className="group relative flex min-w-0 flex-col gap-3 rounded-card border border-line bg-surface-1 p-4 transition-colors hover:border-line-strong has-[a:focus-visible]:border-line-strong">
      <div className="flex min-w-0 items-start gap-3">
        <AgentAvatar name={agent.name} emoji={emojiOf(agent)} size="xl" decorative />
        <div className="min-w-0 flex-1">
          <div className="flex min-w-0 items-center gap-1.5">
            <Link
              to="/agents/$slug"
              params={{ slug: agent.slug }}
              className="truncate rounded-sm text-lg font-semibold tracking-[-0.01em] after:absolute after:inset-0"
            >
              {agent.name}
            </Link>
            <MarkOf table="agents" id={agent.id} />
          </div>
          <p className="line-clamp-2 text-text-2">{agent.description || `@${agent.slug}`}</p>
        </div>
      </div>
      <Status meaning={state.meaning} shape={state.shape} label={state.label} detail={state.detail} />
      <div className="mt-auto flex flex-wrap items-center gap-1.5 border-t border-line pt-3 text-xs text-text-3">
        <span className="nums">{agent.open_tasks === 1 ? '1 open task' : `${agent.open_tasks} open tasks`}</span>
        {agent.reviews > 0 && <Badge meaning="waiting">{agent.reviews} to review</Badge>}
        {team && <Badge>{team}</Badge>}
        <span className="nums ml-auto">{agent.tokens_month ? `${money(agent.cost_month)} this month` : ''}</span>
      </div>
    </article>
  )
}
