import { createFileRoute } from '@tanstack/react-router'
import { AgentsPage } from '../../features/agents/agents-page.tsx'

/** `?new=true` opens the wizard. */
export const Route = createFileRoute('/_app/agents/')({
  validateSearch: (search: Record<string, unknown>): { new?: boolean } => (search['new'] ? { new: true } : {}),
  component: Agents,
})

function Agents() {
  return <AgentsPage wizardOpen={Route.useSearch().new === true} />
}
