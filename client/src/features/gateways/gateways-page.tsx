/** Gateways: the machines that run agents; heard of or not, with what, and what is wrong. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { Pause, Play } from 'lucide-react'
import { useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { Status } from '../../ui/status.tsx'
import { isSilent } from '../agents/agent-state.ts'
import { MarkOf } from '../sync/row-mark.tsx'

type Gateway = Row<'gateways'> & { readonly agents: number; readonly waiting: number }

const SQL = `select g.*,
    (select count(*)::int from agents a where a.gateway_id = g.id and a.deleted_at is null) as agents,
    (select count(*)::int from agent_commands c where c.gateway_id = g.id and c.status in ('pending', 'leased', 'running'))
      + (select count(*)::int from agent_inbox_items i where i.gateway_id = g.id and i.status in ('pending', 'leased')) as waiting
  from gateways g where g.deleted_at is null order by g.label limit 100`

/** What a gateway says of itself; anything may be missing from an older one. */
interface Meta {
  version?: string
  hostname?: string
  os?: string
  git?: string | null
  memory_mb?: number
  disk_free_mb?: number
  models?: { provider: string; model: string; demo: boolean }[]
  problems?: { code: string; message: string }[]
}

export function GatewaysPage() {
  const { rows, ready } = useRows<Gateway>(SQL, [], {
    tables: ['gateways', 'agents', 'agent_commands', 'agent_inbox_items'],
  })
  return (
    <Page title="Gateways">
      {ready && rows.length === 0 ? (
        <EmptyState drawing="gateways" title="No gateway yet">
          A gateway is a machine that runs agents. “npm start” brings one along, and it appears here by itself.
        </EmptyState>
      ) : (
        <ul className="mx-auto grid w-full max-w-[860px] gap-3 p-4">
          {rows.map((gateway) => (
            <li key={gateway.id}>
              <GatewayCard gateway={gateway} />
            </li>
          ))}
        </ul>
      )}
    </Page>
  )
}

function GatewayCard({ gateway }: { gateway: Gateway }) {
  const { isAdmin } = useSession()
  const write = useWrite()
  const now = useNow()
  const meta = gateway.meta as Meta
  const silent = isSilent(gateway.last_seen_at, now)
  const pausing = gateway.pause_requested_at !== null
  const toggle = () =>
    write([
      pausing
        ? { sql: 'update gateways set pause_requested_at = null where id = $1', params: [gateway.id] }
        : { sql: 'update gateways set pause_requested_at = now() where id = $1', params: [gateway.id] },
    ])
  return (
    <article className="grid gap-3 rounded-card border border-line bg-surface-1 p-4">
      <header className="flex flex-wrap items-center gap-3">
        <h2 className="text-lg font-semibold">{gateway.label}</h2>
        <MarkOf table="gateways" id={gateway.id} />
        {silent ? (
          <Status meaning="waiting" shape="off" label="Silent" />
        ) : pausing ? (
          <Status meaning="neutral" shape="pause" label="Paused" />
        ) : gateway.status === 'error' ? (
          <Status meaning="danger" label="Error" />
        ) : (
          <Status meaning="good" label="Online" />
        )}
        <span className="text-xs text-text-3">
          {gateway.last_seen_at ? (
            <>
              last heard <RelativeTime at={gateway.last_seen_at} words />
            </>
          ) : (
            'not heard of yet'
          )}
        </span>
        {isAdmin && (
          <Button size="sm" className="ml-auto" icon={pausing ? Play : Pause} onClick={() => void toggle()}>
            {pausing ? 'Resume' : 'Pause'}
          </Button>
        )}
      </header>
      {meta.problems?.map(({ code, message }) => (
        <Banner key={code} meaning="warning" title="Something is wrong there">
          {message}
        </Banner>
      ))}
      <p className="nums flex flex-wrap gap-x-4 gap-y-1 text-text-2">
        <span>{gateway.agents} agents</span>
        <span>{gateway.waiting} waiting</span>
        {meta.hostname && <span>{meta.hostname}</span>}
        {meta.os && <span>{meta.os}</span>}
        {meta.git && <span>git {meta.git}</span>}
        {meta.memory_mb !== undefined && <span>{(meta.memory_mb / 1024).toFixed(0)} GB memory</span>}
        {meta.disk_free_mb !== undefined && <span>{(meta.disk_free_mb / 1024).toFixed(0)} GB free</span>}
        {meta.version && <span>HQ {meta.version}</span>}
      </p>
      <p className="flex flex-wrap gap-1.5">
        {meta.models?.map(({ provider, model, demo }) => (
          <Badge key={`${provider}/${model}`} meaning={demo ? 'warning' : undefined}>
            {demo ? 'Demo model' : `${provider}/${model}`}
          </Badge>
        ))}
      </p>
    </article>
  )
}
