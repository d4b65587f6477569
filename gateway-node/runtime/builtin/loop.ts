/**
 * The tool loop: ask the model, run the tools it calls, ask again, until it has nothing more to do or a cap is reached.
 *
 *  O1 Exactly one model call per round, each preceded by `beforeModelCall`; a retry and a call for notes are calls like any other.
 *  O2 Caps: turns, tool calls, tokens, wall time, and going in circles (`circles.ts`). Reaching one is a failure that says which. Waiting for a person counts
 *     against none.
 *  O3 An unusable answer (broken stream, cut connection, provider busy) is asked for again, at most `retries` times in a row; nothing of it is kept,
 *     so that no tool runs twice for it, and nothing of it is told twice (`told.ts`). A provider that says when (Retry-After) is waited for, within reason.
 *  O4 Tool calls of one answer run one after the other, in order. Wrong input or an unknown tool is told to the model, not to the user.
 *  O5 Every call's usage is reported, estimated when the provider did not get to say it.
 *  O6 A conversation that grows too long for the window is shortened by the model's own notes on its older part (`compact.ts`); where these don't come or don't
 *     help, old answers are cut (`transcript.ts`).
 */
import { cut, type FailureCode } from '@hq/shared/domain/runs.ts'
import type { LanguageModel, LanguageModelUsage, ModelMessage } from 'ai'
import { type RunHooks, type RunInput, type RunOutcome, RunStopped } from '../runtime.ts'
import { CAPS, type Caps, startClock } from './caps.ts'
import { createCircles } from './circles.ts'
import { NOTE_INSTRUCTIONS, NOTE_TOKENS, noteRequest, planNotes } from './compact.ts'
import type { ModelConfig } from './config.ts'
import type { Failure } from './errors.ts'
import { runTool, toToolSet } from './loop-tools.ts'
import { type Answer, type Call, type CallInput, callModel } from './model-call.ts'
import { costOf } from './prices.ts'
import { createTold } from './told.ts'
import { estimateTokens, fit, repair } from './transcript.ts'

export { CAPS, type Caps }

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

const PASSING = new Set<FailureCode>(['bad_stream', 'unreachable', 'provider_down', 'timeout', 'rate_limited'])

export async function runLoop(input: LoopInput, hooks: RunHooks, signal: AbortSignal): Promise<RunOutcome> {
  const { model, config, instructions, caps } = input
  const clock = startClock(caps.wallMs)
  const stop = AbortSignal.any([signal, clock.signal])
  const tools = new Map(hooks.tools.map((each) => [each.name, each]))
  const toolSet = toToolSet(hooks.tools)
  const fixed =
    estimateTokens(instructions) + hooks.tools.reduce((sum, each) => sum + 60 + estimateTokens(each.description), 0)
  const circles = createCircles()
  let messages: ModelMessage[] = [{ role: 'user', content: input.wake }]
  let turns = 0
  let toolCalls = 0
  let tokens = 0
  let lastText = ''
  /** Notes were asked for because the provider found the conversation too long; once is enough. */
  let forced = false
  /** The last notes were of no use: asking for more only costs. */
  let noNotes = false

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
    if (clock.signal.aborted)
      return outcome('failed', lastText || null, {
        code: 'too_long',
        message: `The run took longer than ${Math.round(caps.wallMs / 60_000)} minutes.`,
      })
    throw error
  } finally {
    clock.end()
  }

  /** One round, with retries (O3). */
  async function ask(): Promise<Answer> {
    const told = createTold(hooks.onEvent)
    for (let attempt = 0; ; attempt += 1) {
      await makeRoom(false)
      await mayCall()
      told.begin(turns)
      const result = await once((kind, text) => told.add(kind, text))
      if ('calls' in result) return result
      if (result.code === 'context_full' && !forced && (await makeRoom(true))) {
        forced = true
        attempt -= 1
        continue
      }
      const wait = result.retryAfterMs ?? caps.retryMs * 4 ** attempt
      if (!PASSING.has(result.code) || attempt >= caps.retries || wait > caps.retryAfterMs)
        throw new Failed(result.code, result.message)
      hooks.onEvent({ kind: 'status', data: { code: 'retry', text: `${result.message} Asking again.`, turn: turns } })
      // Somewhat apart from others who were refused at the same moment; never before the provider's own time.
      await sleep(wait * (1 + Math.random() / 4), stop)
    }
  }

  /** (O1, O2) Counts the call that follows. */
  async function mayCall(): Promise<void> {
    if (turns >= caps.turns)
      throw new Failed('too_many_turns', `The model was asked ${caps.turns} times and is still not done.`)
    if (tokens >= caps.tokens)
      throw new Failed(
        'too_many_tokens',
        `The run used ${tokens.toLocaleString('en-US')} tokens; it may use ${caps.tokens.toLocaleString('en-US')}.`,
      )
    stop.throwIfAborted()
    await hooks.beforeModelCall()
    turns += 1
  }

  /** (O6) Whether the conversation is shorter now. */
  async function makeRoom(force: boolean): Promise<boolean> {
    if (config.provider === 'demo' || noNotes) return false
    const whole = repair(messages)
    const plan = planNotes(whole, config.contextTokens, fixed, force)
    if (!plan) return false
    await mayCall()
    const request = [noteRequest(whole[0], plan.old, config.contextTokens)]
    const result = await counted({
      instructions: NOTE_INSTRUCTIONS,
      messages: request,
      tools: {},
      thinking: 'none',
      outputTokens: NOTE_TOKENS,
    })
    const notes = 'calls' in result ? result.text.trim() : ''
    const shorter = notes === '' ? whole : plan.with(notes)
    const saved = estimateTokens(whole) - estimateTokens(shorter)
    if (notes === '' || saved <= 0) {
      noNotes = true
      note('The conversation got long, and no useful notes came of it; older answers are shortened instead.')
      return false
    }
    messages = shorter
    note(`The conversation got long: ${plan.old.length} older messages were replaced by notes.`)
    return true
  }

  function note(text: string): void {
    hooks.onEvent({ kind: 'status', data: { code: 'note', text, turn: turns } })
  }

  /** The model call of a round. */
  async function once(onText: CallInput['onText']): Promise<Answer | Failure> {
    const fitted = fit(repair(messages), config.contextTokens, fixed)
    if (fitted.shortened > 0) {
      messages = fitted.messages
      note(`The conversation got long: ${fitted.shortened} older answers were shortened.`)
    }
    return counted({
      instructions,
      messages: fitted.messages,
      tools: toolSet,
      thinking: input.thinking,
      outputTokens: caps.outputTokens,
      onText,
    })
  }

  /** A call, with its usage reported (O5). Throws when the run was stopped meanwhile. */
  async function counted(
    each: Pick<CallInput, 'instructions' | 'messages' | 'tools' | 'thinking' | 'outputTokens'> &
      Partial<Pick<CallInput, 'onText'>>,
  ): Promise<Answer | Failure> {
    const { result, usage, streamed } = await callModel({
      model,
      config,
      silenceMs: caps.silenceMs,
      signal: stop,
      onText: () => undefined,
      ...each,
    })
    await report(usage, streamed, each, !('calls' in result))
    stop.throwIfAborted()
    return result
  }

  async function report(
    usage: LanguageModelUsage | undefined,
    streamed: number,
    sent: Pick<CallInput, 'instructions' | 'messages' | 'tools'>,
    broken: boolean,
  ): Promise<void> {
    if (config.provider === 'demo') return // no model was asked
    if (broken && usage?.inputTokens === undefined && streamed === 0) return // refused before it began
    const guess = sent.tools === toolSet ? fixed : estimateTokens(sent.instructions)
    const inputTokens = usage?.inputTokens ?? guess + estimateTokens(sent.messages)
    const outputTokens = usage?.outputTokens ?? Math.ceil(streamed / 3.6)
    const cacheRead = usage?.inputTokenDetails.cacheReadTokens ?? 0
    const cacheWrite = usage?.inputTokenDetails.cacheWriteTokens ?? 0
    tokens += inputTokens + outputTokens
    const { provider, model: name = '', prices } = config
    const costUsd = costOf(name, { input: inputTokens, output: outputTokens, cacheRead, cacheWrite }, prices)
    const call = { turn: turns, provider, model: name }
    await hooks.onUsage({ ...call, inputTokens, outputTokens, cacheRead, cacheWrite, costUsd })
    const data = { ...call, input_tokens: inputTokens, output_tokens: outputTokens, cost_usd: costUsd }
    hooks.onEvent({ kind: 'usage', data })
  }

  /** O2, O4. */
  async function perform(call: Call): Promise<ModelMessage> {
    stop.throwIfAborted()
    toolCalls += 1
    if (toolCalls > caps.toolCalls)
      throw new Failed('too_many_tool_calls', `The model called tools more than ${caps.toolCalls} times.`)
    hooks.onEvent({ kind: 'tool_call', data: { turn: turns, call: call.id, tool: call.name, input: call.input } })
    const key = `${call.name} ${JSON.stringify(call.input)}`
    const count = circles.count(key)
    if (count > caps.repeats)
      throw new Failed('loop', `The model went in circles: it called ${call.name} ${count} times with the same input.`)
    const { ok, text } = await clock.during(() => runTool(tools, call))
    hooks.onEvent({ kind: 'tool_result', data: { turn: turns, call: call.id, tool: call.name, ok, output: text } })
    const circle = circles.answered(key, text)
    if (circle === 'end')
      throw new Failed(
        'loop',
        'The model went in circles: it made the same few calls, with the same answers, three times.',
      )
    const hint =
      count === caps.repeats || circle === 'warn'
        ? '\n(You go in circles: you have made these calls before, with the same input. Do something else, or end.)'
        : ''
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
