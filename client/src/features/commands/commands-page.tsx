/** Command history: what gateways were asked to do, by whom, and what came of it. */
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useRows } from '../../replica/hooks.ts'
import { AgentAvatar } from '../../ui/avatar.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Sheet } from '../../ui/sheet.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { Status } from '../../ui/status.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { emojiOf } from '../agents/agent-query.ts'
import { MarkOf } from '../sync/row-mark.tsx'
import { CommandProgress } from './command-progress.tsx'
import { actionName, COMMAND_STATUS, COMMAND_TABLES, COMMANDS_SQL, type CommandRow } from './command-query.ts'

const HISTORY = `${COMMANDS_SQL} where c.deleted_at is null order by c.created_at desc, c.id desc limit 200`

export function CommandsPage() {
  const { rows, ready } = useRows<CommandRow>(HISTORY, [], { tables: COMMAND_TABLES })
  return (
    <Page title="Commands">
      <CommandTable rows={rows} ready={ready} />
    </Page>
  )
}

const columns: readonly Column<CommandRow>[] = [
  {
    id: 'action',
    header: 'Command',
    cell: (row) => <span className="font-medium">{actionName(row.action)}</span>,
    mark: (row) => <MarkOf table="agent_commands" id={row.id} />,
  },
  {
    id: 'agent',
    header: 'Agent',
    cell: (row) =>
      row.agent_name ? (
        <span className="flex min-w-0 items-center gap-2">
          <AgentAvatar name={row.agent_name} emoji={emojiOf({ meta: row.agent_meta })} decorative />
          <span className="truncate">{row.agent_name}</span>
        </span>
      ) : (
        <span className="text-text-3">—</span>
      ),
  },
  {
    id: 'status',
    header: 'Status',
    cell: (row) => {
      const status = COMMAND_STATUS[row.status]
      return (
        <Status
          meaning={status.meaning}
          shape={status.shape}
          label={status.label}
          detail={row.error_message ?? undefined}
        />
      )
    },
  },
  { id: 'gateway', header: 'Gateway', from: 'md', cell: (row) => row.gateway_label ?? '—' },
  { id: 'by', header: 'By', from: 'md', cell: (row) => row.person_name ?? 'an agent' },
  { id: 'at', header: 'When', align: 'right', width: '96px', cell: (row) => <RelativeTime at={row.created_at} /> },
]

/** The commands of one agent, or of all, with a sheet that shows one live. */
export function CommandTable({ rows, ready }: { rows: readonly CommandRow[]; ready: boolean }) {
  const [openId, setOpenId] = useState<string | null>(null)
  const open = rows.find(({ id }) => id === openId)
  return (
    <>
      <Table
        label="Commands"
        columns={columns}
        rows={rows}
        rowKey={({ id }) => id}
        onOpen={({ id }) => setOpenId(id)}
        empty={
          ready && (
            <EmptyState drawing="commands" title="Nothing has been asked of a gateway yet">
              Creating an agent, reloading its files or removing it are commands. Each is kept here with its steps and
              its output.
            </EmptyState>
          )
        }
      />
      <Sheet
        open={open !== undefined}
        onOpenChange={(next) => !next && setOpenId(null)}
        title={open ? `${actionName(open.action)}${open.agent_name ? ` ${open.agent_name}` : ''}` : ''}
      >
        {open && (
          <div className="grid gap-4 p-4">
            <CommandProgress commandId={open.id} />
            <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-xs text-text-2">
              <dt className="text-text-3">Asked</dt>
              <dd>
                <RelativeTime at={open.created_at} words /> by {open.person_name ?? 'an agent'}
              </dd>
              <dt className="text-text-3">Attempts</dt>
              <dd className="nums">
                {open.attempt_count} of {open.max_attempts}
              </dd>
              {open.agent_slug && (
                <>
                  <dt className="text-text-3">Agent</dt>
                  <dd>
                    <Link to="/agents/$slug" params={{ slug: open.agent_slug }} className="link">
                      @{open.agent_slug}
                    </Link>
                  </dd>
                </>
              )}
            </dl>
          </div>
        )}
      </Sheet>
    </>
  )
}
