/** What was done with an agent, and by it, as the audit log has it. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { useRows } from '../../replica/hooks.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { auditSentence } from '../home/attention.ts'

type Entry = Row<'audit_log'> & { readonly person_name: string | null; readonly agent_name: string | null }

const LOG = `select l.*, p.name as person_name, a.name as agent_name from audit_log l
  left join people p on p.id = l.actor_id left join agents a on a.id = l.actor_id
  where l.entity_id = $1 or l.actor_id = $1 order by l.occurred_at desc, l.id desc limit 200`

export function AgentActivity({ agentId }: { agentId: string }) {
  const { rows, ready } = useRows<Entry>(LOG, [agentId], { tables: ['audit_log', 'people', 'agents'] })
  if (ready && rows.length === 0)
    return (
      <EmptyState drawing="commands" title="Nothing is recorded yet">
        Who changes this agent, and what it changes itself, is kept here.
      </EmptyState>
    )
  return (
    <ul aria-label="Activity" className="divide-y divide-line border-y border-line">
      {rows.map((entry) => (
        <li key={entry.id} className="flex min-h-9 min-w-0 flex-wrap items-center gap-x-3 gap-y-0.5 px-2 py-1.5">
          <span className="min-w-0 flex-1 basis-60 [overflow-wrap:anywhere]">
            <span className="font-medium">{entry.person_name ?? entry.agent_name ?? 'HQ'}</span>{' '}
            <span className="text-text-2">{whatWasDone(entry)}</span>
          </span>
          <RelativeTime at={entry.occurred_at} className="text-xs text-text-3" />
        </li>
      ))}
    </ul>
  )
}

/** "changed the agent “Wanda” (model, thinking)", "moved the task “Brief” (to done)". */
function whatWasDone(entry: Entry): string {
  const { action, changes } = entry
  const status = changes['status']
  if (action === 'status_changed' && Array.isArray(status))
    return `${auditSentence(entry)} (to ${String(status[1]).replaceAll('_', ' ')})`
  const columns = action === 'updated' ? Object.keys(changes).map((name) => name.replaceAll('_', ' ')) : []
  return auditSentence(entry) + (columns.length > 0 ? ` (${columns.join(', ')})` : '')
}
