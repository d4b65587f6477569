/** A command as it happens: its steps, its output, and a way to stop it. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { Ban, RotateCcw } from 'lucide-react'
import { useMemo } from 'react'
import { newId, useRow, useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { LogView } from '../../ui/log-view.tsx'
import { Status } from '../../ui/status.tsx'
import { Steps } from '../../ui/steps.tsx'
import {
  COMMAND_STATUS,
  COMMAND_TABLES,
  COMMANDS_SQL,
  type CommandRow,
  isLive,
  linesOf,
  stepsOf,
} from './command-query.ts'

const OUTPUT =
  'select stream, text from command_output where command_id = $1 and deleted_at is null order by seq, id limit 500'

export function CommandProgress({ commandId, withLog = true }: { commandId: string; withLog?: boolean }) {
  const { row: command, ready } = useRow<CommandRow>(`${COMMANDS_SQL} where c.id = $1`, [commandId], {
    tables: COMMAND_TABLES,
  })
  const { rows: pieces } = useRows<Row<'command_output'>>(OUTPUT, [commandId], { tables: ['command_output'] })
  const lines = useMemo(() => linesOf(pieces), [pieces])
  if (!command) return ready ? <p className="text-text-3">This command is not on this device.</p> : null
  const status = COMMAND_STATUS[command.status]
  const steps = stepsOf(command)
  return (
    <div className="grid gap-4">
      <div className="flex flex-wrap items-center gap-3">
        <span aria-live="polite">
          <Status meaning={status.meaning} shape={status.shape} label={status.label} detail={waitsFor(command)} />
        </span>
        <span className="ml-auto">
          <CommandActions command={command} />
        </span>
      </div>
      {command.error_message && (
        <Banner meaning="danger" title={command.status === 'dead_letter' ? 'Given up' : 'It did not work'}>
          {command.error_message}
        </Banner>
      )}
      {steps.length > 0 && <Steps label="Steps" steps={steps} />}
      {withLog && (lines.length > 0 || command.status === 'running') && (
        <LogView label="Output" lines={lines} live={isLive(command)} className="h-52" />
      )}
    </div>
  )
}

const waitsFor = (command: CommandRow): string | undefined =>
  command.cancel_requested_at && isLive(command)
    ? 'being cancelled'
    : command.status === 'pending'
      ? `for gateway “${command.gateway_label ?? '?'}”`
      : undefined

/** Cancel what runs; run again what did not work. */
export function CommandActions({ command }: { command: CommandRow }) {
  const write = useWrite()
  const { principal, canWrite } = useSession()
  if (!canWrite) return null
  const cancel = () =>
    write([{ sql: 'update agent_commands set cancel_requested_at = now() where id = $1', params: [command.id] }])
  const again = () =>
    write([
      {
        sql: `insert into agent_commands (id, tenant_id, gateway_id, agent_id, action, payload, requested_by)
              select $1, tenant_id, gateway_id, agent_id, action, payload, $2 from agent_commands where id = $3`,
        params: [newId(), principal.person_id, command.id],
      },
    ])
  if (isLive(command) && !command.cancel_requested_at)
    return (
      <Button size="sm" icon={Ban} onClick={() => void cancel()}>
        Cancel
      </Button>
    )
  if (['failed', 'dead_letter', 'cancelled'].includes(command.status))
    return (
      <Button size="sm" icon={RotateCcw} onClick={() => void again()}>
        Run again
      </Button>
    )
  return null
}
