/**
 * One run of an agent in OpenClaw, from HQ's side: its limits, its account, its log. No IO of its own.
 *
 *  N1 Nothing goes on after a stop: every gate and brake says so, and tools refuse. The first reason stands.
 *  N2 The caps are those of the builtin runtime. OpenClaw has none by default: left alone it repeats a call for ever.
 *  N3 Waiting for a person counts for no cap.
 *  N4 Each model call is told once, numbered in order; each piece of text and each tool call is in the run's log once.
 */
import { cut, type FailureCode, PIECE_CHARS } from '@hq/shared/domain/runs.ts'
import type { Caps } from '../builtin/loop.ts'
import { costOf, type Price } from '../builtin/prices.ts'
import { type AgentTool, type RunHooks, RunStopped, type ToolOutput } from '../runtime.ts'
import type { AgentEvent } from './frames.ts'

/** HQ's tools have this before their names in OpenClaw. */
export const TOOL_PREFIX = 'hq_'

/** ms that the last report may come after the end of its run, and how often is looked. */
const LATE_MS = 3_000
const LATE_TRIES = 60

export interface TurnOptions {
  readonly hooks: RunHooks
  readonly caps: Caps
  readonly provider: string
  readonly model: string
  readonly prices: Readonly<Record<string, Price>>
  /** What stands behind the agent's own instructions. */
  readonly system: string
  readonly now: () => number
  /** For OpenClaw's own tools: a sentence when this call may not be made. May wait for a person. */
  readonly permit: (tool: string, input: unknown, call: string | null) => Promise<string | undefined>
}

/** What the plugin tells about one model call. */
export interface UsageReport {
  readonly input?: number | undefined
  readonly output?: number | undefined
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
}

export interface Stopped {
  readonly code: FailureCode | 'stopped'
  readonly message: string
}

export interface Turn {
  /** The last words before the first model call; a sentence: it may not begin. */
  gate(): Promise<string | undefined>
  /** Before each tool call, so before the model is asked again. A sentence: not this one. */
  brake(tool: string, input: unknown, call: string | null): Promise<string | undefined>
  tool(name: string, input: unknown): Promise<ToolOutput>
  usage(report: UsageReport): Promise<void>
  /** After the run: what OpenClaw counted in all. Waits a moment for reports on their way, then accounts for what never came. */
  settleUsage(total: UsageReport): Promise<void>
  event(event: AgentEvent): void
  stop(reason: Stopped): void
  stopped(): Stopped | undefined
  /** Resolves with the first stop. */
  readonly onStop: Promise<Stopped>
  /** ms since 1970 at which the time is up; later while a person is asked (N3). */
  deadline(): number
  readonly system: string
  /** Events were missed on the way. */
  gap(): void
  /** The run is over, whatever happened. */
  end(): void
  readonly ended: Promise<void>
  counts(): { readonly turns: number; readonly toolCalls: number; readonly text: string }
}

export function createTurn({ hooks, caps, provider, model, prices, system, now, permit }: TurnOptions): Turn {
  const tools = new Map(hooks.tools.map((tool) => [TOOL_PREFIX + tool.name, tool]))
  const seen = new Map<string, number>()
  const begun = new Set<string>()
  const finished = new Set<string>()
  let ending: Stopped | undefined
  let tell: (reason: Stopped) => void = () => undefined
  const onStop = new Promise<Stopped>((resolve) => {
    tell = resolve
  })
  let finish: () => void = () => undefined
  const ended = new Promise<void>((resolve) => {
    finish = resolve
  })
  let deadline = now() + caps.wallMs
  let round = 0
  let calls = 0
  let toolCalls = 0
  let tokens = 0
  const told = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
  let text = ''
  let spoken = 0
  /** Usage is reported once at a time, in order. */
  let telling: Promise<void> = Promise.resolve()

  function stop(reason: Stopped): void {
    if (ending) return
    ending = reason
    tell(reason)
  }

  const why = (): string | undefined => ending?.message

  function over(code: FailureCode, message: string): string {
    stop({ code, message })
    return why() ?? message
  }

  /** Money, pause, task: as the builtin runtime asks before each model call (X1). */
  async function mayGoOn(): Promise<string | undefined> {
    if (ending) return why()
    await telling
    try {
      await hooks.beforeModelCall()
    } catch (error) {
      if (!(error instanceof RunStopped)) throw error
      stop({ code: 'stopped', message: error.message })
    }
    if (ending) return why()
    if (calls >= caps.turns) return over('too_many_turns', `The run was ended after ${caps.turns} model calls.`)
    if (tokens >= caps.tokens)
      return over('too_many_tokens', `The run was ended after ${caps.tokens.toLocaleString('en')} tokens.`)
    if (now() >= deadline)
      return over('too_long', `The run was ended after ${Math.round(caps.wallMs / 60_000)} minutes.`)
    return undefined
  }

  async function withoutClock<T>(work: Promise<T>): Promise<T> {
    const from = now()
    try {
      return await work
    } finally {
      deadline += now() - from
    }
  }

  function usage({ input = 0, output = 0, cacheRead = 0, cacheWrite = 0 }: UsageReport): Promise<void> {
    // OpenClaw counts what came from a cache apart from `input`; HQ's `input` is all of it.
    const all = input + cacheRead + cacheWrite
    told.input += input
    told.output += output
    told.cacheRead += cacheRead
    told.cacheWrite += cacheWrite
    const turn = ++calls
    tokens += all + output
    telling = telling.then(() =>
      hooks.onUsage({
        turn,
        provider,
        model,
        inputTokens: all,
        outputTokens: output,
        cacheRead,
        cacheWrite,
        costUsd: costOf(model, { input: all, output, cacheRead, cacheWrite }, prices),
      }),
    )
    return telling
  }

  return {
    system,
    onStop,
    stop,
    ended,
    end: () => finish(),
    gap: () =>
      hooks.onEvent({
        kind: 'status',
        data: { code: 'note', text: 'Some of what OpenClaw told was missed; its own transcript has all of it.' },
      }),
    stopped: () => ending,
    deadline: () => deadline,
    counts: () => ({ turns: calls, toolCalls, text }),
    gate: mayGoOn,

    async brake(name, input, call) {
      const refused = await mayGoOn()
      if (refused) return refused
      toolCalls += 1
      if (toolCalls > caps.toolCalls)
        return over('too_many_tool_calls', `The run was ended after ${caps.toolCalls} tool calls.`)
      const key = `${name} ${JSON.stringify(input)}`
      const times = (seen.get(key) ?? 0) + 1
      seen.set(key, times)
      if (times > caps.repeats)
        return over('loop', `The run was ended: ${name} was called ${times} times with the same input.`)
      // HQ's own tools ask by themselves when they are used.
      if (tools.has(name)) return undefined
      return (await withoutClock(permit(name, input, call))) ?? why()
    },

    async tool(name, input) {
      const refused = ending?.message
      const tool = tools.get(name)
      if (refused || !tool) return { ok: false, text: refused ?? `There is no tool ${name} for you.` }
      try {
        return await withoutClock(runTool(tool, input))
      } catch (error) {
        if (!(error instanceof RunStopped)) throw error
        stop({ code: 'stopped', message: error.message })
        return { ok: false, text: error.message }
      }
    },

    usage,

    async settleUsage({ input = 0, output = 0, cacheRead = 0, cacheWrite = 0 }) {
      const missing = (): boolean => told.output < output || told.input < input
      for (let n = 0; n < LATE_TRIES && missing(); n++)
        await new Promise((resolve) => setTimeout(resolve, LATE_MS / LATE_TRIES))
      if (missing())
        await usage({
          input: Math.max(0, input - told.input),
          output: Math.max(0, output - told.output),
          cacheRead: Math.max(0, cacheRead - told.cacheRead),
          cacheWrite: Math.max(0, cacheWrite - told.cacheWrite),
        })
      await telling
    },

    event({ stream, data }) {
      if (stream === 'lifecycle' && data.phase === 'model' && data.provider) round += 1
      const turn = Math.max(1, round)
      if (stream === 'assistant' && data.delta) {
        // The summary of a run is what was said last.
        text = spoken === turn ? text + data.delta : data.delta
        spoken = turn
        hooks.onEvent({ kind: 'message', data: { turn, text: data.delta } })
      } else if (stream === 'tool' && data.toolCallId && data.name) {
        const call = data.toolCallId
        if (data.phase === 'start' && !begun.has(call)) {
          begun.add(call)
          const short = cut(JSON.stringify(data.args ?? {}), PIECE_CHARS)
          hooks.onEvent({
            kind: 'tool_call',
            data: {
              turn,
              call,
              tool: data.name,
              input: short.truncated ? short.text : (data.args ?? {}),
              ...(short.truncated ? { truncated: true } : {}),
            },
          })
        } else if (data.phase === 'result' && !finished.has(call)) {
          finished.add(call)
          const said = data.result?.content.map((part) => part.text ?? `(${part.type})`).join('\n') ?? ''
          const short = cut(said, PIECE_CHARS)
          hooks.onEvent({
            kind: 'tool_result',
            data: {
              turn,
              call,
              tool: data.name,
              ok: data.isError !== true,
              output: short.text,
              ...(short.truncated ? { truncated: true } : {}),
            },
          })
        }
      }
    },
  }
}

async function runTool(tool: AgentTool, input: unknown): Promise<ToolOutput> {
  const parsed = tool.input.safeParse(input)
  if (!parsed.success) {
    const where = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'input'}: ${issue.message}`).join('; ')
    return { ok: false, text: `Wrong input: ${where}` }
  }
  try {
    return await tool.run(parsed.data)
  } catch (error) {
    if (error instanceof RunStopped) throw error
    return { ok: false, text: `HQ itself failed: ${error instanceof Error ? error.message : String(error)}` }
  }
}
