/** How an agent is set up: where it lives, what it thinks with. Members change it in place; it counts with the next run. */
import { ENUMS, type Enum } from '@hq/shared/schema/enums.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useRow, useSession, useWrite } from '../../replica/hooks.ts'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Select } from '../../ui/select.tsx'
import type { GatewayMeta } from '../gateways/gateway-meta.ts'
import { modelOptions, OWN_MODEL, runtimeOptions } from './agent-choices.ts'
import type { AgentRow } from './agent-query.ts'

const THINKING: Record<Enum<'thinking'>, string> = { none: 'Off', low: 'Low', medium: 'Medium', high: 'High' }

export function AgentSetup({ agent }: { agent: AgentRow }) {
  const { canWrite } = useSession()
  const { row: gateway } = useRow<Row<'gateways'>>('select * from gateways where id = $1 limit 1', [agent.gateway_id], {
    tables: ['gateways'],
  })
  const meta = (gateway?.meta ?? {}) as GatewayMeta
  const facts: [string, ReactNode][] = [
    [
      'Gateway',
      gateway ? (
        <Link key="gateway" to="/gateways/$slug" params={{ slug: gateway.slug }} className="link">
          {gateway.label}
        </Link>
      ) : (
        'none'
      ),
    ],
    ['Template', String(agent.meta['template'] ?? '—')],
    ['Domains', agent.domains.join(', ') || '—'],
    ['Created', <RelativeTime key="at" at={agent.created_at} words />],
  ]
  const editable = canWrite && !agent.deleted_at
  return (
    <section className="grid grid-cols-1 gap-3">
      <h3 className="section-title">Set-up</h3>
      {editable ? (
        <Choices agent={agent} meta={meta} />
      ) : (
        <p className="text-text-2">
          {agent.runtime === 'openclaw' ? 'OpenClaw' : 'Builtin'} · {agent.model ?? 'the gateway’s model'} · thinking{' '}
          {THINKING[agent.thinking].toLowerCase()}
        </p>
      )}
      <dl className="grid grid-cols-[84px_1fr] gap-y-1">
        {facts.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-text-3">{name}</dt>
            <dd className="min-w-0 truncate">{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

function Choices({ agent, meta }: { agent: AgentRow; meta: GatewayMeta }) {
  const write = useWrite()
  const set = (column: 'runtime' | 'model' | 'thinking', value: string | null) =>
    void write([{ sql: `update agents set ${column} = $2 where id = $1`, params: [agent.id, value] }])
  return (
    <div className="grid grid-cols-1 gap-3">
      <Select
        label="Runtime"
        value={agent.runtime}
        onValueChange={(value) => set('runtime', value)}
        options={runtimeOptions(meta, agent.runtime)}
      />
      <Select
        label="Model"
        value={agent.model ?? OWN_MODEL}
        onValueChange={(value) => set('model', value === OWN_MODEL ? null : value)}
        options={modelOptions(meta, agent.model)}
      />
      <Select
        label="Thinking"
        value={agent.thinking}
        onValueChange={(value) => set('thinking', value)}
        options={ENUMS.thinking.map((value) => ({ value, label: THINKING[value] }))}
      />
    </div>
  )
}
