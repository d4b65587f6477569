/** One agent: what it does and why not, what it was asked, what it did, what its files say. */
import { useNavigate } from '@tanstack/react-router'
import { ArrowRightLeft, EllipsisVertical, Pause, Play, RefreshCw, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { newId, useRow, useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { AgentAvatar } from '../../ui/avatar.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Menu } from '../../ui/menu.tsx'
import { useNow } from '../../ui/relative-time.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { COMMAND_TABLES, COMMANDS_SQL, type CommandRow } from '../commands/command-query.ts'
import { CommandTable } from '../commands/commands-page.tsx'
import { MoveAgentDialog } from '../gateways/move-agent-dialog.tsx'
import { AgentActivity } from './agent-activity.tsx'
import { AgentFiles } from './agent-files.tsx'
import { AgentOverview } from './agent-overview.tsx'
import { AgentPersonality } from './agent-personality.tsx'
import { AgentPolicy } from './agent-policy.tsx'
import { AGENT_TABLES, AGENTS_SQL, type AgentRow, emojiOf } from './agent-query.ts'
import { AgentRuns } from './agent-runs.tsx'
import { AgentSecrets } from './agent-secrets.tsx'
import { agentState } from './agent-state.ts'

export const AGENT_TABS = [
  'overview',
  'personality',
  'files',
  'secrets',
  'runs',
  'permissions',
  'activity',
  'commands',
] as const
export type AgentTab = (typeof AGENT_TABS)[number]

export function AgentPage({ slug, tab, runId }: { slug: string; tab: AgentTab; runId: string | undefined }) {
  const { row: agent, ready } = useRow<AgentRow>(
    `${AGENTS_SQL} where a.slug = $1 order by a.deleted_at nulls first limit 1`,
    [slug],
    { tables: AGENT_TABLES },
  )
  const navigate = useNavigate()
  if (!agent)
    return (
      <Page title="Agents">
        {ready && (
          <EmptyState drawing="agents" title={`There is no agent @${slug} here`}>
            It may have been removed, or it was made on another device that has not been in touch yet.
          </EmptyState>
        )}
      </Page>
    )
  return (
    <Page title={agent.name} crumbs={[{ label: 'Agents', to: '/agents' }]} actions={<AgentActions agent={agent} />}>
      <Header agent={agent} />
      <Tabs
        label="Agent"
        className="px-4"
        value={tab}
        onValueChange={(next) =>
          void navigate({
            to: '/agents/$slug',
            params: { slug },
            search: next === 'overview' ? {} : { tab: next },
            replace: true,
          })
        }
        tabs={[
          { value: 'overview', label: 'Overview' },
          { value: 'personality', label: 'Personality' },
          { value: 'files', label: 'Files' },
          { value: 'secrets', label: 'Secrets' },
          { value: 'runs', label: 'Runs' },
          { value: 'permissions', label: 'Permissions' },
          { value: 'activity', label: 'Activity' },
          { value: 'commands', label: 'Commands' },
        ]}
      >
        <div className="py-4">
          {tab === 'overview' && <AgentOverview agent={agent} />}
          {tab === 'personality' && <AgentPersonality agent={agent} />}
          {tab === 'permissions' && <AgentPolicy agent={agent} />}
          {tab === 'runs' && <AgentRuns agent={agent} runId={runId} />}
          {tab === 'commands' && <AgentCommands agentId={agent.id} />}
          {tab === 'files' && <AgentFiles agent={agent} />}
          {tab === 'secrets' && <AgentSecrets agent={agent} />}
          {tab === 'activity' && <AgentActivity agentId={agent.id} />}
        </div>
      </Tabs>
    </Page>
  )
}

function Header({ agent }: { agent: AgentRow }) {
  const state = agentState(agent, useNow())
  return (
    <header className="flex flex-wrap items-center gap-4 px-4 pt-5 pb-4">
      <AgentAvatar name={agent.name} emoji={emojiOf(agent)} size="xl" decorative />
      <div className="min-w-0 flex-1 basis-60">
        <div className="flex flex-wrap items-baseline gap-x-2">
          <h2 className="title">{agent.name}</h2>
          <span className="font-mono text-xs text-text-3">@{agent.slug}</span>
          {agent.deleted_at && <Badge meaning="neutral">Removed</Badge>}
          {agent.run_demo && <Badge meaning="warning">Demo model</Badge>}
        </div>
        {agent.description && <p className="text-text-2">{agent.description}</p>}
      </div>
      {!agent.deleted_at && (
        <p aria-live="polite" className="min-w-0 max-w-full">
          <Status meaning={state.meaning} shape={state.shape} label={state.label} detail={state.detail} />
        </p>
      )}
    </header>
  )
}

/** Pause and resume at once; reload and remove by command. */
function AgentActions({ agent }: { agent: AgentRow }) {
  const write = useWrite()
  const { principal, canWrite } = useSession()
  const [asking, setAsking] = useState(false)
  const [moving, setMoving] = useState(false)
  if (!canWrite || agent.deleted_at) return null
  const paused = agent.pause_requested_at !== null
  const pause = () =>
    write([
      paused
        ? { sql: 'update agents set pause_requested_at = null, paused_by = null where id = $1', params: [agent.id] }
        : {
            sql: 'update agents set pause_requested_at = now(), paused_by = $2 where id = $1',
            params: [agent.id, principal.person_id],
          },
    ])
  const command = (action: 'update' | 'remove') =>
    write([
      {
        sql: 'insert into agent_commands (id, tenant_id, gateway_id, agent_id, action, requested_by) values ($1, $2, $3, $4, $5, $6)',
        params: [newId(), agent.tenant_id, agent.gateway_id, agent.id, action, principal.person_id],
      },
    ])
  return (
    <>
      <Button icon={paused ? Play : Pause} onClick={() => void pause()}>
        {paused ? 'Resume' : 'Pause'}
      </Button>
      <Menu
        trigger={<IconButton label="More" icon={EllipsisVertical} />}
        align="end"
        items={[
          {
            kind: 'item',
            label: 'Reload files',
            icon: RefreshCw,
            onSelect: () => void command('update'),
            disabled: agent.gateway_id === null,
          },
          {
            kind: 'item',
            label: 'Move to another gateway…',
            icon: ArrowRightLeft,
            onSelect: () => setMoving(true),
            disabled: agent.removing || agent.gateway_id === null,
          },
          { kind: 'separator' },
          {
            kind: 'item',
            label: 'Remove…',
            icon: Trash2,
            danger: true,
            onSelect: () => setAsking(true),
            disabled: agent.removing || agent.gateway_id === null,
          },
        ]}
      />
      <MoveAgentDialog agent={agent} open={moving} onOpenChange={setMoving} />
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        title={`Remove ${agent.name}?`}
        confirm="Remove"
        danger
        onConfirm={() => void command('remove')}
      >
        Its gateway ends what it is doing and takes it off. Tasks and comments stay; its files are kept in the gateway's
        archive.
      </Confirm>
    </>
  )
}

function AgentCommands({ agentId }: { agentId: string }) {
  const { rows, ready } = useRows<CommandRow>(
    `${COMMANDS_SQL} where c.agent_id = $1 and c.deleted_at is null order by c.created_at desc, c.id desc limit 200`,
    [agentId],
    { tables: COMMAND_TABLES },
  )
  return <CommandTable rows={rows} ready={ready} />
}
