/**
 * One call of a model: its stream read to the end, judged, and counted. Never throws, whatever the provider does.
 *
 *  L1 An answer counts only when its stream came to a proper end; else there is a problem, in one sentence, and nothing of the answer.
 *  L2 Silence ends a call: nothing heard for `silenceMs`.
 *  L3 A call whose input is no object (cut off, not JSON) has an empty one in what is kept, because strict providers accept no other; why stands in `invalid`.
 */
import { type LanguageModel, type LanguageModelUsage, type ModelMessage, streamText, type ToolSet } from 'ai'
import type { RunInput } from '../runtime.ts'
import type { ModelConfig } from './config.ts'
import { describeError, type Failure, providerName } from './errors.ts'

export interface Call {
  readonly id: string
  readonly name: string
  readonly input: unknown
  /** Why the call cannot be read. */
  readonly invalid: string | undefined
}

export interface Answer {
  readonly text: string
  readonly calls: readonly Call[]
  readonly messages: readonly ModelMessage[]
  readonly finish: string
}

export interface CallResult {
  readonly result: Answer | Failure
  /** Of what the provider said it took. */
  readonly usage: LanguageModelUsage | undefined
  /** Characters that came. */
  readonly streamed: number
}

export interface CallInput {
  readonly model: LanguageModel
  readonly config: ModelConfig
  readonly instructions: string
  readonly messages: readonly ModelMessage[]
  readonly tools: ToolSet
  readonly thinking: RunInput['thinking']
  readonly outputTokens: number
  readonly silenceMs: number
  readonly signal: AbortSignal
  readonly onText: (kind: 'message' | 'reasoning', text: string) => void
}

export async function callModel(input: CallInput): Promise<CallResult> {
  const { config, silenceMs, signal, onText } = input
  let text = ''
  let streamed = 0
  let usage: LanguageModelUsage | undefined
  let finish = 'other'
  let rawFinish: string | undefined
  let problem: Failure | undefined
  const calls: Call[] = []
  // Our own watch: the library's begins only when a provider's adapter hands out its stream, and some wait for the first event before that.
  const silence = new AbortController()
  const tooQuiet = (): void => silence.abort(new Error('silence'))
  let watch = setTimeout(tooQuiet, silenceMs)
  const result = streamText({
    model: input.model,
    instructions: input.instructions,
    messages: [...input.messages],
    tools: input.tools,
    maxRetries: 0,
    maxOutputTokens: input.outputTokens,
    abortSignal: AbortSignal.any([signal, silence.signal]),
    ...(input.thinking === 'none' ? {} : { reasoning: input.thinking }),
    onError: () => undefined, // errors are parts of the stream below; the default prints them
  })
  try {
    for await (const part of result.stream) {
      clearTimeout(watch)
      watch = setTimeout(tooQuiet, silenceMs)
      switch (part.type) {
        case 'text-delta':
          text += part.text
          streamed += part.text.length
          onText('message', part.text)
          break
        case 'reasoning-delta':
          streamed += part.text.length
          onText('reasoning', part.text)
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
  if (silence.signal.aborted) problem = { code: 'timeout', message: `${providerName(config)} did not answer in time.` }
  // (L1)
  if (!problem && (finish === 'interrupted' || finish === 'error' || (finish === 'other' && rawFinish === undefined)))
    problem = { code: 'bad_stream', message: `${providerName(config)} broke off in the middle of an answer.` }
  if (signal.aborted) problem ??= { code: 'unreachable', message: 'The call was stopped.' }
  if (problem) {
    // It rejects because of what is reported already.
    await Promise.resolve(result.responseMessages).catch(() => undefined)
    return { result: problem, usage, streamed }
  }
  const messages = (await result.responseMessages)
    .filter((message) => message.role === 'assistant')
    .map(withReadableCalls)
  return { result: { text, calls: finish === 'length' ? calls.map(cutOff) : calls, messages, finish }, usage, streamed }
}

/** (L3) */
function withReadableCalls(message: ModelMessage): ModelMessage {
  if (message.role !== 'assistant' || typeof message.content === 'string') return message
  const content = message.content.map((part) =>
    part.type === 'tool-call' && !isRecord(part.input) ? { ...part, input: {} } : part,
  )
  return { ...message, content }
}

/** An answer that was longer than it may be ends within its last call. */
const cutOff = (call: Call): Call =>
  call.invalid === undefined
    ? call
    : {
        ...call,
        invalid: 'Your answer was longer than it may be and was cut off within this call. Do it in smaller pieces.',
      }

const isRecord = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)
