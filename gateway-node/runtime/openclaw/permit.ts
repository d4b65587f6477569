/**
 * Whether an agent may use one of OpenClaw's own tools, by the same policy as HQ's (`shared/domain/tool-policy.ts`): its file tools count as
 * `read_file` and `write_file`, its shell as `exec`, which also takes the machine's owner (`HQ_AGENT_EXEC=on`).
 *
 *  M1 The policy is read anew for each call. What is not known is not allowed.
 *  M2 A question stands for at most `ASK_MS`: longer OpenClaw would not wait for the hook that asks. Then the call is refused, and the agent is told so.
 */
import { parseToolPolicy, type ToolVerdict, verdictFor } from '@hq/shared/domain/tool-policy.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import { approvalsOf } from '../../approvals/approvals.ts'
import type { GatewayContext } from '../../service.ts'
import { isOn } from '../../switches.ts'

/** Below the 600 s that a hook may take at most. */
export const ASK_MS = 570_000
export const HOOK_MS = 600_000

const MEANS: Readonly<Record<string, string>> = {
  read: 'read_file',
  write: 'write_file',
  edit: 'write_file',
  apply_patch: 'write_file',
  exec: 'exec',
  process: 'exec',
}

/** What the policy says of a tool of OpenClaw, or of HQ (`name` as HQ calls it). */
export function verdictOf(policy: unknown, tool: string, env: GatewayContext['env']): ToolVerdict {
  const name = MEANS[tool] ?? tool
  if (name === 'exec' && !isOn(env, 'HQ_AGENT_EXEC')) return 'deny'
  return verdictFor(parseToolPolicy(policy), name)
}

export interface Asking {
  readonly agentId: string
  readonly agentName: string
  readonly runId: string
  readonly taskId: string | null
  readonly signal: AbortSignal
}

/** A sentence when the call may not be made. */
export async function permitTool(
  context: GatewayContext,
  { agentId, agentName, runId, taskId, signal }: Asking,
  tool: string,
  input: unknown,
): Promise<string | undefined> {
  const [agent] = await context.replica.query<Pick<Row<'agents'>, 'tool_policy'>>(
    'select tool_policy from agents where id = $1 and deleted_at is null',
    [agentId],
  )
  const verdict = verdictOf(agent?.tool_policy, tool, context.env)
  if (verdict === 'allow') return undefined
  if (verdict === 'deny')
    return `The tool ${tool} is not allowed for you. A person can change that in your permissions.`
  const command = isRecord(input) && typeof input['command'] === 'string' ? input['command'] : undefined
  const answer = await approvalsOf(context).ask(
    {
      agentId,
      runId,
      taskId,
      kind: MEANS[tool] === 'exec' ? 'exec' : 'tool',
      subject: MEANS[tool] ?? tool,
      title:
        command === undefined
          ? `${agentName} wants to use ${tool}`
          : `${agentName} wants to run ${command.slice(0, 120)}`,
      detail: isRecord(input) ? input : { input },
      expiresAt: new Date(context.now() + ASK_MS).toISOString(),
    },
    signal,
  )
  const note = answer.note ? ` They say: ${answer.note}` : ''
  if (answer.verdict === 'allowed') return undefined
  if (answer.verdict === 'denied') return `A person has refused this.${note}`
  return `Nobody has allowed this in time, so it was not done. Say in a comment what you need it for, and end.`
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
