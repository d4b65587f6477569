/** The overview: what waits with the agent, why the queue stands as it stands, what it cost, how it is set up. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useCount, useRow, useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { buttonClass } from '../../ui/button.tsx'
import type { Meaning } from '../../ui/cx.ts'
import { Input } from '../../ui/input.tsx'
import { Meter } from '../../ui/meter.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { visible } from '../approvals/approval.ts'
import { type AgentRow, money, tokens } from './agent-query.ts'
import { AgentSetup } from './agent-setup.tsx'
import { DemoModelBanner } from './demo-model-banner.tsx'
import { RUNS_SQL, RunLine, type RunRow } from './run-line.tsx'

type InboxRow = Row<'agent_inbox_items'> & { readonly task_title: string | null }

const TASKS = `select * from tasks where assignee_agent_id = $1 and deleted_at is null and status in ('todo', 'in_progress', 'blocked')
  order by array_position(array['in_progress', 'todo', 'blocked'], status), sort_order, id limit 20`
const INBOX = `select i.*, t.title as task_title from agent_inbox_items i left join tasks t on t.id = i.task_id
  where i.agent_id = $1 and i.deleted_at is null order by (i.status in ('pending', 'leased', 'dead_letter')) desc, i.created_at desc limit 12`

const INBOX_STATUS: Record<InboxRow['status'], { meaning: Meaning; label: string }> = {
  pending: { meaning: 'waiting', label: 'Waiting' },
  leased: { meaning: 'busy', label: 'In work' },
  done: { meaning: 'good', label: 'Done' },
  failed: { meaning: 'warning', label: 'Failed, will retry' },
  dead_letter: { meaning: 'danger', label: 'Given up' },
  cancelled: { meaning: 'neutral', label: 'Cancelled' },
}

const EVENTS: Partial<Record<InboxRow['event_type'], string>> = {
  task_assignment: 'Assigned',
  task_reassignment: 'Assigned again',
  task_comment_mention: 'Mentioned',
  task_comment: 'Comment',
  deliverable_review: 'Review',
  blocker_resolved: 'Unblocked',
}

export function AgentOverview({ agent }: { agent: AgentRow }) {
  const tasks = useRows<Row<'tasks'>>(TASKS, [agent.id], { tables: ['tasks'] })
  const inbox = useRows<InboxRow>(INBOX, [agent.id], { tables: ['agent_inbox_items', 'tasks'] })
  const { row: lastRun } = useRow<RunRow>(
    `${RUNS_SQL} where r.agent_id = $1 order by r.started_at desc limit 1`,
    [agent.id],
    { tables: ['agent_runs', 'tasks'] },
  )
  return (
    <div className="grid items-start gap-6 lg:grid-cols-[1fr_300px]">
      <div className="grid min-w-0 gap-6">
        {agent.question && (
          <Banner
            meaning="waiting"
            title={`${agent.name} asks before it goes on`}
            action={
              <Link to="/approvals" className={buttonClass('secondary', 'sm')}>
                Answer
              </Link>
            }
          >
            {visible(agent.question)}
          </Banner>
        )}
        {lastRun?.demo && <DemoModelBanner />}
        <Section
          title="Open tasks"
          empty={
            tasks.ready && tasks.rows.length === 0
              ? `Nothing is assigned to ${agent.name}. Assign a task and it begins by itself.`
              : undefined
          }
        >
          {tasks.rows.map((task) => (
            <li key={task.id}>
              <Link
                to="/tasks/$taskId"
                params={{ taskId: task.id }}
                className="flex min-h-9 min-w-0 items-center gap-3 px-2 py-1 hover:bg-surface-2 touch:min-h-11"
              >
                <span className="min-w-0 flex-1 truncate">{task.title}</span>
                <span className="text-xs text-text-3">{task.status.replace('_', ' ')}</span>
              </Link>
            </li>
          ))}
        </Section>
        <Section
          title="Why it wakes"
          empty={
            inbox.ready && inbox.rows.length === 0
              ? 'Assignments, mentions and reviews for it queue up here.'
              : undefined
          }
        >
          {inbox.rows.map((item) => (
            <li
              key={item.id}
              className="flex min-h-9 min-w-0 items-center gap-3 px-2 py-1 hover:bg-surface-2 touch:min-h-11"
            >
              <span className="w-24 shrink-0 text-text-2">
                {EVENTS[item.event_type] ?? item.event_type.replaceAll('_', ' ')}
              </span>
              <span className="min-w-0 flex-1 truncate">{item.task_title ?? ''}</span>
              <Status
                meaning={INBOX_STATUS[item.status].meaning}
                label={INBOX_STATUS[item.status].label}
                detail={item.error_message ?? undefined}
              />
              <RelativeTime at={item.created_at} className="text-xs text-text-3" />
            </li>
          ))}
        </Section>
        <Section title="Last run" empty={lastRun ? undefined : 'It has not run yet.'}>
          {lastRun && <RunLine run={lastRun} slug={agent.slug} />}
        </Section>
      </div>
      <aside className="grid gap-5">
        <Budget agent={agent} />
        <AgentSetup agent={agent} />
      </aside>
    </div>
  )
}

function Section({ title, empty, children }: { title: string; empty: string | undefined; children: ReactNode }) {
  return (
    <section className="min-w-0">
      <h3 className="section-title mb-1">{title}</h3>
      {empty ? (
        <p className="text-text-3">{empty}</p>
      ) : (
        <ul className="divide-y divide-line border-y border-line">{children}</ul>
      )}
    </section>
  )
}

/** Spent this month against the limit; an admin sets the limit in place. */
function Budget({ agent }: { agent: AgentRow }) {
  const { isAdmin } = useSession()
  const { row: budget } = useRow<Row<'agent_budgets'>>(
    'select * from agent_budgets where agent_id = $1 and deleted_at is null limit 1',
    [agent.id],
    { tables: ['agent_budgets'] },
  )
  const calls = useCount(
    "select count(*) from agent_usage where agent_id = $1 and occurred_at >= date_trunc('month', now())",
    [agent.id],
    { tables: ['agent_usage'] },
  )
  const spent = agent.cost_month ?? 0
  const limit = budget?.monthly_limit_usd ?? null
  return (
    <section className="grid gap-2">
      <h3 className="section-title">This month</h3>
      {limit !== null && limit > 0 && (
        <Meter label="Spent" value={spent} max={limit} text={`${money(spent)} of ${money(limit)}`} />
      )}
      <p className="nums text-text-2">
        {money(agent.cost_month)} · {tokens(agent.tokens_month ?? 0)} tokens · {calls ?? 0} model calls
      </p>
      {isAdmin && !agent.deleted_at && <LimitField agent={agent} budgetId={budget?.id} limit={limit} />}
    </section>
  )
}

function LimitField({
  agent,
  budgetId,
  limit,
}: {
  agent: AgentRow
  budgetId: string | undefined
  limit: number | null
}) {
  const write = useWrite()
  const save = (text: string) => {
    const value = text.trim() === '' ? null : Number(text)
    if (value !== null && !(Number.isFinite(value) && value >= 0)) return
    if (value === limit) return
    void write([
      budgetId
        ? { sql: 'update agent_budgets set monthly_limit_usd = $2 where id = $1', params: [budgetId, value] }
        : {
            sql: 'insert into agent_budgets (id, tenant_id, agent_id, monthly_limit_usd) values (uuidv7(), $1, $2, $3)',
            params: [agent.tenant_id, agent.id, value],
          },
    ])
  }
  return (
    <Input
      key={String(limit)}
      label="Monthly limit, US$"
      type="number"
      min={0}
      step="0.5"
      defaultValue={limit ?? ''}
      placeholder="no limit"
      hint="Reached: it is not woken again before next month."
      onBlur={(event) => save(event.currentTarget.value)}
    />
  )
}
