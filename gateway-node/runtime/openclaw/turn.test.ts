/** The limits and the account of a run in OpenClaw, without OpenClaw (turn.ts, N1–N4). */
import type { RunEvent } from '@hq/shared/domain/runs.ts'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { CAPS } from '../builtin/loop.ts'
import { type CallUsage, RunStopped } from '../runtime.ts'
import type { AgentEvent } from './frames.ts'
import { createTurn, type TurnOptions } from './turn.ts'

function begin(more: Partial<TurnOptions> & { readonly may?: () => Promise<void> } = {}) {
  const events: RunEvent[] = []
  const told: CallUsage[] = []
  let time = 1_000
  const turn = createTurn({
    hooks: {
      onEvent: (event) => void events.push(event),
      onUsage: async (usage) => void told.push(usage),
      onModel: async () => undefined,
      beforeModelCall: more.may ?? (async () => undefined),
      tools: [
        {
          name: 'echo',
          description: '',
          input: z.object({ word: z.string() }),
          run: async (input) => ({ ok: true, text: String((input as { word: string }).word) }),
        },
        { name: 'stops', description: '', input: z.object({}), run: () => Promise.reject(new RunStopped('Paused.')) },
      ],
    },
    caps: CAPS,
    provider: 'openai',
    model: 'gpt-5',
    prices: { 'gpt-5': { input: 1, output: 10 } },
    system: 'rules',
    now: () => time,
    permit: async () => undefined,
    ...more,
  })
  return { turn, events, told, later: (ms: number) => (time += ms) }
}

const event = (stream: string, data: AgentEvent['data']): AgentEvent => ({ runId: 'r', sessionKey: 's', stream, data })

describe('stops (N1)', () => {
  test('pause, budget, task: the gate says the reason, and everything after it too', async () => {
    const { turn } = begin({ may: () => Promise.reject(new RunStopped('The monthly budget is used up.')) })
    expect(await turn.gate()).toBe('The monthly budget is used up.')
    expect(await turn.brake('read', {}, null)).toBe('The monthly budget is used up.')
    expect(await turn.tool('hq_echo', { word: 'x' })).toEqual({ ok: false, text: 'The monthly budget is used up.' })
    expect(await turn.onStop).toEqual({ code: 'stopped', message: 'The monthly budget is used up.' })
  })

  test('the first reason stands', async () => {
    const { turn } = begin()
    turn.stop({ code: 'crashed', message: 'one' })
    turn.stop({ code: 'stopped', message: 'two' })
    expect(turn.stopped()).toEqual({ code: 'crashed', message: 'one' })
  })

  test('a tool that hears of a pause stops the run', async () => {
    const { turn } = begin()
    expect(await turn.tool('hq_stops', {})).toEqual({ ok: false, text: 'Paused.' })
    expect(await turn.gate()).toBe('Paused.')
  })

  test('what is no stop of ours is a fault, not a permission', async () => {
    const { turn } = begin({ may: () => Promise.reject(new Error('database away')) })
    await expect(turn.gate()).rejects.toThrow('database away')
  })
})

describe('caps (N2)', () => {
  test('the same call again and again', async () => {
    const { turn } = begin()
    for (let n = 0; n < CAPS.repeats; n++) expect(await turn.brake('read', { path: 'a' }, null)).toBeUndefined()
    expect(await turn.brake('read', { path: 'b' }, null)).toBeUndefined()
    expect(await turn.brake('read', { path: 'a' }, null)).toContain('read was called 5 times with the same input')
    expect(turn.stopped()?.code).toBe('loop')
  })

  test('tool calls, model calls, tokens', async () => {
    const many = begin({ caps: { ...CAPS, toolCalls: 2 } }).turn
    for (let n = 0; n < 2; n++) expect(await many.brake('read', { n }, null)).toBeUndefined()
    expect(await many.brake('read', { n: 2 }, null)).toContain('after 2 tool calls')
    const calls = begin({ caps: { ...CAPS, turns: 1 } }).turn
    await calls.usage({ input: 1, output: 1 })
    expect(await calls.gate()).toContain('after 1 model calls')
    const tokens = begin({ caps: { ...CAPS, tokens: 100 } }).turn
    await tokens.usage({ input: 60, cacheRead: 30, output: 10 })
    expect(await tokens.gate()).toContain('100 tokens')
  })

  test('time, but not the time in which a person is asked (N3)', async () => {
    let answer: () => void = () => undefined
    const { turn, later } = begin({
      caps: { ...CAPS, wallMs: 60_000 },
      permit: () => new Promise((resolve) => (answer = () => resolve(undefined))),
    })
    const asked = turn.brake('exec', { command: 'ls' }, null)
    await new Promise((resolve) => setImmediate(resolve))
    later(3_600_000)
    answer()
    expect(await asked).toBeUndefined()
    expect(await turn.gate()).toBeUndefined()
    later(60_001)
    expect(await turn.gate()).toContain('after 1 minutes')
  })
})

test('HQ’s own tools are not asked about here, OpenClaw’s are; wrong input is told to the model', async () => {
  const { turn } = begin({ permit: async (tool) => `no ${tool}` })
  expect(await turn.brake('hq_echo', { word: 'x' }, null)).toBeUndefined()
  expect(await turn.brake('exec', {}, null)).toBe('no exec')
  expect(turn.stopped()).toBeUndefined()
  expect(await turn.tool('hq_echo', { word: 'x' })).toEqual({ ok: true, text: 'x' })
  expect(await turn.tool('hq_echo', {})).toMatchObject({ ok: false, text: expect.stringContaining('word') })
  expect(await turn.tool('echo', { word: 'x' })).toMatchObject({ ok: false })
})

test('usage is told in order, what came from a cache is part of the input (N4)', async () => {
  const { turn, told } = begin()
  await Promise.all([turn.usage({ input: 70, cacheRead: 30, output: 20 }), turn.usage({ input: 5, output: 1 })])
  expect(
    told.map(({ turn: n, inputTokens, outputTokens, cacheRead }) => [n, inputTokens, outputTokens, cacheRead]),
  ).toEqual([
    [1, 100, 20, 30],
    [2, 5, 1, 0],
  ])
  expect(told[0]?.costUsd).toBeCloseTo((70 + 30 * 0.1 + 20 * 10) / 1e6, 8)
})

test('a report that comes after the end is waited for, one that never comes is made up for, none is counted twice', async () => {
  const late = begin()
  const settled = late.turn.settleUsage({ input: 10, output: 5 })
  await late.turn.usage({ input: 10, output: 5 })
  await settled
  expect(late.told).toHaveLength(1)
  const lost = begin()
  await lost.turn.usage({ input: 10, output: 5 })
  await lost.turn.settleUsage({ input: 30, output: 9, cacheRead: 2 })
  expect(lost.told.map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens])).toEqual([
    [10, 5],
    [22, 4],
  ])
})

test('the log: text by rounds, each call and each result once (N4)', () => {
  const { turn, events } = begin()
  turn.event(event('lifecycle', { phase: 'model', provider: 'hq' }))
  turn.event(event('assistant', { delta: 'Let' }))
  turn.event(event('assistant', { delta: ' me.' }))
  for (let n = 0; n < 2; n++) {
    turn.event(event('tool', { phase: 'start', name: 'read', toolCallId: 'c1', args: { path: 'a' } }))
    turn.event(
      event('tool', {
        phase: 'result',
        name: 'read',
        toolCallId: 'c1',
        isError: true,
        result: { content: [{ type: 'text', text: 'no' }] },
      }),
    )
  }
  turn.event(event('lifecycle', { phase: 'model', provider: 'hq' }))
  turn.event(event('assistant', { delta: 'Done.' }))
  turn.event(event('item', { phase: 'start', name: 'read' }))
  expect(events).toEqual([
    { kind: 'message', data: { turn: 1, text: 'Let' } },
    { kind: 'message', data: { turn: 1, text: ' me.' } },
    { kind: 'tool_call', data: { turn: 1, call: 'c1', tool: 'read', input: { path: 'a' } } },
    { kind: 'tool_result', data: { turn: 1, call: 'c1', tool: 'read', ok: false, output: 'no' } },
    { kind: 'message', data: { turn: 2, text: 'Done.' } },
  ])
  expect(turn.counts().text).toBe('Done.')
})
