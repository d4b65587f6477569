/** What can run agents on a gateway: what is there, what can be installed, and how an installation goes. */
import { Download, RotateCcw } from 'lucide-react'
import { newId, useRow, useSession, useWrite } from '../../replica/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Status } from '../../ui/status.tsx'
import { CommandProgress } from '../commands/command-progress.tsx'
import type { Gateway } from './gateway-card.tsx'
import { type GatewayMeta, type RuntimeFacts, runtimesOf } from './gateway-meta.ts'

/** The last installation, while it matters: it runs, or it did not work. */
const LAST = `select id, status from agent_commands
  where gateway_id = $1 and action = 'install_runtime' and deleted_at is null order by created_at desc, id desc limit 1`

export function GatewayRuntimes({ gateway }: { gateway: Gateway }) {
  const { row: last } = useRow<{ id: string; status: string }>(LAST, [gateway.id], { tables: ['agent_commands'] })
  const meta = gateway.meta as GatewayMeta
  const running = last !== undefined && ['pending', 'leased', 'running'].includes(last.status)
  return (
    <section aria-labelledby="gateway-runtimes" className="grid grid-cols-1 gap-3">
      <h2 id="gateway-runtimes" className="section-title">
        Runtimes
      </h2>
      <ul className="grid grid-cols-1 overflow-hidden rounded-card border border-line">
        {runtimesOf(meta).map((runtime) => (
          <li
            key={runtime.name}
            className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-2 border-t border-line px-3 py-2 first:border-t-0"
          >
            <span className="min-w-0 flex-1 basis-48">
              <span className="font-medium">{runtime.label}</span>{' '}
              <span className="nums text-text-3">{runtime.detail}</span>
            </span>
            <Status
              meaning={runtime.state === 'ready' ? 'good' : 'neutral'}
              shape={runtime.state === 'ready' ? 'check' : 'ring'}
              label={
                runtime.state === 'ready' ? 'Can be used' : runtime.state === 'missing' ? 'Not installed' : 'Unknown'
              }
            />
            <RuntimeActions gateway={gateway} runtime={runtime} busy={running} />
          </li>
        ))}
      </ul>
      {last !== undefined && last.status !== 'done' && last.status !== 'cancelled' && (
        <div className="rounded-card border border-line p-4">
          <CommandProgress commandId={last.id} />
        </div>
      )}
      {meta.models && meta.models.length > 0 && (
        <p className="flex flex-wrap items-center gap-1.5">
          <span className="text-xs text-text-3">Models</span>
          {meta.models.slice(0, 12).map(({ provider, model, demo }) => (
            <Badge key={`${provider}/${model}`} meaning={demo ? 'warning' : undefined}>
              {demo ? 'Demo model' : `${provider}/${model}`}
            </Badge>
          ))}
          {meta.models.length > 12 && <span className="text-xs text-text-3">and {meta.models.length - 12} more</span>}
        </p>
      )}
    </section>
  )
}

function RuntimeActions({ gateway, runtime, busy }: { gateway: Gateway; runtime: RuntimeFacts; busy: boolean }) {
  const write = useWrite()
  const { principal, isAdmin } = useSession()
  if (!runtime.installable) return null
  if (!isAdmin)
    return runtime.state === 'missing' ? <span className="text-xs text-text-3">An admin can install it.</span> : null
  const ask = (action: 'install_runtime' | 'restart_runtime') =>
    write([
      {
        sql: `insert into agent_commands (id, tenant_id, gateway_id, action, payload, requested_by) values ($1, $2, $3, $4, $5::jsonb, $6)`,
        params: [
          newId(),
          gateway.tenant_id,
          gateway.id,
          action,
          JSON.stringify({ runtime: runtime.name }),
          principal.person_id,
        ],
      },
    ])
  if (runtime.state === 'missing')
    return (
      <Button size="sm" icon={Download} disabled={busy} onClick={() => void ask('install_runtime')}>
        {busy ? 'Installing' : `Install ${runtime.label}`}
      </Button>
    )
  return (
    <Button
      size="sm"
      icon={RotateCcw}
      aria-label={`Restart ${runtime.label}`}
      onClick={() => void ask('restart_runtime')}
    >
      Restart
    </Button>
  )
}
