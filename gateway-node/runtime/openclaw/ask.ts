/**
 * One turn, asked of OpenClaw over the socket, to its end.
 *
 *  Q1 The answer of a run whose connection was lost is waited for again (`agent.wait`), not asked a second time: the run's id is its idempotency key.
 *  Q2 After a stop the run is aborted there, and given `ABORT_MS` to say so; then it is left, and its gates stay shut.
 */
import { cut, type FailureCode } from '@hq/shared/domain/runs.ts'
import type { RunInput, RunOutcome } from '../runtime.ts'
import { type RunResult, runResultSchema } from './frames.ts'
import { ConnectionLost, type OpenClawSocket, RequestRefused } from './socket.ts'
import type { Stopped, Turn } from './turn.ts'

export interface TurnRequest {
  readonly socket: OpenClawSocket
  readonly turn: Turn
  readonly signal: AbortSignal
  readonly now: () => number
  readonly agentId: string
  readonly sessionKey: string
  readonly runId: string
  readonly message: string
  /** `provider/model`, as OpenClaw's configuration has it. */
  readonly model: string
  readonly thinking: RunInput['thinking']
}

const ABORT_MS = 5_000
/** Of one `agent.wait`. */
const WAIT_MS = 20_000
const THINKING = { none: 'off', low: 'low', medium: 'medium', high: 'high' } as const

export async function askOpenClaw(request: TurnRequest): Promise<RunOutcome> {
  const { socket, turn, signal, sessionKey, runId } = request
  const given = new AbortController()
  const abort = (): void => turn.stop({ code: 'stopped', message: 'The run was stopped.' })
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  const clock = setInterval(() => {
    if (request.now() >= turn.deadline()) turn.stop({ code: 'too_long', message: 'The run took longer than it may.' })
  }, 1_000)
  try {
    const ended = answerOf(request, given.signal)
    const first = await Promise.race([ended, turn.onStop.then((): 'stop' => 'stop')])
    if (first !== 'stop' && !turn.stopped()) {
      await turn.settleUsage(first.result?.meta?.agentMeta?.usage ?? {})
      return outcomeOf(turn, first)
    }
    const stopped = turn.stopped()
    if (first === 'stop' && stopped?.code !== 'crashed') {
      await socket.request('chat.abort', { sessionKey, runId }, { timeoutMs: ABORT_MS }).catch(() => undefined) // it may be over already, or the connection is: the gates stay shut
      await Promise.race([ended.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, ABORT_MS))])
    }
    ended.catch(() => undefined)
    return stoppedOutcome(turn, stopped)
  } finally {
    given.abort()
    clearInterval(clock)
    signal.removeEventListener('abort', abort)
  }
}

/** Q1 */
async function answerOf(request: TurnRequest, given: AbortSignal): Promise<RunResult> {
  const { socket, agentId, sessionKey, runId, message, model, thinking } = request
  let asked = false
  for (;;) {
    try {
      await socket.up(given)
      if (!asked) {
        await socket
          .request('sessions.patch', { key: sessionKey, model }, { signal: given })
          .catch((error: unknown) => {
            // A session that is new has no entry yet; its agent's model counts then.
            if (!(error instanceof RequestRefused)) throw error
          })
        const answer = await socket.request(
          'agent',
          {
            agentId,
            sessionKey,
            message,
            idempotencyKey: runId,
            deliver: false,
            ...(thinking === 'none' ? {} : { thinking: THINKING[thinking] }),
          },
          { twoAnswers: true, timeoutMs: 2 ** 31 - 1, signal: given, onAccepted: () => (asked = true) },
        )
        return runResultSchema.parse(answer)
      }
      const snapshot = runResultSchema.parse(
        await socket.request(
          'agent.wait',
          { runId, timeoutMs: WAIT_MS },
          { timeoutMs: WAIT_MS + 10_000, signal: given },
        ),
      )
      if (snapshot.status !== 'timeout' && snapshot.status !== 'pending' && snapshot.status !== 'accepted')
        return snapshot
    } catch (error) {
      if (!(error instanceof ConnectionLost) || given.aborted) throw error
    }
  }
}

function outcomeOf(turn: Turn, { status, summary, error, result }: RunResult): RunOutcome {
  const { turns, toolCalls, text } = turn.counts()
  const payloads = result?.payloads ?? []
  const said =
    payloads
      .map((payload) => payload.text ?? '')
      .join('\n')
      .trim() || text.trim()
  const wrong =
    status !== 'ok' || result?.meta?.aborted === true || payloads.some((payload) => payload.isError === true)
  if (!wrong)
    return turns === 0 && toolCalls === 0
      ? {
          status: 'failed',
          summary: null,
          error: { code: 'nothing_done', message: 'The model was not asked at all.' },
          turns,
          toolCalls,
        }
      : { status: 'done', summary: said === '' ? null : cut(said, 2_000).text, turns, toolCalls }
  const words =
    [wordsOf(error), wordsOf(result?.meta?.error), said, summary ?? ''].find((each) => each !== '') ?? status
  return {
    status: 'failed',
    summary: null,
    error: { code: codeOf(words), message: `OpenClaw: ${cut(words, 500).text}` },
    turns,
    toolCalls,
  }
}

function stoppedOutcome(turn: Turn, stopped: Stopped | undefined): RunOutcome {
  const { turns, toolCalls, text } = turn.counts()
  const summary = text.trim() === '' ? null : cut(text.trim(), 2_000).text
  if (!stopped || stopped.code === 'stopped') return { status: 'cancelled', summary, turns, toolCalls }
  return { status: 'failed', summary, error: { code: stopped.code, message: stopped.message }, turns, toolCalls }
}

/** For what went wrong before or around the turn. */
export function failureOf(error: unknown): { readonly code: FailureCode; readonly message: string } {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof RequestRefused) return { code: codeOf(message), message }
  return {
    code: 'crashed',
    message: message.startsWith('OpenClaw') ? message : `OpenClaw can’t work just now: ${message}`,
  }
}

const KINDS: readonly (readonly [RegExp, FailureCode])[] = [
  [/\b401\b|unauthori[sz]ed|invalid.{0,10}api.?key|authentication/i, 'unauthorized'],
  [/\b403\b|forbidden/i, 'forbidden'],
  [/\b429\b|rate.?limit|quota/i, 'rate_limited'],
  [/\b404\b.*model|model.*(not found|does not exist|unknown)/i, 'model_missing'],
  [/ECONNREFUSED|ENOTFOUND|fetch failed|network|connection error/i, 'unreachable'],
  [/timed? ?out|TIMEOUT/i, 'timeout'],
  [/\b5\d\d\b|overloaded|unavailable/i, 'provider_down'],
  [/context.{0,20}(length|window|overflow|full)/i, 'context_full'],
]

const codeOf = (words: string): FailureCode => KINDS.find(([pattern]) => pattern.test(words))?.[1] ?? 'crashed'

function wordsOf(value: unknown): string {
  if (typeof value === 'string') return value.trim()
  if (typeof value === 'object' && value !== null && 'message' in value) return String(value.message).trim()
  return ''
}
