/** What HQ runs in Docker on a gateway, as it was when somebody last looked: use, limits, logs, start and stop. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { Play, RefreshCw, RotateCcw, ScrollText, Square } from 'lucide-react'
import { useState } from 'react'
import { newId, useRow, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { CommandProgress } from '../commands/command-progress.tsx'
import { type ContainerFacts, containersIn, usageOf } from './containers.ts'
import type { Gateway } from './gateway-card.tsx'

type Command = Pick<Row<'agent_commands'>, 'id' | 'status' | 'result' | 'error_message' | 'completed_at'>

const LAST = `select id, status, result, error_message, completed_at from agent_commands
  where gateway_id = $1 and action = 'container_list' and deleted_at is null order by created_at desc, id desc limit 1`
/** What was last known stays while somebody looks again. */
const KNOWN = `select id, status, result, error_message, completed_at from agent_commands
  where gateway_id = $1 and action = 'container_list' and status = 'done' and deleted_at is null order by created_at desc, id desc limit 1`
const LATER = `select id, status, result, error_message, completed_at from agent_commands
  where gateway_id = $1 and action = 'container_action' and deleted_at is null order by created_at desc, id desc limit 1`

export function GatewayContainers({ gateway }: { gateway: Gateway }) {
  const write = useWrite()
  const { principal, canWrite, isAdmin } = useSession()
  const { row: last } = useRow<Command>(LAST, [gateway.id], { tables: ['agent_commands'] })
  const { row: known } = useRow<Command>(KNOWN, [gateway.id], { tables: ['agent_commands'] })
  const { row: deed } = useRow<Command>(LATER, [gateway.id], { tables: ['agent_commands'] })
  const [logs, setLogs] = useState<{ command: string; name: string }>()
  const containers = containersIn(
    known?.result,
    deed?.status === 'done' ? deed : undefined,
    known?.completed_at ?? null,
  )
  const looking = last !== undefined && ['pending', 'leased', 'running'].includes(last.status)
  const failed = last?.status === 'failed' || last?.status === 'dead_letter' ? last : undefined
  const ask = (action: 'container_list' | 'container_logs' | 'container_action', payload: object): string => {
    const id = newId()
    void write([
      {
        sql: 'insert into agent_commands (id, tenant_id, gateway_id, action, payload, requested_by) values ($1, $2, $3, $4, $5::jsonb, $6)',
        params: [id, gateway.tenant_id, gateway.id, action, JSON.stringify(payload), principal.person_id],
      },
    ])
    return id
  }
  return (
    <section aria-labelledby="gateway-containers" className="grid grid-cols-1 gap-3">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h2 id="gateway-containers" className="section-title flex-1">
          Containers
        </h2>
        {known?.completed_at && (
          <span className="nums text-xs text-text-3">
            seen <RelativeTime at={known.completed_at} words />
          </span>
        )}
        {canWrite && (
          <Button size="sm" icon={RefreshCw} disabled={looking} onClick={() => ask('container_list', {})}>
            {looking ? 'Looking' : known || failed ? 'Look again' : 'Look'}
          </Button>
        )}
      </div>
      {failed && (
        <Banner meaning="waiting" title="No containers to be seen">
          {failed.error_message}
        </Banner>
      )}
      {!failed && known && containers.length === 0 && (
        <p className="text-text-3">HQ runs nothing in Docker on this machine.</p>
      )}
      {!failed && !known && <p className="text-text-3">Nobody has looked yet what runs in Docker there.</p>}
      <ul className="grid grid-cols-1 overflow-hidden rounded-card border border-line empty:hidden">
        {!failed &&
          containers.map((container) => (
            <li
              key={container.id}
              className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1 border-t border-line px-3 py-2 first:border-t-0"
            >
              <span className="min-w-0 flex-1 basis-48">
                <span className="font-medium [overflow-wrap:anywhere]">{container.name}</span>{' '}
                <span className="text-text-3 [overflow-wrap:anywhere]">{container.image}</span>
                <span className="nums block text-xs text-text-3">{usageOf(container)}</span>
              </span>
              <Status
                meaning={container.state === 'running' ? 'good' : 'neutral'}
                shape={container.state === 'running' ? 'check' : 'off'}
                label={
                  container.state === 'running' ? 'Running' : `Stopped (${container.exit_code ?? container.state})`
                }
              />
              <Deeds
                container={container}
                canAct={isAdmin}
                canRead={canWrite}
                onLogs={() =>
                  setLogs({
                    command: ask('container_logs', { id: container.id, lines: 200 }),
                    name: container.name,
                  })
                }
                onAct={(action) => ask('container_action', { id: container.id, action })}
              />
            </li>
          ))}
      </ul>
      {deed && ['pending', 'leased', 'running', 'failed'].includes(deed.status) && (
        <div className="rounded-card border border-line p-4">
          <CommandProgress commandId={deed.id} withLog={false} />
        </div>
      )}
      {logs && (
        <div className="grid gap-2 rounded-card border border-line p-4">
          <div className="flex items-center gap-3">
            <h3 className="flex-1 font-medium">Log of {logs.name}</h3>
            <Button size="sm" onClick={() => setLogs(undefined)}>
              Close
            </Button>
          </div>
          <CommandProgress commandId={logs.command} />
        </div>
      )}
    </section>
  )
}

type DeedsProps = {
  container: ContainerFacts
  canAct: boolean
  canRead: boolean
  onLogs: () => void
  onAct: (action: 'start' | 'stop' | 'restart') => void
}

function Deeds({ container, canAct, canRead, onLogs, onAct }: DeedsProps) {
  const { name, state } = container
  return (
    <span className="flex gap-1">
      {canRead && <IconButton size="sm" icon={ScrollText} label={`Log of ${name}`} onClick={onLogs} />}
      {canAct && state === 'running' && (
        <>
          <IconButton size="sm" icon={RotateCcw} label={`Restart ${name}`} onClick={() => onAct('restart')} />
          <IconButton size="sm" icon={Square} label={`Stop ${name}`} onClick={() => onAct('stop')} />
        </>
      )}
      {canAct && state !== 'running' && (
        <IconButton size="sm" icon={Play} label={`Start ${name}`} onClick={() => onAct('start')} />
      )}
    </span>
  )
}
