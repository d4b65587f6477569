/** One gateway: heard of or not, with what, what waits there, and what is wrong; pausing and retiring it. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { Link } from '@tanstack/react-router'
import { EllipsisVertical, Pause, Play, Power } from 'lucide-react'
import { useState } from 'react'
import { useSession, useSyncStatus, useWrite } from '../../replica/hooks.ts'
import { request } from '../../session/api.ts'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Menu } from '../../ui/menu.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { toast } from '../../ui/toast.tsx'
import { MarkOf } from '../sync/row-mark.tsx'
import type { GatewayMeta } from './gateway-meta.ts'
import { gatewayState } from './gateway-state.ts'
import { words } from './use-tokens.ts'

export type Gateway = Row<'gateways'> & {
  readonly agents: number
  readonly waiting: number
  readonly waiting_since: string | null
  /** When the server last heard of its replica. */
  readonly synced_at: string | null
}

const SELECT = `with queue as (
    select gateway_id, created_at from agent_commands where status in ('pending', 'leased', 'running')
    union all select gateway_id, created_at from agent_inbox_items where status in ('pending', 'leased'))
  select g.*,
    (select count(*)::int from agents a where a.gateway_id = g.id and a.deleted_at is null) as agents,
    (select count(*)::int from queue q where q.gateway_id = g.id) as waiting,
    (select min(created_at) from queue q where q.gateway_id = g.id) as waiting_since,
    (select max(r.last_seen_at) from replicas r where r.gateway_id = g.id and r.deleted_at is null) as synced_at
  from gateways g where g.deleted_at is null`

export const GATEWAYS = `${SELECT} order by g.label, g.id limit 100`
export const GATEWAY_BY_SLUG = `${SELECT} and g.slug = $1 limit 1`
export const GATEWAY_TABLES = ['gateways', 'agents', 'agent_commands', 'agent_inbox_items', 'replicas'] as const

const many = (count: number, one: string, more = `${one}s`): string => `${count} ${count === 1 ? one : more}`

export function GatewayCard({ gateway }: { gateway: Gateway }) {
  const state = gatewayState(gateway, useNow())
  const meta = gateway.meta as GatewayMeta
  return (
    <article
      aria-label={gateway.label}
      className="grid grid-cols-1 gap-3 rounded-card border border-line bg-surface-1 p-4"
    >
      <header className="flex items-center gap-3">
        <div className="flex min-w-0 flex-1 flex-wrap items-center gap-x-3 gap-y-1">
          <h2 className="min-w-0 text-lg font-semibold [overflow-wrap:anywhere]">
            <Link to="/gateways/$slug" params={{ slug: gateway.slug }} className="rounded-sm hover:underline">
              {gateway.label}
            </Link>
          </h2>
          <MarkOf table="gateways" id={gateway.id} />
          <Status meaning={state.meaning} {...(state.shape && { shape: state.shape })} label={state.label} />
          <span className="text-xs text-text-3">
            {gateway.last_seen_at ? (
              <>
                last heard <RelativeTime at={gateway.last_seen_at} words />
              </>
            ) : (
              <>
                registered <RelativeTime at={gateway.created_at} words />
              </>
            )}
          </span>
        </div>
        <GatewayActions gateway={gateway} />
      </header>
      {meta.problems?.map(({ code, message }) => (
        <Banner key={code} meaning="warning" title="Something is wrong there">
          {message}
        </Banner>
      ))}
      <p className="nums flex flex-wrap gap-x-4 gap-y-1 text-text-2">
        <span>{many(gateway.agents, 'agent')}</span>
        <span>
          {gateway.waiting === 0 ? 'Nothing waits' : `${gateway.waiting} waiting`}
          {gateway.waiting_since && (
            <>
              , oldest <RelativeTime at={gateway.waiting_since} words />
            </>
          )}
        </span>
        {gateway.started_at && state.key !== 'silent' && (
          <span>
            started <RelativeTime at={gateway.started_at} words />
          </span>
        )}
        {gateway.synced_at && (
          <span>
            synced <RelativeTime at={gateway.synced_at} words />
          </span>
        )}
      </p>
      {meta.hostname && (
        <p className="nums flex flex-wrap gap-x-4 gap-y-1 text-text-3">
          <span className="break-all">{meta.hostname}</span>
          {meta.os && <span>{meta.os}</span>}
          {meta.version && <span>HQ {meta.version}</span>}
          {meta.git && <span>git {meta.git}</span>}
          {meta.memory_mb !== undefined && <span>{(meta.memory_mb / 1024).toFixed(0)} GB memory</span>}
          {meta.disk_free_mb !== undefined && <span>{(meta.disk_free_mb / 1024).toFixed(0)} GB free</span>}
        </p>
      )}
      {meta.models && meta.models.length > 0 && (
        <p className="flex flex-wrap gap-1.5">
          {meta.models.map(({ provider, model, demo }) => (
            <Badge key={`${provider}/${model}`} meaning={demo ? 'warning' : undefined}>
              {demo ? 'Demo model' : `${provider}/${model}`}
            </Badge>
          ))}
        </p>
      )}
    </article>
  )
}

/** Pause, resume, retire: for admins. */
export function GatewayActions({ gateway }: { gateway: Gateway }) {
  const { isAdmin } = useSession()
  const write = useWrite()
  const online = useSyncStatus().connection === 'online'
  const [asking, setAsking] = useState(false)
  const pausing = gateway.pause_requested_at !== null
  if (!isAdmin) return null
  const toggle = () =>
    write([
      pausing
        ? { sql: 'update gateways set pause_requested_at = null where id = $1', params: [gateway.id] }
        : { sql: 'update gateways set pause_requested_at = now() where id = $1', params: [gateway.id] },
    ])
  const retire = async () => {
    try {
      // What the dialog has said and the person has agreed to.
      await request('DELETE', `/v1/gateways/${gateway.id}${gateway.agents > 0 ? '?agents=leave' : ''}`)
      toast({ title: `${gateway.label} was retired`, meaning: 'good' })
    } catch (error) {
      toast({ title: `${gateway.label} was not retired`, description: words(error), meaning: 'danger' })
    }
  }
  return (
    <div className="flex shrink-0 items-center gap-1.5 self-start">
      <Button
        size="sm"
        icon={pausing ? Play : Pause}
        aria-label={`${pausing ? 'Resume' : 'Pause'} ${gateway.label}`}
        onClick={() => void toggle()}
      >
        {pausing ? 'Resume' : 'Pause'}
      </Button>
      <Menu
        trigger={<IconButton label={`More about ${gateway.label}`} icon={EllipsisVertical} size="sm" />}
        align="end"
        items={[
          {
            kind: 'item',
            label: 'Retire…',
            icon: Power,
            danger: true,
            disabled: !online,
            ...(online ? {} : { hint: 'needs the server' }),
            onSelect: () => setAsking(true),
          },
        ]}
      />
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        title={`Retire ${gateway.label}?`}
        confirm={gateway.agents > 0 ? 'Retire anyway' : 'Retire'}
        danger
        onConfirm={() => void retire()}
      >
        The server lets it in no more, at once. This can’t be undone; its machine can be added as a new gateway. What it
        did stays.
        {gateway.agents > 0 &&
          ` ${many(gateway.agents, 'agent lives', 'agents live')} there. Move ${gateway.agents === 1 ? 'it' : 'them'} to another gateway first (on the gateway’s page) to take files along; otherwise ${gateway.agents === 1 ? 'it stops' : 'they stop'} until somebody moves ${gateway.agents === 1 ? 'it' : 'them'} without.`}
        {gateway.waiting > 0 &&
          ` ${many(gateway.waiting, 'thing that waits', 'things that wait')} there will be refused, and say${gateway.waiting === 1 ? 's' : ''} so.`}
      </Confirm>
    </div>
  )
}
