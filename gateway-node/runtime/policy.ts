/**
 * The policy of an agent's tools, kept in a run (`agents.tool_policy`, `shared/domain/tool-policy.ts`).
 *
 *  K1 What is denied is not offered. What is offered is asked about again at each call, by the row as it is then: a person may have changed it since.
 *  K2 What must be asked waits for a person's answer, as long as the run may go on: a pause, a task that is over or an abort ends the waiting.
 *  K3 Not allowed is an answer that the model reads, with what the person said; nothing is done.
 *  K4 The time of waiting is reported (`waitedMs`), so that it counts against no limit of the run.
 */
import { parseToolPolicy, type ToolVerdict, verdictFor } from '@hq/shared/domain/tool-policy.ts'
import type { Approvals, Question } from '../approvals/approvals.ts'
import type { GatewayContext } from '../service.ts'
import { type AgentTool, RunStopped } from './runtime.ts'

export interface PermitsOptions {
  readonly context: Pick<GatewayContext, 'replica' | 'now'>
  readonly approvals: Pick<Approvals, 'ask'>
  readonly agent: { readonly id: string; readonly name: string; readonly slug: string }
  readonly runId: string
  readonly taskId: string | null
  /** Throws `RunStopped` when the run may not go on (X1). */
  readonly mayGoOn: () => Promise<void>
  readonly signal: AbortSignal
  /** How a question about this tool reads; by default its name and input. */
  readonly describe?: (tool: string, input: unknown) => Pick<Question, 'title' | 'detail'> | undefined
}

export type Permit = (
  | { readonly ok: true }
  /** What the model reads. */
  | { readonly ok: false; readonly message: string }
) & { readonly waitedMs: number }

export interface Permits {
  verdict(tool: string): Promise<ToolVerdict>
  permit(tool: string, input: unknown): Promise<Permit>
  /** The tools that may be offered, each asking before it does something. */
  guard(tools: readonly AgentTool[]): Promise<AgentTool[]>
}

/** How long a question stands. */
export const ANSWER_MS = 8 * 60 * 60_000

const ELSE = 'Do not try the same in another way. Go on without it, or say in a comment what you need and end.'

export function createPermits(options: PermitsOptions): Permits {
  const { context, approvals, agent, runId, taskId, mayGoOn, signal } = options

  async function verdict(tool: string): Promise<ToolVerdict> {
    const [row] = await context.replica.query<{ tool_policy: unknown }>(
      'select tool_policy from agents where id = $1 and deleted_at is null',
      [agent.id],
    )
    return row ? verdictFor(parseToolPolicy(row.tool_policy), tool) : 'deny'
  }

  async function permit(tool: string, input: unknown): Promise<Permit> {
    const now = await verdict(tool)
    if (now === 'allow') return { ok: true, waitedMs: 0 }
    if (now === 'deny') return { ok: false, message: `${tool} is switched off for you. Go on without it.`, waitedMs: 0 }
    const from = context.now()
    const { verdict: answer, note } = await askWhileAlive(tool, input)
    const waitedMs = Math.max(0, context.now() - from)
    if (answer === 'allowed') return { ok: true, waitedMs }
    const said = note === null || note.trim() === '' ? '' : ` They say: ${note.trim()}`
    if (answer === 'denied') return { ok: false, message: `A person refused this.${said} ${ELSE}`, waitedMs }
    if (answer === 'expired')
      return { ok: false, message: `This needs a person’s yes, and nobody answered. ${ELSE}`, waitedMs }
    return { ok: false, message: `This was not allowed: ${note ?? 'the question was withdrawn.'} ${ELSE}`, waitedMs }
  }

  /** (K2) */
  async function askWhileAlive(tool: string, input: unknown): ReturnType<Approvals['ask']> {
    const over = new AbortController()
    let stopped: RunStopped | undefined
    let checking = false
    const check = (): void => {
      if (checking) return
      checking = true
      mayGoOn()
        .catch((error: unknown) => {
          if (!(error instanceof RunStopped)) return // a read that failed: the next change asks again
          stopped = error
          over.abort(error)
        })
        .finally(() => {
          checking = false
        })
    }
    const end = context.replica.onChange((changes) => {
      if (['agents', 'gateways', 'tasks', 'agent_inbox_items'].some((table) => changes.has(table as 'agents'))) check()
    })
    // What came between the last look and this one.
    check()
    try {
      const { title, detail } = options.describe?.(tool, input) ?? plain(tool, input)
      const question: Question = {
        agentId: agent.id,
        runId,
        taskId,
        kind: tool === 'exec' ? 'exec' : 'tool',
        subject: tool,
        title,
        detail,
        expiresAt: new Date(context.now() + ANSWER_MS).toISOString(),
      }
      const answer = await approvals.ask(question, AbortSignal.any([signal, over.signal]))
      if (stopped) throw stopped
      if (signal.aborted) throw new RunStopped('The run was stopped while it waited for an answer.')
      return answer
    } finally {
      end()
    }
  }

  return {
    verdict,
    permit,
    async guard(tools) {
      const offered: AgentTool[] = []
      for (const tool of tools) if ((await verdict(tool.name)) !== 'deny') offered.push(guarded(tool))
      return offered
    },
  }

  function guarded(tool: AgentTool): AgentTool {
    return {
      ...tool,
      async run(input) {
        const permitted = await permit(tool.name, input)
        const { waitedMs } = permitted
        const waited = waitedMs > 0 ? { waitedMs } : {}
        if (!permitted.ok) return { ok: false, text: `Not done: ${permitted.message}`, ...waited }
        return { ...(await tool.run(input)), ...waited }
      },
    }
  }
}

function plain(tool: string, input: unknown): Pick<Question, 'title' | 'detail'> {
  const detail =
    typeof input === 'object' && input !== null && !Array.isArray(input)
      ? (input as Record<string, unknown>)
      : { input }
  const first = Object.values(detail).find((value) => typeof value === 'string')
  return { title: `Use ${tool}${typeof first === 'string' && first !== '' ? `: ${first}` : ''}`, detail }
}
