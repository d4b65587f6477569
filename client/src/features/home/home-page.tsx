/** Home: what needs me, what everyone is doing, what happened meanwhile. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { Link, useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import type { ReactNode } from 'react'
import { useRows, useSession, useSyncStatus } from '../../replica/hooks.ts'
import { AgentAvatar, PersonAvatar } from '../../ui/avatar.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button, buttonClass } from '../../ui/button.tsx'
import type { Meaning } from '../../ui/cx.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { type Shape, Status, StatusShape } from '../../ui/status.tsx'
import { AGENT_TABLES, AGENTS_SQL, type AgentRow, emojiOf } from '../agents/agent-query.ts'
import { agentState } from '../agents/agent-state.ts'
import { actionName } from '../commands/command-query.ts'
import {
  ATTENTION_SQL,
  ATTENTION_TABLES,
  type AttentionKind,
  type AttentionRow,
  auditSentence,
  greeting,
  KIND_LABEL,
} from './attention.ts'

export const ROW = 'flex min-h-9 min-w-0 items-center gap-3 px-2 py-1 hover:bg-surface-2 touch:min-h-11'

export function HomePage() {
  const { principal, person, canWrite } = useSession()
  const navigate = useNavigate()
  const agents = useRows<AgentRow>(
    `${AGENTS_SQL} where a.deleted_at is null order by r.started_at desc nulls last, a.name limit 24`,
    [],
    { tables: AGENT_TABLES },
  )
  const hour = new Date(useNow()).getHours()
  const first = (person?.name ?? principal.name).split(' ')[0] ?? principal.name
  const create = canWrite && (
    <Button variant="primary" icon={Plus} onClick={() => void navigate({ to: '/tasks', search: { create: true } })}>
      New task
    </Button>
  )
  return (
    <Page title="Home" actions={create}>
      <div className="mx-auto grid w-full max-w-[1120px] items-start gap-8 px-4 py-6 lg:grid-cols-[minmax(0,1fr)_320px]">
        <div className="grid min-w-0 gap-8">
          <h2 className="title">{greeting(hour, first)}</h2>
          <NeedsMe hasAgents={agents.rows.length > 0} />
          <Activity />
        </div>
        <Fleet agents={agents.rows} ready={agents.ready} />
      </div>
    </Page>
  )
}

const MARKS: Record<AttentionKind, { shape: Shape; meaning: Meaning }> = {
  approval: { shape: 'clock', meaning: 'waiting' },
  review: { shape: 'three-quarter', meaning: 'waiting' },
  agent_error: { shape: 'cross', meaning: 'danger' },
  command: { shape: 'cross', meaning: 'danger' },
  dead_letter: { shape: 'cross', meaning: 'danger' },
  blocked: { shape: 'bar', meaning: 'warning' },
}

function NeedsMe({ hasAgents }: { hasAgents: boolean }) {
  const { rows, ready } = useRows<AttentionRow>(ATTENTION_SQL, [], { tables: ATTENTION_TABLES })
  const { rejected } = useSyncStatus()
  return (
    <section aria-labelledby="needs-me" className="min-w-0">
      <SectionTitle id="needs-me" count={rows.length + (rejected > 0 ? 1 : 0)}>
        Needs you
      </SectionTitle>
      {rejected > 0 && (
        <Banner
          meaning="warning"
          title={rejected === 1 ? 'One change was not accepted' : `${rejected} changes were not accepted`}
          action={
            <Link to="/sync" className={buttonClass('secondary', 'sm')}>
              Look
            </Link>
          }
          className="mb-2"
        >
          They are kept until you decide: change and send again, copy, or discard.
        </Banner>
      )}
      {ready && rows.length === 0 && rejected === 0 ? (
        hasAgents ? (
          <p className="flex items-center gap-2 py-2 text-text-2">
            <StatusShape shape="check" meaning="good" />
            Nothing waits for you.
          </p>
        ) : (
          <EmptyState
            drawing="agents"
            title="Begin with an agent"
            className="rounded-card border border-line"
            action={
              <Link to="/agents" search={{ new: true }} className={buttonClass('primary')}>
                New agent
              </Link>
            }
          >
            Pick a template and give it a name. Then assign it a task: what it delivers comes back here for your
            approval.
          </EmptyState>
        )
      ) : (
        <ul className="divide-y divide-line border-y border-line">
          {rows.map((row) => (
            <li key={`${row.kind}${row.id}`}>
              <AttentionLink row={row}>
                <StatusShape {...MARKS[row.kind]} />
                <span className="w-16 shrink-0 text-xs text-text-3">{KIND_LABEL[row.kind]}</span>
                <span className="min-w-0 flex-1 truncate">
                  {row.kind === 'command'
                    ? `${actionName(row.title as 'provision')} ${row.agent_name ?? ''}`
                    : row.title}
                  {row.detail && <span className="ml-2 text-text-3">{row.detail}</span>}
                </span>
                {row.agent_name && <AgentAvatar name={row.agent_name} emoji={emojiOf({ meta: row.agent_meta })} />}
                <RelativeTime at={row.at} className="w-12 shrink-0 text-right text-xs text-text-3" />
              </AttentionLink>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function AttentionLink({ row, children }: { row: AttentionRow; children: ReactNode }) {
  if (row.kind === 'approval')
    return (
      <Link to="/approvals" className={ROW}>
        {children}
      </Link>
    )
  if (row.task_id)
    return (
      <Link to="/tasks/$taskId" params={{ taskId: row.task_id }} className={ROW}>
        {children}
      </Link>
    )
  if (row.kind === 'command' || !row.agent_slug)
    return (
      <Link to="/commands" className={ROW}>
        {children}
      </Link>
    )
  return (
    <Link to="/agents/$slug" params={{ slug: row.agent_slug }} className={ROW}>
      {children}
    </Link>
  )
}

function Fleet({ agents, ready }: { agents: readonly AgentRow[]; ready: boolean }) {
  const now = useNow()
  if (ready && agents.length === 0) return null
  return (
    <section aria-labelledby="fleet" className="min-w-0">
      <SectionTitle id="fleet">Agents</SectionTitle>
      <ul className="grid gap-px">
        {agents.map((agent) => {
          const state = agentState(agent, now)
          return (
            <li key={agent.id}>
              <Link
                to="/agents/$slug"
                params={{ slug: agent.slug }}
                className="flex min-w-0 items-center gap-3 rounded-control px-2 py-2 hover:bg-surface-2"
              >
                <AgentAvatar name={agent.name} emoji={emojiOf(agent)} size="lg" decorative />
                <span className="min-w-0 flex-1">
                  <span className="block truncate font-medium">{agent.name}</span>
                  <Status
                    meaning={state.meaning}
                    shape={state.shape}
                    label={state.label}
                    detail={state.detail}
                    className="text-xs"
                  />
                </span>
                {agent.open_tasks > 0 && <span className="nums text-xs text-text-3">{agent.open_tasks}</span>}
              </Link>
            </li>
          )
        })}
      </ul>
    </section>
  )
}

type AuditRow = Pick<
  Row<'audit_log'>,
  'id' | 'entity_type' | 'entity_id' | 'action' | 'summary' | 'occurred_at' | 'actor_type'
> & {
  readonly actor_name: string | null
  readonly actor_meta: Record<string, unknown> | null
  readonly task_id: string | null
}

const AUDIT = `
  select l.id, l.entity_type, l.entity_id, l.action, l.summary, l.occurred_at, l.actor_type, coalesce(p.name, a.name) as actor_name, a.meta as actor_meta,
    t.id as task_id
  from audit_log l
  left join people p on l.actor_type = 'human' and p.id = l.actor_id
  left join agents a on l.actor_type = 'agent' and a.id = l.actor_id
  left join comments c on c.id = l.entity_id
  left join entity_links d on d.id = l.entity_id and d.owner_type = 'task'
  left join tasks t on t.id = coalesce(c.entity_id, d.owner_id, l.entity_id)
  where l.actor_type <> 'system'
  order by l.occurred_at desc, l.id desc limit 25`

function Activity() {
  const { rows, ready } = useRows<AuditRow>(AUDIT, [], {
    tables: ['audit_log', 'people', 'agents', 'tasks', 'comments', 'entity_links'],
  })
  if (ready && rows.length === 0) return null
  return (
    <section aria-labelledby="activity" className="min-w-0">
      <SectionTitle id="activity">Lately</SectionTitle>
      <ul className="grid">
        {rows.map((row) => (
          <li key={row.id} className="flex min-w-0 items-center gap-3 px-2 py-1 text-text-2">
            {row.actor_type === 'agent' ? (
              <AgentAvatar name={row.actor_name ?? 'Agent'} emoji={emojiOf({ meta: row.actor_meta })} decorative />
            ) : (
              <PersonAvatar name={row.actor_name ?? '?'} decorative />
            )}
            <span className="min-w-0 flex-1 truncate">
              <span className="font-medium text-text-1">{row.actor_name ?? 'Somebody'}</span> {sentence(row)}
            </span>
            <RelativeTime at={row.occurred_at} className="shrink-0 text-xs text-text-3" />
          </li>
        ))}
      </ul>
    </section>
  )
}

function sentence(row: AuditRow): ReactNode {
  const what = auditSentence(row)
  return row.task_id ? (
    <Link to="/tasks/$taskId" params={{ taskId: row.task_id }} className="hover:text-text-1">
      {what}
    </Link>
  ) : (
    what
  )
}

function SectionTitle({ id, count, children }: { id: string; count?: number; children: ReactNode }) {
  return (
    <h3 id={id} className="section-title mb-1 flex items-center gap-2">
      {children}
      {count ? <span className="nums text-xs font-normal text-text-3">{count}</span> : null}
    </h3>
  )
}
