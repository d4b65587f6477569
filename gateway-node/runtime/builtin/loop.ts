/**
 * The tool loop: ask the model, run the tools it calls, ask again, until it has nothing more to do or a cap is reached.
 *
 *  O1 Exactly one model call per round, each preceded by `beforeModelCall`; a retry is a call like any other.
 *  O2 Caps: turns, tool calls, tokens, wall time, and the same call with the same input (`repeats`). Reaching one is a failure that says which.
 *  O3 An unusable answer (broken stream, cut connection, provider busy) is asked for again, at most `retries` times in a row; nothing of it is kept,
 *     so that no tool runs twice for it.
 *  O4 Tool calls of one answer run one after the other, in order. Wrong input or an unknown tool is told to the model, not to the user.
 *  O5 Every call's usage is reported, estimated when the provider did not get to say it.
 */
import { cut, type FailureCode } from '@hq/shared/domain/runs.ts'
import {
  jsonSchema,
  type LanguageModel,
  type LanguageModelUsage,
  type ModelMessage,
  streamText,
  type ToolSet,
  tool,
} from 'ai'
import { z } from 'zod'
import { type AgentTool, type RunHooks, type RunInput, type RunOutcome, RunStopped } from '../runtime.ts'
import type { ModelConfig } from './config.ts'
import { describeError, providerName } from './errors.ts'
import { costOf } from './prices.ts'
import { estimateTokens, fit, repair } from './transcript.ts'

export interface Caps {
  readonly turns: number
  readonly toolCalls: number
  /** Input and output tokens of the whole run. */
  readonly tokens: number
  /** ms */
  readonly wallMs: number
  /** How often the same tool may be called with the same input. */
  readonly repeats: number
  /** Retries of one round (O3). */
  readonly retries: number
  /** ms before the first retry, four times that before the second. */
  readonly retryMs: number
  /** ms without a word from the model. */
  readonly silenceMs: number
  readonly outputTokens: number
}

export const CAPS: Caps = {
  turns: 30,
  toolCalls: 60,
  tokens: 600_000,
  wallMs: 15 * 60_000,
  repeats: 4,
  retries: 2,
  retryMs: 1_500,
  silenceMs: 120_000,
  outputTokens: 8_192,
}

export interface LoopInput {
  readonly model: LanguageModel
  readonly config: ModelConfig
  readonly instructions: string
  readonly wake: string
  readonly thinking: RunInput['thinking']
  readonly caps: Caps
  readonly now: () => number
}

/** Ends a run as failed. */
class Failed extends Error {
  readonly code: FailureCode
  constructor(code: FailureCode, message: string) {
    super(message)
    this.code = code
  }
}

interface Call {
  readonly id: string
  readonly name: string
  readonly input: unknown
  /** Why the library could not read the call. */
  readonly invalid: string | undefined
}

interface Answer {
  readonly text: string
  readonly calls: readonly Call[]
  readonly messages: readonly ModelMessage[]
  readonly finish: string
}

export async function runLoop(input: LoopInput, hooks: RunHooks, signal: AbortSignal): Promise<RunOutcome> {
  const { model, config, instructions, caps } = input
  const wall = AbortSignal.timeout(caps.wallMs)
  const stop = AbortSignal.any([signal, wall])
  const tools = new Map(hooks.tools.map((each) => [each.name, each]))
  const toolSet = toToolSet(hooks.tools)
  const fixed =
    estimateTokens(instructions) + hooks.tools.reduce((sum, each) => sum + 60 + estimateTokens(each.description), 0)
  const seen = new Map<string, number>()
  let messages: ModelMessage[] = [{ role: 'user', content: input.wake }]
  let turns = 0
  let toolCalls = 0
  let tokens = 0
  let lastText = ''

  const outcome = (
    status: RunOutcome['status'],
    summary: string | null,
    error?: { code: FailureCode; message: string },
  ): RunOutcome => ({
    status,
    summary: summary === null || summary.trim() === '' ? null : cut(summary.trim(), 2_000).text,
    ...(error ? { error } : {}),
    turns,
    toolCalls,
  })

  try {
    for (;;) {
      const answer = await ask()
      if (answer.text.trim() !== '') lastText = answer.text
      messages.push(...answer.messages)
      if (answer.finish === 'content-filter') throw new Failed('refused', 'The model refused to do this.')
      if (answer.calls.length === 0) {
        if (answer.finish === 'length')
          throw new Failed('bad_stream', 'The answer of the model was longer than it may be and was cut off.')
        if (turns === 1 && answer.text.trim() === '')
          throw new Failed('nothing_done', 'The model said nothing and did nothing.')
        return outcome('done', answer.text || lastText)
      }
      for (const call of answer.calls) messages.push(await perform(call))
    }
  } catch (error) {
    if (error instanceof RunStopped || signal.aborted) return outcome('cancelled', lastText || null)
    if (error instanceof Failed)
      return outcome('failed', lastText || null, { code: error.code, message: error.message })
    if (wall.aborted)
      return outcome('failed', lastText || null, {
        code: 'too_long',
        message: `The run took longer than ${Math.round(caps.wallMs / 60_000)} minutes.`,
      })
    throw error
  }

  /** One round, with retries (O3). */
  async function ask(): Promise<Answer> {
    for (let attempt = 0; ; attempt += 1) {
      if (turns >= caps.turns)
        throw new Failed('too_many_turns', `The model was asked ${caps.turns} times and is still not done.`)
      if (tokens >= caps.tokens)
        throw new Failed(
          'too_many_tokens',
          `The run used ${tokens.toLocaleString('en-US')} tokens; it may use ${caps.tokens.toLocaleString('en-US')}.`,
        )
      stop.throwIfAborted()
      await hooks.beforeModelCall() // O1
      turns += 1
      const result = await once()
      if ('calls' in result) return result
      stop.throwIfAborted()
      const again =
        result.code === 'bad_stream' ||
        result.code === 'unreachable' ||
        result.code === 'provider_down' ||
        result.code === 'timeout' ||
        result.code === 'rate_limited'
      if (!again || attempt >= caps.retries) throw new Failed(result.code, result.message)
      hooks.onEvent({ kind: 'status', data: { code: 'retry', text: `${result.message} Asking again.`, turn: turns } })
      await sleep(caps.retryMs * 4 ** attempt, stop)
    }
  }

  /** One model call. */
  async function once(): Promise<Answer | { code: FailureCode; message: string }> {
    const fitted = fit(repair(messages), config.contextTokens, fixed)
    if (fitted.shortened > 0) {
      messages = fitted.messages
      hooks.onEvent({
        kind: 'status',
        data: {
          code: 'note',
          text: `The conversation got long: ${fitted.shortened} older answers were shortened.`,
          turn: turns,
        },
      })
    }
    const turn = turns
    let text = ''
    let streamed = 0
    let usage: LanguageModelUsage | undefined
    let finish = 'other'
    let rawFinish: string | undefined
    let problem: { code: FailureCode; message: string } | undefined
    const calls: Call[] = []
    // Our own watch: the library's begins only when a provider's adapter hands out its stream, and some wait for the first event before that.
    const silence = new AbortController()
    const tooQuiet = (): void => silence.abort(new Error('silence'))
    let watch = setTimeout(tooQuiet, caps.silenceMs)
    const result = streamText({
      model,
      instructions,
      messages: fitted.messages,
      tools: toolSet,
      maxRetries: 0,
      maxOutputTokens: caps.outputTokens,
      abortSignal: AbortSignal.any([stop, silence.signal]),
      ...(input.thinking === 'none' ? {} : { reasoning: input.thinking }),
      onError: () => undefined, // errors are parts of the stream below; the default prints them
    })
    try {
      for await (const part of result.stream) {
        clearTimeout(watch)
        watch = setTimeout(tooQuiet, caps.silenceMs)
        switch (part.type) {
          case 'text-delta':
            text += part.text
            streamed += part.text.length
            hooks.onEvent({ kind: 'message', data: { turn, text: part.text } })
            break
          case 'reasoning-delta':
            streamed += part.text.length
            hooks.onEvent({ kind: 'reasoning', data: { turn, text: part.text } })
            break
          case 'tool-input-delta':
            streamed += part.delta.length
            break
          case 'tool-call':
            calls.push({
              id: part.toolCallId,
              name: part.toolName,
              input: part.input,
              invalid: part.invalid
                ? part.error instanceof Error
                  ? part.error.message
                  : 'The input cannot be read.'
                : undefined,
            })
            break
          case 'finish-step':
            usage = part.usage
            finish = part.finishReason
            rawFinish = part.rawFinishReason
            break
          case 'error':
            problem ??= describeError(part.error, config)
            break
          default:
            break
        }
      }
    } catch (error) {
      problem ??= describeError(error, config)
    } finally {
      clearTimeout(watch)
    }
    if (silence.signal.aborted)
      problem = { code: 'timeout', message: `${providerName(config)} did not answer in time.` }
    if (
      !problem &&
      (finish === 'interrupted' || finish === 'error' || (finish === 'other' && rawFinish === undefined))
    ) {
      problem = { code: 'bad_stream', message: `${providerName(config)} broke off in the middle of an answer.` }
    }
    await report(turn, usage, streamed, fitted.messages, problem !== undefined)
    if (stop.aborted) {
      await Promise.resolve(result.responseMessages).catch(() => undefined) // it rejects because of the abort, which is handled by the caller
      stop.throwIfAborted()
    }
    if (problem) {
      await Promise.resolve(result.responseMessages).catch(() => undefined) // the problem is reported already
      return problem
    }
    const said = (await result.responseMessages).filter((message) => message.role === 'assistant')
    return { text, calls, messages: said, finish }
  }

  /** O5. */
  async function report(
    turn: number,
    usage: LanguageModelUsage | undefined,
    streamed: number,
    sent: readonly ModelMessage[],
    broken: boolean,
  ): Promise<void> {
    if (config.provider === 'demo') return // no model was asked
    if (broken && usage?.inputTokens === undefined && streamed === 0) return // refused before it began
    const input = usage?.inputTokens ?? fixed + estimateTokens(sent)
    const output = usage?.outputTokens ?? Math.ceil(streamed / 3.6)
    const cacheRead = usage?.inputTokenDetails.cacheReadTokens ?? 0
    const cacheWrite = usage?.inputTokenDetails.cacheWriteTokens ?? 0
    tokens += input + output
    const name = config.model ?? ''
    const costUsd = costOf(name, { input, output, cacheRead, cacheWrite }, config.prices)
    await hooks.onUsage({
      turn,
      provider: config.provider,
      model: name,
      inputTokens: input,
      outputTokens: output,
      cacheRead,
      cacheWrite,
      costUsd,
    })
    hooks.onEvent({
      kind: 'usage',
      data: {
        turn,
        provider: config.provider,
        model: name,
        input_tokens: input,
        output_tokens: output,
        cost_usd: costUsd,
      },
    })
  }

  /** O2, O4. */
  async function perform(call: Call): Promise<ModelMessage> {
    stop.throwIfAborted()
    toolCalls += 1
    if (toolCalls > caps.toolCalls)
      throw new Failed('too_many_tool_calls', `The model called tools more than ${caps.toolCalls} times.`)
    hooks.onEvent({ kind: 'tool_call', data: { turn: turns, call: call.id, tool: call.name, input: call.input } })
    const key = `${call.name} ${JSON.stringify(call.input)}`
    const count = (seen.get(key) ?? 0) + 1
    seen.set(key, count)
    if (count > caps.repeats)
      throw new Failed('loop', `The model went in circles: it called ${call.name} ${count} times with the same input.`)
    const { ok, text } = await runTool(tools, call)
    const hint =
      count === caps.repeats
        ? '\n(You have called this with the same input several times. Do something else, or end.)'
        : ''
    hooks.onEvent({ kind: 'tool_result', data: { turn: turns, call: call.id, tool: call.name, ok, output: text } })
    return {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: call.id,
          toolName: call.name,
          output: { type: ok ? 'text' : 'error-text', value: text + hint },
        },
      ],
    }
  }
}

async function runTool(tools: ReadonlyMap<string, AgentTool>, call: Call): Promise<{ ok: boolean; text: string }> {
  const known = tools.get(call.name)
  if (!known) return { ok: false, text: `There is no tool “${call.name}”. Tools: ${[...tools.keys()].join(', ')}.` }
  const parsed = known.input.safeParse(call.input)
  if (!parsed.success) {
    const issues = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'input'}: ${issue.message}`).join('; ')
    return {
      ok: false,
      text: `Wrong input for ${call.name}: ${call.invalid && parsed.error.issues.length === 0 ? call.invalid : issues}`,
    }
  }
  try {
    return await known.run(parsed.data)
  } catch (error) {
    if (error instanceof RunStopped) throw error
    return { ok: false, text: `${call.name} failed: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** Schemas only: we run the tools ourselves, so that caps and stops lie between a call and what it does. */
const toToolSet = (tools: readonly AgentTool[]): ToolSet =>
  Object.fromEntries(
    tools.map((each) => [
      each.name,
      tool({
        description: each.description,
        inputSchema: jsonSchema(z.toJSONSchema(each.input, { io: 'input' }) as object),
      }),
    ]),
  )

const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
  })
