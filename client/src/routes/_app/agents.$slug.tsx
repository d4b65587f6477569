import { createFileRoute } from '@tanstack/react-router'
import { AGENT_TABS, AgentPage, type AgentTab } from '../../features/agents/agent-page.tsx'

interface Search {
  tab?: AgentTab
  run?: string
}

const isTab = (value: unknown): value is AgentTab => AGENT_TABS.some((tab) => tab === value)

export const Route = createFileRoute('/_app/agents/$slug')({
  validateSearch: (search: Record<string, unknown>): Search => ({
    ...(isTab(search['tab']) ? { tab: search['tab'] } : {}),
    ...(typeof search['run'] === 'string' ? { run: search['run'] } : {}),
  }),
  component: Agent,
})

function Agent() {
  const { slug } = Route.useParams()
  const { tab = 'overview', run } = Route.useSearch()
  return <AgentPage slug={slug} tab={tab} runId={run} />
}
