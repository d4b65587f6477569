/** For tests of the builtin runtime: a home, providers on the loopback that end with the test, one run with an `echo` tool. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunEvent } from '@hq/shared/domain/runs.ts'
import { afterEach, beforeEach, expect } from 'vitest'
import { z } from 'zod'
import type { AgentTool, CallUsage, RunHooks, RunInput, RunOutcome } from '../runtime.ts'
import { type BuiltinOptions, createBuiltin } from './builtin.ts'
import type { Caps } from './loop.ts'
import { anthropicEvent, type Format, type Loopback, startLoopback } from './loopback-provider.ts'

export const KEY = 'very secret 1234567890'
export let home: string
const open: Loopback[] = []
export const problems = new Map<string, string>()
const logged: string[] = []

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'hq-runtime-'))
  problems.clear()
  logged.length = 0
})

afterEach(async () => {
  await Promise.all(open.splice(0).map((loopback) => loopback.close()))
  await rm(home, { recursive: true, force: true })
})

export async function provider(format: Format): Promise<Loopback> {
  const loopback = await startLoopback(format)
  open.push(loopback)
  return loopback
}

export const contextWith = (env: Record<string, string>) => ({
  home,
  env,
  now: Date.now,
  log: (_level: unknown, message: string, detail?: unknown) => void logged.push(`${message} ${JSON.stringify(detail)}`),
  problems: {
    report: (code: string, message: string) => void problems.set(code, message),
    clear: (code: string) => void problems.delete(code),
    list: () => [],
    onChange: () => () => undefined,
  },
})

export const envFor = (format: 'openai' | 'anthropic', url: string): Record<string, string> => ({
  HQ_MODEL_PROVIDER: format,
  HQ_MODEL_BASE_URL: url,
  HQ_MODEL_API_KEY: KEY,
  HQ_MODEL: format === 'openai' ? 'gpt-4o-mini' : 'claude-haiku-4-5',
})

const input: RunInput = {
  runId: 'run',
  attempt: 1,
  agent: { id: 'a', slug: 'ann', name: 'Ann', description: 'Helps.', domains: [] },
  item: { id: 'i', event: 'task_assignment', commentId: null, linkId: null, context: {} },
  task: undefined,
  workspace: { name: 'W', owner: 'Ada', timezone: 'UTC' },
  model: null,
  thinking: 'none',
  files: undefined,
}

export interface Recorded {
  outcome: RunOutcome
  events: RunEvent[]
  usage: CallUsage[]
  echoed: string[]
}

export async function run(
  env: Record<string, string>,
  options: {
    caps?: Partial<Caps>
    input?: Partial<RunInput>
    beforeModelCall?: RunHooks['beforeModelCall']
    signal?: AbortSignal
    tools?: readonly AgentTool[]
    builtin?: Partial<BuiltinOptions>
  } = {},
): Promise<Recorded> {
  const events: RunEvent[] = []
  const usage: CallUsage[] = []
  const echoed: string[] = []
  const echo: AgentTool = {
    name: 'echo',
    description: 'Says it again.',
    input: z.object({ word: z.string() }),
    run: async (value) => {
      const { word } = value as { word: string }
      echoed.push(word)
      if (word === 'throw') throw new Error('the tool broke')
      return { ok: word !== 'refuse', text: word === 'refuse' ? 'Refused: no.' : `You said ${word}` }
    },
  }
  const runtime = createBuiltin(contextWith(env), {
    caps: { retryMs: 1, ...options.caps },
    demoPaceMs: 0,
    ...options.builtin,
  })
  const outcome = await runtime.run(
    { ...input, ...options.input },
    {
      onEvent: (event) => events.push(event),
      onUsage: async (call) => void usage.push(call),
      onModel: async () => undefined,
      beforeModelCall: options.beforeModelCall ?? (async () => undefined),
      tools: [echo, ...(options.tools ?? [])],
    },
    options.signal ?? new AbortController().signal,
  )
  expect(JSON.stringify({ outcome, events, logged, problems: [...problems] })).not.toContain(KEY)
  return { outcome, events, usage, echoed }
}

/** The beginning of an answer that never ends. */
export const anthropicHalf = (text: string): string =>
  anthropicEvent('message_start', {
    message: {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 9, output_tokens: 1 },
    },
  }) +
  anthropicEvent('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
  anthropicEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })

export const textOf = (events: readonly RunEvent[]): string =>
  events.flatMap((event) => (event.kind === 'message' ? [event.data.text] : [])).join('')
