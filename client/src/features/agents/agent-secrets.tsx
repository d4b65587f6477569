import { SecretsList } from '../secrets/secrets-list.tsx'
import type { AgentRow } from './agent-query.ts'

/** Its own secrets and those of its gateway, which it has too. */
export function AgentSecrets({ agent }: { agent: AgentRow }) {
  return (
    <div className="max-w-[860px]">
      <SecretsList agent={agent} />
    </div>
  )
}
