import { Plus } from 'lucide-react'
import { useState } from 'react'
import { useRows, useSession } from '../../replica/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { useShortcuts } from '../../ui/keyboard.ts'
import { Page } from '../../ui/shell/page.tsx'
import { AgentCard } from './agent-card.tsx'
import { AGENT_TABLES, AGENTS_SQL, type AgentRow } from './agent-query.ts'
import { NewAgentDialog } from './new-agent-dialog.tsx'

const LIST = `${AGENTS_SQL} where a.deleted_at is null order by a.name, a.id limit 200`

/** The fleet. */
export function AgentsPage({ wizardOpen }: { wizardOpen: boolean }) {
  const { canWrite } = useSession()
  const { rows, ready } = useRows<AgentRow>(LIST, [], { tables: AGENT_TABLES })
  const [open, setOpen] = useState(wizardOpen)
  useShortcuts([{ keys: 'c', label: 'New agent', group: 'Agents', run: () => setOpen(true), when: () => canWrite }])

  const create = canWrite && (
    <Button variant="primary" icon={Plus} onClick={() => setOpen(true)}>
      New agent
    </Button>
  )
  return (
    <Page title="Agents" actions={create}>
      {ready && rows.length === 0 ? (
        <EmptyState drawing="agents" title="No agents yet" action={create || undefined}>
          An agent is a colleague with a role, a memory of its own and files you can read. Pick a template, give it a
          name, and assign it a task.
        </EmptyState>
      ) : (
        <ul aria-label="Agents" className="grid grid-cols-[repeat(auto-fill,minmax(min(100%,300px),1fr))] gap-3 p-4">
          {rows.map((agent) => (
            <li key={agent.id} className="grid">
              <AgentCard agent={agent} />
            </li>
          ))}
        </ul>
      )}
      <NewAgentDialog open={open} onOpenChange={setOpen} />
    </Page>
  )
}
