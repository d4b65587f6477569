/** Streams that go wrong, long conversations, and providers that ask for patience: over real HTTP, in both formats. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { APICallError } from 'ai'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { AgentFiles, AgentTool } from '../runtime.ts'
import { RunStopped } from '../runtime.ts'
import { createBuiltin } from './builtin.ts'
import { retryAfterOf } from './errors.ts'
import { anthropicEvent, openAiChunk, type Reply } from './loopback-provider.ts'
import { anthropicHalf, contextWith, envFor, home, KEY, provider, run, textOf } from './testing.ts'

type Format = 'openai' | 'anthropic'
const HEAD = { 'content-type': 'text/event-stream' }

const half = (format: Format, text: string): string =>
  format === 'openai'
    ? openAiChunk({ role: 'assistant', content: '' }) + openAiChunk({ content: text })
    : anthropicHalf(text)

/** The beginning of a call that never ends. */
const halfCall = (format: Format): string =>
  format === 'openai'
    ? openAiChunk({
        tool_calls: [{ index: 0, id: 'x', type: 'function', function: { name: 'echo', arguments: '{"word":"n' } }],
      })
    : anthropicHalf('').replace(/event: content_block_start[\s\S]*$/, '') +
      anthropicEvent('content_block_start', {
        index: 0,
        content_block: { type: 'tool_use', id: 'x', name: 'echo', input: {} },
      }) +
      anthropicEvent('content_block_delta', {
        index: 0,
        delta: { type: 'input_json_delta', partial_json: '{"word":"n' },
      })

const cut = (begin: string): Reply => ({
  raw: (response) => {
    response.writeHead(200, HEAD)
    response.write(begin, () => setTimeout(() => response.destroy(), 20))
  },
})
const whole = (body: string | Buffer): Reply => ({ raw: (response) => void response.writeHead(200, HEAD).end(body) })

/** A whole answer with one call whose arguments are this text. */
const callWith = (format: Format, json: string, finish?: string): Reply =>
  whole(
    format === 'openai'
      ? openAiChunk({
          tool_calls: [{ index: 0, id: 'x', type: 'function', function: { name: 'echo', arguments: json } }],
        }) +
          openAiChunk({}, finish ?? 'tool_calls') +
          'data: [DONE]\n\n'
      : anthropicHalf('').replace(/event: content_block_start[\s\S]*$/, '') +
          anthropicEvent('content_block_start', {
            index: 0,
            content_block: { type: 'tool_use', id: 'x', name: 'echo', input: {} },
          }) +
          anthropicEvent('content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json: json } }) +
          anthropicEvent('content_block_stop', { index: 0 }) +
          anthropicEvent('message_delta', {
            delta: { stop_reason: finish ?? 'tool_use', stop_sequence: null },
            usage: { output_tokens: 5 },
          }) +
          anthropicEvent('message_stop', {}),
  )

describe.each(['openai', 'anthropic'] as const)('%s', (format) => {
  test('cut and asked again: what is the same is told once, and the answer is whole', async () => {
    const server = await provider(format)
    server.script(cut(half(format, 'The answer is ')), { text: 'The answer is forty two.' })
    const { outcome, events } = await run(envFor(format, server.url))
    expect(outcome).toMatchObject({ status: 'done', summary: 'The answer is forty two.' })
    expect(textOf(events)).toBe('The answer is forty two.')
    expect(events.filter((event) => event.kind === 'message').every((event) => event.data.turn === 1)).toBe(true)
  })

  test('cut and answered otherwise: the broken one is given up, the other told from its beginning', async () => {
    const server = await provider(format)
    server.script(cut(half(format, 'Perhaps it')), { text: 'It is forty two.' })
    const { events } = await run(envFor(format, server.url))
    expect(events).toContainEqual({ kind: 'status', data: expect.objectContaining({ code: 'anew', turn: 1 }) })
    const rest = events.slice(events.findIndex((event) => event.kind === 'status' && event.data.code === 'anew'))
    expect(textOf(rest)).toBe('It is forty two.')
  })

  test('cut within a call: no tool runs for it, once it is whole it runs once', async () => {
    const server = await provider(format)
    server.script(cut(halfCall(format)), { calls: [{ name: 'echo', input: { word: 'now' } }] }, { text: 'Done.' })
    const { outcome, echoed } = await run(envFor(format, server.url))
    expect(outcome).toMatchObject({ status: 'done', toolCalls: 1, turns: 3 })
    expect(echoed).toEqual(['now'])
  })

  test.each(['{"word": oops', '[1, "oops"]', '"oops"'])(
    'a call whose arguments are no object (%s): told to the model, and what goes back is what strict providers accept',
    async (json) => {
      const server = await provider(format)
      server.script(callWith(format, json), { text: 'Sorry.' })
      const { outcome, events, echoed } = await run(envFor(format, server.url))
      expect(outcome).toMatchObject({ status: 'done', summary: 'Sorry.' })
      expect(echoed).toEqual([])
      expect(events).toContainEqual({
        kind: 'tool_result',
        data: expect.objectContaining({ ok: false, output: expect.stringContaining('Wrong input for echo') }),
      })
      const sent = JSON.stringify(server.requests[1]?.body)
      expect(sent).toContain(format === 'openai' ? '"arguments":"{}"' : '"input":{}')
      expect(sent).not.toContain('oops"')
    },
  )

  test('a call that the limit of the answer cut off says so', async () => {
    const server = await provider(format)
    server.script(callWith(format, '{"word": "very lo', format === 'openai' ? 'length' : 'max_tokens'), {
      text: 'Smaller then.',
    })
    const { outcome, events } = await run(envFor(format, server.url))
    expect(outcome.status).toBe('done')
    expect(events).toContainEqual({
      kind: 'tool_result',
      data: expect.objectContaining({ output: expect.stringContaining('smaller pieces') }),
    })
  })

  test('letters cut in two, comments and events that nobody knows, Windows line ends: nothing is lost', async () => {
    const server = await provider(format)
    const text = 'Grüße, 数字 und 🦊.'
    const [begin, end] =
      format === 'openai'
        ? [half(format, text), `${openAiChunk({}, 'stop')}data: [DONE]\n\n`]
        : [
            half(format, text),
            anthropicEvent('content_block_stop', { index: 0 }) +
              anthropicEvent('message_delta', {
                delta: { stop_reason: 'end_turn', stop_sequence: null },
                usage: { output_tokens: 5 },
              }) +
              anthropicEvent('message_stop', {}),
          ]
    const odd = format === 'openai' ? ': keep-alive\n\n' : ': keep-alive\n\nevent: ping\ndata: {"type":"ping"}\n\n'
    const bytes = Buffer.from((odd + begin + odd + end).replaceAll('\n', '\r\n'))
    server.script({
      raw: (response) => {
        response.writeHead(200, HEAD)
        const write = (at: number): void => {
          if (at >= bytes.length) return void response.end()
          response.write(bytes.subarray(at, at + 7), () => setImmediate(write, at + 7))
        }
        write(0)
      },
    })
    const { outcome, events } = await run(envFor(format, server.url))
    expect(outcome).toMatchObject({ status: 'done', summary: text })
    expect(textOf(events)).toBe(text)
  })

  test.each([
    ['nothing at all', ''],
    ['a page of a proxy', '<html><h1>Welcome to the hotel</h1></html>'],
    ['half a line', 'data: {"id":"c","choi'],
    ['bytes', Buffer.from([0, 255, 254, 1, 2, 3, 10, 10])],
  ])('%s with status 200 is no answer', async (_, body) => {
    const server = await provider(format)
    server.script(whole(body))
    const { outcome } = await run(envFor(format, server.url))
    expect(outcome).toMatchObject({ status: 'failed', error: { code: expect.stringMatching(/bad_stream|internal/) } })
    expect(server.requests).toHaveLength(3)
  })

  test('an error in the middle of a stream that began well: asked again', async () => {
    const server = await provider(format)
    const error = { type: 'overloaded_error', message: 'Overloaded' }
    server.script(
      whole(
        half(format, 'Well') +
          (format === 'openai' ? `data: ${JSON.stringify({ error })}\n\n` : anthropicEvent('error', { error })),
      ),
      { text: 'Well done.' },
    )
    const { outcome, events } = await run(envFor(format, server.url))
    expect(outcome).toMatchObject({ status: 'done', summary: 'Well done.' })
    expect(events).toContainEqual({
      kind: 'status',
      data: expect.objectContaining({ code: 'retry', text: expect.stringContaining('Overloaded') }),
    })
  })

  test('a provider that says when is asked then; one that asks for too much is left for later', async () => {
    const server = await provider(format)
    const busy = (after: string): Reply => ({
      status: 429,
      body: '{"error":{"message":"slow down"}}',
      headers: { 'retry-after': after },
    })
    server.script(busy('0'), { text: 'Now.' })
    // By its own patience it would wait for hours here.
    expect((await run(envFor(format, server.url), { caps: { retryMs: 10_000_000 } })).outcome.status).toBe('done')
    server.requests.splice(0)
    server.script(busy('3600'))
    expect((await run(envFor(format, server.url))).outcome).toMatchObject({ error: { code: 'rate_limited' }, turns: 1 })
  })

  test('stopped within the tools: no call more, and nothing is made up for what was not done', async () => {
    const server = await provider(format)
    const abort = new AbortController()
    const stopper: AgentTool = {
      name: 'stopper',
      description: 'Stops.',
      input: z.object({}),
      run: async () => {
        abort.abort(new RunStopped('removed'))
        return { ok: true, text: 'stopped' }
      },
    }
    server.script(
      {
        calls: [
          { name: 'stopper', input: {} },
          { name: 'echo', input: { word: 'never' } },
        ],
      },
      { text: 'no' },
    )
    const { outcome, echoed, events } = await run(envFor(format, server.url), {
      tools: [stopper],
      signal: abort.signal,
    })
    expect(outcome.status).toBe('cancelled')
    expect(echoed).toEqual([])
    expect(server.requests).toHaveLength(1)
    expect(events.filter(({ kind }) => kind === 'tool_call')).toHaveLength(1)
  })
})

const words = (n: number): string => Array.from({ length: n }, (_, index) => `w${index}`).join(' ')
const reader: AgentTool = {
  name: 'reader',
  description: 'Reads something long.',
  input: z.object({ part: z.number() }),
  run: async (value) => ({ ok: true, text: `Part ${(value as { part: number }).part}: ${words(3_000)}` }),
}

async function smallWindow(url: string): Promise<void> {
  const config = { provider: 'openai', base_url: url, api_key: KEY, model: 'm', context_tokens: 30_000 }
  await writeFile(join(home, 'models.json'), JSON.stringify(config), { mode: 0o600 })
}

describe('a conversation that gets long', () => {
  /** Reads ten parts; whoever asks for notes gets `notes`. */
  async function readAll(notes: Reply) {
    const server = await provider('openai')
    await smallWindow(server.url)
    let part = 0
    server.script((body) => {
      if (!body['tools']) return notes
      part += 1
      return part > 10 ? { text: 'Read.' } : { calls: [{ name: 'reader', input: { part } }] }
    })
    const result = await run({}, { tools: [reader] })
    const asked = server.requests.filter(({ body }) => !body['tools'])
    return { ...result, asked, server }
  }
  const sizeOf = (body: unknown): number => JSON.stringify(body).length

  test('the model notes its older part, which is a call with usage of its own; the window is never overrun', async () => {
    const { outcome, usage, events, asked, server } = await readAll({
      text: 'NOTES: parts so far were words.',
      usage: [777, 33],
    })
    expect(outcome).toMatchObject({ status: 'done', summary: 'Read.' })
    expect(asked.length).toBeGreaterThan(0)
    expect(outcome.turns).toBe(11 + asked.length)
    expect(usage).toHaveLength(outcome.turns)
    expect(new Set(usage.map(({ turn }) => turn)).size).toBe(outcome.turns)
    expect(usage.filter(({ inputTokens }) => inputTokens === 777)).toHaveLength(asked.length)
    expect(events).toContainEqual({
      kind: 'status',
      data: expect.objectContaining({ code: 'note', text: expect.stringContaining('replaced by notes') }),
    })
    expect(textOf(events)).not.toContain('NOTES')
    const last = JSON.stringify(server.requests.at(-1)?.body)
    expect(last).toContain('NOTES: parts so far')
    expect(last).toContain('Part 10:')
    expect(last).not.toContain('Part 1:')
    // 15,000 tokens of 30,000 stay free.
    for (const { body } of server.requests) expect(sizeOf(body['messages'])).toBeLessThan(15_000 * 3.6)
  })

  test('no notes come of it: old answers are shortened, and it is not asked for notes over and over', async () => {
    const { outcome, events, asked, server } = await readAll({ text: '' })
    expect(outcome.status).toBe('done')
    expect(asked).toHaveLength(1)
    expect(events).toContainEqual({
      kind: 'status',
      data: expect.objectContaining({ text: expect.stringContaining('were shortened') }),
    })
    for (const { body } of server.requests) expect(sizeOf(body['messages'])).toBeLessThan(15_000 * 3.6)
  })

  test('the provider finds it too long although it should fit: notes once, and again', async () => {
    const server = await provider('openai')
    await smallWindow(server.url)
    let refused = 0
    server.script(
      { calls: [{ name: 'echo', input: { word: 'one' } }] },
      { calls: [{ name: 'echo', input: { word: `two ${words(800)}` } }] },
      { calls: [{ name: 'echo', input: { word: 'three' } }] },
      (body) => {
        if (!body['tools']) return { text: 'Short notes.' }
        if (JSON.stringify(body).includes('Short notes.')) return { text: 'Fine.' }
        refused += 1
        return { status: 400, body: '{"error":{"message":"maximum context length is 9 tokens"}}' }
      },
    )
    const { outcome } = await run({})
    expect(outcome).toMatchObject({ status: 'done', summary: 'Fine.' })
    expect(refused).toBe(1)
  })
})

describe('limits', () => {
  test('two calls in turn, with the same answers: a hint, then the end', async () => {
    const server = await provider('openai')
    let n = 0
    server.script(() => ({ calls: [{ name: 'echo', input: { word: ['a', 'b'][n++ % 2] } }] }))
    const { outcome, echoed } = await run(envFor('openai', server.url))
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'loop', message: expect.stringContaining('three times') },
    })
    expect(echoed).toEqual(['a', 'b', 'a', 'b', 'a', 'b'])
    expect(JSON.stringify(server.requests[4]?.body)).toContain('You go in circles')
  })
})

describe('Retry-After', () => {
  const NOW = Date.parse('2026-03-01T12:00:00Z')
  test.each<[Record<string, string>, number | undefined]>([
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after': '1.5' }, 1_500],
    [{ 'retry-after': 'Sun, 01 Mar 2026 12:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Sun, 01 Mar 2026 11:00:00 GMT' }, 0],
    [{ 'retry-after-ms': '250', 'retry-after': '9' }, 250],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '-5' }, undefined],
    [{}, undefined],
  ])('%j', (responseHeaders, expected) => {
    const error = new APICallError({ message: 'x', url: 'u', requestBodyValues: {}, statusCode: 429, responseHeaders })
    const found = retryAfterOf(error, NOW)
    // A negative number is read as a date of long ago by some parsers.
    expect(found === 0 && expected === undefined ? undefined : found).toBe(expected)
  })
})

describe('Ollama', () => {
  test('without a model named, the first that it has is used', async () => {
    const server = await provider('ollama')
    server.script({ text: 'Here.' })
    const { outcome, usage } = await run({ HQ_MODEL_PROVIDER: 'ollama', HQ_MODEL_BASE_URL: server.url })
    expect(outcome).toMatchObject({ status: 'done', summary: 'Here.' })
    expect(usage).toMatchObject([{ model: 'm-1' }])
  })

  test('one that does not answer, and one that is not there, are told plainly', async () => {
    const server = await provider('ollama')
    const env = { HQ_MODEL_PROVIDER: 'ollama', HQ_MODEL_BASE_URL: server.url.replace('/v1', '/hang') }
    const hanging = await run(env, { builtin: { discoveryMs: 100 } })
    expect(hanging.outcome).toMatchObject({
      error: { code: 'not_configured', message: expect.stringMatching(/could not be asked.*in time/) },
    })
    await server.close()
    expect((await run(env)).outcome.error?.message).toMatch(/could not be asked.*cannot be reached/)
  })
})

describe('BOOT.md', () => {
  const files: AgentFiles = {
    list: async () => ({ ok: true, value: [] }),
    read: async (path) =>
      path === 'BOOT.md' ? { ok: true, value: 'Greet the moon.' } : { ok: false, message: 'none' },
    write: async (path) => ({ ok: true, value: { path } }),
  }
  test('is read at the first wake after a start where enabled, and only then (B1)', async () => {
    const server = await provider('openai')
    server.script({ text: 'ok' })
    const env = envFor('openai', server.url)
    const wake = async (runtime: ReturnType<typeof createBuiltin>, id: string, boot: boolean): Promise<boolean> => {
      const input = {
        runId: 'r',
        attempt: 1,
        agent: { id, slug: id, name: id, description: null, domains: [] },
        item: { id: 'i', event: 'task_assignment' as const, commentId: null, linkId: null, context: {} },
        task: undefined,
        workspace: { name: 'W', owner: 'Ada', timezone: 'UTC' },
        model: null,
        thinking: 'none' as const,
        files,
        boot,
      }
      await runtime.run(
        input,
        {
          onEvent: () => undefined,
          onUsage: async () => undefined,
          onModel: async () => undefined,
          beforeModelCall: async () => undefined,
          tools: [],
        },
        new AbortController().signal,
      )
      return JSON.stringify(server.requests.at(-1)?.body).includes('Greet the moon.')
    }
    const one = createBuiltin(contextWith(env))
    expect([
      await wake(one, 'a', true),
      await wake(one, 'a', true),
      await wake(one, 'b', true),
      await wake(one, 'c', false),
    ]).toEqual([true, false, true, false])
    const restarted = createBuiltin(contextWith({ ...env, HQ_AGENT_BOOT: 'on' }))
    expect([await wake(restarted, 'a', false), await wake(restarted, 'a', false)]).toEqual([true, false])
  })
})
