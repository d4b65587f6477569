import { useSession } from '../../replica/hooks.ts'
import { ToolPolicySection } from '../approvals/tool-policy.tsx'
import type { AgentRow } from './agent-query.ts'

/** What the agent may use, after whose word. */
export function AgentPolicy({ agent }: { agent: AgentRow }) {
  const { isAdmin } = useSession()
  return (
    <div className="grid max-w-[560px] grid-cols-1 gap-4">
      <p className="text-text-2">
        {isAdmin
          ? 'What is to be asked first waits in Approvals until a person answers. It counts from the next use of a tool on.'
          : 'What is to be asked first waits in Approvals until a person answers. Owners and admins change this.'}
      </p>
      <ToolPolicySection agent={agent} />
    </div>
  )
}
