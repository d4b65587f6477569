/**
 * The log of a run: events become rows of `agent_run_events`, in order, without flooding the outbox.
 *
 *  L1 Text arrives in small deltas; consecutive pieces of the same kind and turn are joined. There is at most one write in `GAP_MS`, and after
 *     `CALM_AFTER` writes at most one in four times that.
 *  L2 No piece is longer than `PIECE_CHARS` (R3); longer text becomes several rows.
 *  L3 `flush` returns when everything recorded so far is durable. A failed write is tried again with the next one; nothing is dropped or reordered.
 */
import { cut, PIECE_CHARS, type RunEvent } from '@hq/shared/domain/runs.ts'
import type { Replica } from '@hq/shared/sync/contract.ts'

export const GAP_MS = 250
export const CALM_AFTER = 80

export interface Recorder {
  record(event: RunEvent): void
  flush(): Promise<void>
}

export interface RecorderOptions {
  readonly replica: Replica
  readonly runId: string
  readonly gatewayId: string
  readonly tenantId: string
  readonly newId: () => string
  readonly onError: (error: unknown) => void
}

export function createRecorder({ replica, runId, gatewayId, tenantId, newId, onError }: RecorderOptions): Recorder {
  let waiting: RunEvent[] = []
  let seq = 0
  let writes = 0
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  const store = async (events: readonly RunEvent[]): Promise<void> => {
    const first = seq
    await replica.write(
      async (tx) => {
        for (const [index, event] of events.entries()) {
          await tx.query(
            'insert into agent_run_events (id, tenant_id, gateway_id, run_id, seq, kind, data) values ($1, $2, $3, $4, $5, $6, $7)',
            [newId(), tenantId, gatewayId, runId, first + index, event.kind, event.data],
          )
        }
      },
      { runId },
    )
    seq += events.length
    writes += 1
  }

  const drain = async (): Promise<void> => {
    const events = waiting
    if (events.length === 0) return
    waiting = []
    try {
      await store(events.flatMap(inPieces))
    } catch (error) {
      waiting = [...events, ...waiting]
      throw error
    }
  }

  const write = (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    const next = writing.then(drain)
    writing = next.catch(() => undefined) // the caller of this write has the error; the next write tries again
    return next
  }

  return {
    record(event) {
      const last = waiting.at(-1)
      const joined = last && join(last, event)
      if (joined) waiting[waiting.length - 1] = joined
      else waiting.push(event)
      timer ??= setTimeout(() => void write().catch(onError), writes < CALM_AFTER ? GAP_MS : GAP_MS * 4)
    },
    flush: write,
  }
}

/** L1. */
function join(last: RunEvent, next: RunEvent): RunEvent | undefined {
  if (last.kind === 'message' && next.kind === 'message' && last.data.turn === next.data.turn) {
    return { kind: 'message', data: { turn: last.data.turn, text: last.data.text + next.data.text } }
  }
  if (last.kind === 'reasoning' && next.kind === 'reasoning' && last.data.turn === next.data.turn) {
    return { kind: 'reasoning', data: { turn: last.data.turn, text: last.data.text + next.data.text } }
  }
  return undefined
}

/** L2. */
function inPieces(event: RunEvent): RunEvent[] {
  if (event.kind === 'message' || event.kind === 'reasoning') {
    const pieces: RunEvent[] = []
    for (let rest = event.data.text; rest !== ''; ) {
      const { text } = cut(rest, PIECE_CHARS)
      pieces.push({ kind: event.kind, data: { turn: event.data.turn, text } })
      rest = rest.slice(text.length)
    }
    return pieces
  }
  if (event.kind === 'tool_result') {
    const { text, truncated } = cut(event.data.output, PIECE_CHARS)
    return [truncated ? { kind: 'tool_result', data: { ...event.data, output: text, truncated: true } } : event]
  }
  if (event.kind === 'tool_call' && JSON.stringify(event.data.input ?? null).length > PIECE_CHARS) {
    const input = cut(JSON.stringify(event.data.input), PIECE_CHARS).text
    return [{ kind: 'tool_call', data: { ...event.data, input, truncated: true } }]
  }
  return [event]
}
