/**
 * What an agent may use, and what it must ask for: `agents.tool_policy` = `{default?, tools?: {name: verdict}}`. Pure.
 *
 *  P1 What a person wrote for a tool counts; then, for tools outside of HQ, the default that a person wrote; then the verdict of the product (`STANDARD`), and `deny` for
 *     tools that nobody knows.
 *  P2 A person's default never takes away what an agent needs to work at all (HQ's actions and its own files, `BASIC`): these have to be named one by one.
 *     It never allows `exec` either: that one has to be named too.
 *  P3 What cannot be understood counts as the safest: a verdict that is none is `deny`, a policy that is none denies all but what an agent needs.
 */
import { ENUMS, type Enum } from '../schema/enums.ts'

export type ToolVerdict = Enum<'tool_verdict'>

export interface ToolPolicy {
  readonly default?: ToolVerdict
  readonly tools: Readonly<Record<string, ToolVerdict>>
}

/** HQ's own actions and the agent's files. */
export const BASIC: readonly string[] = [
  'my_tasks',
  'task_show',
  'claim',
  'comment',
  'submit_deliverable',
  'complete',
  'search_tasks',
  'list_files',
  'read_file',
  'write_file',
]

/** What counts where nobody has said anything. `web_fetch` and `exec` are offered only where the gateway's owner has switched them on. */
export const STANDARD: Readonly<Record<string, ToolVerdict>> = {
  ...Object.fromEntries(BASIC.map((name) => [name, 'allow'])),
  web_fetch: 'allow',
  exec: 'deny',
}

/** (P3) Never throws. */
export function parseToolPolicy(value: unknown): ToolPolicy {
  if (value === null || value === undefined) return { tools: {} }
  if (!isRecord(value)) return { default: 'deny', tools: {} }
  const { default: standard, tools } = value
  const named: Record<string, ToolVerdict> = Object.create(null) as Record<string, ToolVerdict>
  if (isRecord(tools)) for (const [name, verdict] of Object.entries(tools)) named[name] = toVerdict(verdict)
  const unreadable = tools !== undefined && tools !== null && !isRecord(tools)
  if (unreadable) return { default: 'deny', tools: {} }
  return { ...(standard === undefined || standard === null ? {} : { default: toVerdict(standard) }), tools: named }
}

export function verdictFor(policy: ToolPolicy, tool: string): ToolVerdict {
  if (Object.hasOwn(policy.tools, tool)) return policy.tools[tool] ?? 'deny'
  if (!BASIC.includes(tool) && policy.default !== undefined && (tool !== 'exec' || policy.default !== 'allow'))
    return policy.default
  return Object.hasOwn(STANDARD, tool) ? (STANDARD[tool] ?? 'deny') : 'deny'
}

/** The same policy with one tool's verdict set, as it is written to the row; what else stands there stays. */
export function withVerdict(value: unknown, tool: string, verdict: ToolVerdict): Record<string, unknown> {
  const before = isRecord(value) ? value : {}
  const { default: standard, tools } = parseToolPolicy(value)
  return { ...before, ...(standard === undefined ? {} : { default: standard }), tools: { ...tools, [tool]: verdict } }
}

const toVerdict = (value: unknown): ToolVerdict => ENUMS.tool_verdict.find((verdict) => verdict === value) ?? 'deny'

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
