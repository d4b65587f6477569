/** The tools of a run as the model sees them, and one call of one of them. */
import { jsonSchema, type ToolSet, tool } from 'ai'
import { z } from 'zod'
import { type AgentTool, RunStopped, type ToolOutput } from '../runtime.ts'
import type { Call } from './model-call.ts'

/** Schemas only: we run the tools ourselves, so that caps and stops lie between a call and what it does. */
export const toToolSet = (tools: readonly AgentTool[]): ToolSet =>
  Object.fromEntries(
    tools.map((each) => [
      each.name,
      tool({
        description: each.description,
        inputSchema: jsonSchema(z.toJSONSchema(each.input, { io: 'input' }) as object),
      }),
    ]),
  )

/** What the model reads, whatever went wrong. Throws `RunStopped` only. */
export async function runTool(tools: ReadonlyMap<string, AgentTool>, call: Call): Promise<ToolOutput> {
  const known = tools.get(call.name)
  if (!known) return { ok: false, text: `There is no tool “${call.name}”. Tools: ${[...tools.keys()].join(', ')}.` }
  const parsed = known.input.safeParse(call.input)
  if (!parsed.success) {
    const issues = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'input'}: ${issue.message}`).join('; ')
    // What is no object at all cannot be read; otherwise what is wrong in it says more.
    const why = call.invalid !== undefined && typeof call.input !== 'object' ? call.invalid : issues
    return { ok: false, text: `Wrong input for ${call.name}: ${why}` }
  }
  try {
    return await known.run(parsed.data)
  } catch (error) {
    if (error instanceof RunStopped) throw error
    return { ok: false, text: `${call.name} failed: ${error instanceof Error ? error.message : String(error)}` }
  }
}
