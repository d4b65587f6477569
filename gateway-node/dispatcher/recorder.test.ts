import { randomUUID } from 'node:crypto'
import { PIECE_CHARS, type RunEvent } from '@hq/shared/domain/runs.ts'
import type { Replica } from '@hq/shared/sync/contract.ts'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createRecorder, GAP_MS } from './recorder.ts'

interface Stored {
  seq: number
  kind: string
  data: { text?: string; turn?: number; output?: string; truncated?: boolean }
}

let stored: Stored[]
let writes: number
let fail: boolean

/** Only what a recorder needs: an insert per event, in one write. */
const replica = {
  write: async (work: (tx: { query: (sql: string, params: unknown[]) => Promise<unknown[]> }) => Promise<unknown>) => {
    if (fail) throw new Error('disk full')
    writes += 1
    return {
      seq: writes,
      result: await work({
        query: async (_sql, params) => {
          stored.push({ seq: params[4] as number, kind: params[5] as string, data: params[6] as Stored['data'] })
          return []
        },
      }),
    }
  },
} as unknown as Replica

const recorder = (errors: unknown[] = []) =>
  createRecorder({
    replica,
    runId: 'r',
    gatewayId: 'g',
    tenantId: 't',
    newId: randomUUID,
    onError: (error) => errors.push(error),
  })
const say = (text: string, turn = 1): RunEvent => ({ kind: 'message', data: { turn, text } })

beforeEach(() => {
  stored = []
  writes = 0
  fail = false
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('a thousand deltas in ten seconds: at most four rows a second, no letter lost (L1)', async () => {
  const log = recorder()
  for (let n = 0; n < 1000; n += 1) {
    log.record(say(`${n} `))
    await vi.advanceTimersByTimeAsync(10)
  }
  await log.flush()
  expect(stored.length).toBeLessThanOrEqual(10_000 / GAP_MS + 1)
  expect(stored.map(({ data }) => data.text).join('')).toBe(Array.from({ length: 1000 }, (_, n) => `${n} `).join(''))
  expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index))
})

test('turns and kinds are not joined, and their order stays', async () => {
  const log = recorder()
  log.record(say('a'))
  log.record(say('b', 2))
  log.record({ kind: 'tool_call', data: { turn: 2, call: 'x', tool: 't', input: {} } })
  log.record(say('c', 2))
  await log.flush()
  expect(stored.map(({ kind, data }) => `${kind} ${data.text ?? ''}`)).toEqual([
    'message a',
    'message b',
    'tool_call ',
    'message c',
  ])
  expect(writes).toBe(1)
})

test('pieces are bounded, and say when something was cut (L2)', async () => {
  const log = recorder()
  log.record(say('😀'.repeat(PIECE_CHARS)))
  log.record({
    kind: 'tool_result',
    data: { turn: 1, call: 'x', tool: 't', ok: true, output: 'y'.repeat(PIECE_CHARS * 3) },
  })
  await log.flush()
  expect(
    stored
      .slice(0, -1)
      .map(({ data }) => data.text)
      .join(''),
  ).toBe('😀'.repeat(PIECE_CHARS))
  for (const { data } of stored) expect((data.text ?? data.output ?? '').length).toBeLessThanOrEqual(PIECE_CHARS)
  expect(stored.at(-1)?.data.truncated).toBe(true)
})

test('a write that fails loses nothing: the next one brings it (L3)', async () => {
  const errors: unknown[] = []
  const log = recorder(errors)
  fail = true
  log.record(say('one '))
  await vi.advanceTimersByTimeAsync(GAP_MS + 1)
  expect(errors).toHaveLength(1)
  await expect(log.flush()).rejects.toThrow('disk full')
  fail = false
  log.record(say('two'))
  await log.flush()
  expect(stored.map(({ data }) => data.text).join('')).toBe('one two')
  expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index))
})
