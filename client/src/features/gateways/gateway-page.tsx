/** One gateway: how it is, what runs there, what waits and why, what it was asked to do. */
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useRow, useRows, useSession } from '../../replica/hooks.ts'
import { AgentAvatar } from '../../ui/avatar.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { Status } from '../../ui/status.tsx'
import { AGENT_TABLES, AGENTS_SQL, type AgentRow, emojiOf } from '../agents/agent-query.ts'
import { agentState } from '../agents/agent-state.ts'
import { COMMAND_TABLES, COMMANDS_SQL, type CommandRow } from '../commands/command-query.ts'
import { CommandTable } from '../commands/commands-page.tsx'
import { MarkOf } from '../sync/row-mark.tsx'
import { GATEWAY_BY_SLUG, GATEWAY_TABLES, type Gateway, GatewayActions } from './gateway-card.tsx'
import { GatewayContainers } from './gateway-containers.tsx'
import { factsOf, type GatewayMeta } from './gateway-meta.ts'
import { GatewayQueue } from './gateway-queue.tsx'
import { GatewayRuntimes } from './gateway-runtimes.tsx'
import { gatewayState } from './gateway-state.ts'
import { MoveAgentDialog } from './move-agent-dialog.tsx'

export function GatewayPage({ slug }: { slug: string }) {
  const { row: gateway, ready } = useRow<Gateway>(GATEWAY_BY_SLUG, [slug], { tables: GATEWAY_TABLES })
  const crumbs = [{ label: 'Gateways', to: '/gateways' }] as const
  if (!gateway)
    return (
      <Page title="Gateways" crumbs={[]}>
        {ready && (
          <EmptyState drawing="gateways" title={`There is no gateway “${slug}” here`}>
            It was retired, or it has registered on another device’s watch and has not arrived on this one yet.
          </EmptyState>
        )}
      </Page>
    )
  return (
    <Page title={gateway.label} crumbs={crumbs} actions={<GatewayActions gateway={gateway} />}>
      <div className="mx-auto grid w-full max-w-[980px] grid-cols-1 gap-8 px-4 py-5">
        <Head gateway={gateway} />
        <GatewayRuntimes gateway={gateway} />
        <Agents gatewayId={gateway.id} />
        <GatewayQueue gateway={gateway} />
        <GatewayContainers gateway={gateway} />
        <History gatewayId={gateway.id} />
      </div>
    </Page>
  )
}

function Head({ gateway }: { gateway: Gateway }) {
  const state = gatewayState(gateway, useNow())
  const meta = gateway.meta as GatewayMeta
  return (
    <section aria-label="How it is" className="grid grid-cols-1 gap-4">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h2 className="title min-w-0 [overflow-wrap:anywhere]">{gateway.label}</h2>
        <MarkOf table="gateways" id={gateway.id} />
        <span className="font-mono text-xs text-text-3">{gateway.slug}</span>
        <span aria-live="polite">
          <Status meaning={state.meaning} {...(state.shape && { shape: state.shape })} label={state.label} />
        </span>
        <span className="nums text-xs text-text-3">
          {gateway.last_seen_at ? (
            <>
              last heard <RelativeTime at={gateway.last_seen_at} words />
            </>
          ) : (
            <>
              registered <RelativeTime at={gateway.created_at} words />
            </>
          )}
          {gateway.started_at && state.key !== 'silent' && (
            <>
              , started <RelativeTime at={gateway.started_at} words />
            </>
          )}
        </span>
      </div>
      {state.key === 'silent' && (
        <Banner meaning="waiting" title="Not heard of lately">
          Its machine is off, or has no way to the server. What you ask of it is kept and done when it is back; what it
          does meanwhile comes with it.
        </Banner>
      )}
      {state.key === 'paused' && <Draining gatewayId={gateway.id} />}
      {meta.problems?.map(({ code, message }) => (
        <Banner key={code} meaning="warning" title="Something is wrong there">
          {message}
        </Banner>
      ))}
      <dl className="grid grid-cols-2 gap-x-6 gap-y-3 rounded-card border border-line bg-surface-1 p-4 sm:grid-cols-4">
        {factsOf(meta).map(({ name, value, low }) => (
          <div key={name} className="min-w-0">
            <dt className="text-xs text-text-3">{name}</dt>
            <dd className="nums break-words">
              {value}
              {low && <Badge meaning="warning">low</Badge>}
            </dd>
          </div>
        ))}
        <div className="min-w-0">
          <dt className="text-xs text-text-3">Synced</dt>
          <dd className="nums">{gateway.synced_at ? <RelativeTime at={gateway.synced_at} words /> : 'never'}</dd>
        </div>
      </dl>
    </section>
  )
}

/** A paused gateway lets come to an end what runs, and says when nothing does any more. */
function Draining({ gatewayId }: { gatewayId: string }) {
  const { row } = useRow<{ runs: number; commands: number }>(
    `select (select count(*)::int from agent_runs where gateway_id = $1 and status = 'running') as runs,
       (select count(*)::int from agent_commands where gateway_id = $1 and status in ('leased', 'running') and deleted_at is null) as commands`,
    [gatewayId],
    { tables: ['agent_runs', 'agent_commands'] },
  )
  const running = (row?.runs ?? 0) + (row?.commands ?? 0)
  if (running === 0)
    return (
      <Banner meaning="waiting" title="Paused: nothing runs here">
        It begins nothing new; what is assigned to its agents waits. It can be stopped or retired without cutting
        anything off.
      </Banner>
    )
  return (
    <Banner meaning="waiting" title={`Draining: ${running} still at work`}>
      It begins nothing new. What its agents are just doing comes to an end; what is assigned to them waits.
    </Banner>
  )
}

function Agents({ gatewayId }: { gatewayId: string }) {
  const { rows, ready } = useRows<AgentRow>(
    `${AGENTS_SQL} where a.gateway_id = $1 and a.deleted_at is null order by a.name limit 200`,
    [gatewayId],
    { tables: AGENT_TABLES },
  )
  const now = useNow()
  const { canWrite } = useSession()
  const [moving, setMoving] = useState<AgentRow>()
  return (
    <section aria-labelledby="gateway-agents" className="grid grid-cols-1 gap-3">
      <h2 id="gateway-agents" className="section-title">
        Agents <span className="nums ml-1 font-normal text-text-3">{rows.length}</span>
      </h2>
      {ready && rows.length === 0 && <p className="text-text-3">No agent lives here yet.</p>}
      <ul className="grid grid-cols-1 overflow-hidden rounded-card border border-line empty:hidden">
        {rows.map((agent) => {
          const state = agentState(agent, now)
          return (
            <li
              key={agent.id}
              className="flex items-center border-t border-line pr-2 first:border-t-0 hover:bg-surface-2"
            >
              <Link
                to="/agents/$slug"
                params={{ slug: agent.slug }}
                className="flex min-w-0 flex-1 flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2"
              >
                <AgentAvatar name={agent.name} emoji={emojiOf(agent)} decorative />
                <span className="min-w-0 flex-1 basis-40 truncate font-medium">{agent.name}</span>
                {agent.runtime === 'openclaw' && <Badge>OpenClaw</Badge>}
                <Status meaning={state.meaning} shape={state.shape} label={state.label} detail={state.detail} />
              </Link>
              {canWrite && (
                <Button size="sm" variant="ghost" aria-label={`Move ${agent.name}`} onClick={() => setMoving(agent)}>
                  Move…
                </Button>
              )}
            </li>
          )
        })}
      </ul>
      {moving && (
        <MoveAgentDialog agent={moving} open onOpenChange={(open) => (open ? undefined : setMoving(undefined))} />
      )}
    </section>
  )
}

function History({ gatewayId }: { gatewayId: string }) {
  const { rows, ready } = useRows<CommandRow>(
    `${COMMANDS_SQL} where c.gateway_id = $1 and c.deleted_at is null order by c.created_at desc, c.id desc limit 50`,
    [gatewayId],
    { tables: COMMAND_TABLES },
  )
  return (
    <section aria-labelledby="gateway-commands" className="grid grid-cols-1 gap-3">
      <h2 id="gateway-commands" className="section-title">
        Last commands
      </h2>
      <CommandTable rows={rows} ready={ready} />
    </section>
  )
}
