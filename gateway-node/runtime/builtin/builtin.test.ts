/** The builtin runtime against real HTTP: two formats, and the ways in which providers go wrong. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createRuntimes } from '../registry.ts'
import { RunStopped } from '../runtime.ts'
import { anthropicEvent, openAiChunk } from './loopback-provider.ts'
import { anthropicHalf, contextWith, envFor, home, KEY, problems, provider, run, textOf } from './testing.ts'

describe.each(['openai', 'anthropic'] as const)('%s', (format) => {
  test('the tool loop: streamed text, calls with results, usage with cost per call', async () => {
    const server = await provider(format)
    server.script(
      {
        text: 'I will echo. ',
        calls: [
          { name: 'echo', input: { word: 'one' } },
          { name: 'echo', input: { word: 'two' } },
        ],
      },
      { text: 'All said.', usage: [300, 10] },
    )
    const { outcome, events, usage, echoed } = await run(envFor(format, server.url))
    expect(outcome).toEqual({ status: 'done', summary: 'All said.', turns: 2, toolCalls: 2 })
    expect(echoed).toEqual(['one', 'two'])
    expect(textOf(events)).toBe('I will echo. All said.')
    expect(events.filter(({ kind }) => kind === 'tool_result').map(({ data }) => data)).toMatchObject([
      { ok: true, output: 'You said one' },
      { ok: true, output: 'You said two' },
    ])
    expect(usage).toMatchObject([
      { turn: 1, provider: format, inputTokens: 100, outputTokens: 20 },
      { turn: 2, inputTokens: 300, outputTokens: 10 },
    ])
    const [price, out] = format === 'openai' ? [0.15, 0.6] : [1, 5]
    expect(usage[0]?.costUsd).toBeCloseTo((100 * price + 20 * out) / 1e6, 8)
    expect(JSON.stringify(server.requests[1]?.body)).toContain('You said two')
    expect(server.requests[0]?.body['stream']).toBe(true)
    expect(server.requests[0]?.headers[format === 'openai' ? 'authorization' : 'x-api-key']).toContain(KEY)
  })

  test('wrong input, unknown tools, refusals and broken tools are told to the model (O4)', async () => {
    const server = await provider(format)
    server.script(
      { calls: [{ name: 'echo', input: { wrong: 1 } }] },
      { calls: [{ name: 'nothing', input: {} }] },
      {
        calls: [
          { name: 'echo', input: { word: 'refuse' } },
          { name: 'echo', input: { word: 'throw' } },
        ],
      },
      { text: 'I give up.' },
    )
    const { outcome, events } = await run(envFor(format, server.url))
    expect(outcome).toMatchObject({ status: 'done', summary: 'I give up.', toolCalls: 4 })
    const outputs = events.flatMap((event) =>
      event.kind === 'tool_result' ? [`${event.data.ok} ${event.data.output}`] : [],
    )
    expect(outputs[0]).toMatch(/^false Wrong input for echo: word/)
    expect(outputs[1]).toMatch(/^false There is no tool “nothing”/)
    expect(outputs[2]).toBe('false Refused: no.')
    expect(outputs[3]).toBe('false echo failed: the tool broke')
  })

  test.each([
    [401, '{"error":{"type":"authentication_error","message":"bad key"}}', 'unauthorized', /refused the key/, 1],
    [403, '{"error":{"message":"region"}}', 'forbidden', /region/, 1],
    [404, '{"error":{"message":"no such model"}}', 'model_missing', /has no model/, 1],
    [400, '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}', 'context_full', /too long/, 1],
    [400, '{"error":{"message":"strange"}}', 'bad_request', /strange/, 1],
    [429, '{"error":{"message":"slow down"}}', 'rate_limited', /too often/, 3],
    [429, '{"error":{"message":"You exceeded your current quota"}}', 'forbidden', /no credit/, 1],
    [500, '<html><h1>Oops</h1></html>', 'provider_down', /problem of its own.*Oops/, 3],
  ] as const)('status %i: one plain sentence, %s', async (status, body, code, sentence, calls) => {
    const server = await provider(format)
    server.script({ status, body })
    const { outcome } = await run(envFor(format, server.url))
    expect(outcome).toMatchObject({ status: 'failed', error: { code } })
    expect(outcome.error?.message).toMatch(sentence)
    expect(server.requests).toHaveLength(calls)
  })

  test('a stream that cannot be understood: nothing of it is used, asked again, then done (O3)', async () => {
    const server = await provider(format)
    const broken =
      format === 'openai'
        ? `${openAiChunk({ tool_calls: [{ index: 0, id: 'x', type: 'function', function: { name: 'echo', arguments: '{"word":"no"}' } }] })}data: {not json\n\n`
        : `${anthropicEvent('message_start', { message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 9, output_tokens: 1 } } })}event: content_block_delta\ndata: {not json\n\n`
    server.script(
      { raw: (response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(broken) },
      { text: 'Better now.' },
    )
    const { outcome, events, echoed } = await run(envFor(format, server.url))
    expect(outcome).toMatchObject({ status: 'done', summary: 'Better now.', turns: 2, toolCalls: 0 })
    expect(echoed).toEqual([])
    expect(events).toContainEqual({ kind: 'status', data: expect.objectContaining({ code: 'retry' }) })
  })

  test('a connection that is cut in the middle, every time: fails with that sentence, tokens are counted (O5)', async () => {
    const server = await provider(format)
    const said = 'I was about to say something important when'
    const begin = format === 'openai' ? openAiChunk({ content: said }) : anthropicHalf(said)
    server.script({
      raw: (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(begin, () => setTimeout(() => response.destroy(), 20))
      },
    })
    const { outcome, usage } = await run(envFor(format, server.url))
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: expect.stringMatching(/unreachable|bad_stream/) },
    })
    expect(outcome.error?.message).toMatch(/cut|broke off/)
    expect(server.requests).toHaveLength(3)
    expect(usage).toHaveLength(3)
    expect(usage[0]?.outputTokens).toBeGreaterThan(0)
  })

  test('a stream that ends without an end is not taken for an answer', async () => {
    const server = await provider(format)
    const begin = format === 'openai' ? openAiChunk({ content: 'Half' }) : anthropicHalf('Half')
    server.script({ raw: (response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(begin) })
    expect((await run(envFor(format, server.url))).outcome).toMatchObject({
      status: 'failed',
      error: { code: 'bad_stream' },
    })
  })

  test('a model that refuses', async () => {
    const server = await provider(format)
    server.script({ text: 'No.', finish: format === 'openai' ? 'content_filter' : 'refusal' })
    expect((await run(envFor(format, server.url))).outcome).toMatchObject({
      status: 'failed',
      error: { code: 'refused' },
    })
  })

  test('silence ends in a timeout', async () => {
    const server = await provider(format)
    server.script({
      raw: (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
    })
    const { outcome } = await run(envFor(format, server.url), { caps: { silenceMs: 60, retries: 0 } })
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'timeout' } })
  })
})

describe('ollama', () => {
  const env = (url: string): Record<string, string> => ({
    HQ_MODEL_PROVIDER: 'ollama',
    HQ_MODEL_BASE_URL: url,
    HQ_MODEL: 'qwen3',
  })

  test('the tool loop; its tokens are counted, without a price', async () => {
    const server = await provider('ollama')
    server.script(
      { text: 'I will echo. ', calls: [{ name: 'echo', input: { word: 'one' } }] },
      { text: 'All said.', usage: [300, 10] },
    )
    const { outcome, usage, echoed, events } = await run(env(server.url))
    expect(outcome).toEqual({ status: 'done', summary: 'All said.', turns: 2, toolCalls: 1 })
    expect(echoed).toEqual(['one'])
    expect(textOf(events)).toBe('I will echo. All said.')
    expect(usage).toMatchObject([
      { provider: 'ollama', model: 'qwen3', inputTokens: 100, outputTokens: 20, costUsd: null },
      { inputTokens: 300, outputTokens: 10 },
    ])
    expect(JSON.stringify(server.requests[1]?.body)).toContain('You said one')
  })

  test('a model that is not pulled, and a line that is no JSON', async () => {
    const server = await provider('ollama')
    server.script({ status: 404, body: '{"error":"model \'qwen3\' not found"}' })
    expect((await run(env(server.url))).outcome).toMatchObject({ status: 'failed', error: { code: 'model_missing' } })
    server.script({ raw: (response) => response.writeHead(200).end('{"model":"m","message":{"role":"assi') })
    expect((await run(env(server.url))).outcome).toMatchObject({ status: 'failed', error: { code: 'bad_stream' } })
  })

  test('lists what is installed', async () => {
    const server = await provider('ollama')
    expect(await createRuntimes(contextWith(env(server.url))).models()).toMatchObject([
      { provider: 'ollama', model: 'm-1' },
      { model: 'm-2' },
    ])
  })
})

test('what a provider echoes of the key never gets out', async () => {
  const server = await provider('openai')
  server.script({
    status: 400,
    body: JSON.stringify({ error: { message: `Incorrect key ${KEY} (or gsk-abcdefgh…), see docs` } }),
  })
  const { outcome } = await run(envFor('openai', server.url))
  expect(outcome.error?.message).toContain('Incorrect key •••')
  expect(outcome.error?.message).not.toContain('gsk-abcdefgh')
})

describe('caps and stops', () => {
  const circle = { text: 'Again. ', calls: [{ name: 'echo', input: { word: 'x' } }] }

  test('the same call with the same input over and over (O2)', async () => {
    const server = await provider('openai')
    server.script(circle)
    const { outcome, echoed } = await run(envFor('openai', server.url))
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'loop' } })
    expect(echoed).toHaveLength(4)
  })

  test('turns, tool calls, tokens, and wall time (O2)', async () => {
    const server = await provider('openai')
    let n = 0
    server.script(() => {
      n += 1
      return { calls: [{ name: 'echo', input: { word: String(n) } }] }
    })
    const env = envFor('openai', server.url)
    expect((await run(env, { caps: { turns: 3 } })).outcome).toMatchObject({
      error: { code: 'too_many_turns' },
      turns: 3,
    })
    expect((await run(env, { caps: { toolCalls: 2 } })).outcome).toMatchObject({
      error: { code: 'too_many_tool_calls' },
    })
    expect((await run(env, { caps: { tokens: 300 } })).outcome).toMatchObject({
      error: { code: 'too_many_tokens' },
      turns: 3,
    })
    server.script({ raw: (response) => void response.writeHead(200).flushHeaders() })
    expect((await run(env, { caps: { wallMs: 80 } })).outcome).toMatchObject({ error: { code: 'too_long' } })
  })

  test('stopped before a call: no call is made (X1); aborted in a call: cancelled (X3)', async () => {
    const server = await provider('openai')
    server.script({ text: 'x' })
    const env = envFor('openai', server.url)
    const stopped = await run(env, { beforeModelCall: () => Promise.reject(new RunStopped('paused')) })
    expect(stopped.outcome.status).toBe('cancelled')
    expect(server.requests).toHaveLength(0)
    const abort = new AbortController()
    server.script({
      raw: (response) => {
        response.writeHead(200).flushHeaders()
        setTimeout(() => abort.abort(new RunStopped('removed')), 20)
      },
    })
    expect((await run(env, { signal: abort.signal })).outcome).toMatchObject({ status: 'cancelled', turns: 1 })
  })

  test('unreachable: told plainly, after retries that each asked for leave (O1, O3)', async () => {
    const server = await provider('openai')
    await server.close()
    let asked = 0
    const { outcome, usage } = await run(envFor('openai', server.url), {
      beforeModelCall: async () => {
        asked += 1
      },
    })
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'unreachable', message: expect.stringContaining('refused') },
    })
    expect(asked).toBe(3)
    expect(usage).toEqual([])
  })
})

describe('configuration', () => {
  test('nothing set: the demo model; no request, no usage', async () => {
    const { outcome, usage } = await run({})
    // It asks for my_tasks, which this test does not give it, and says so.
    expect(outcome).toMatchObject({ status: 'done', summary: expect.stringContaining('I could not go on') })
    expect(usage).toEqual([])
  })

  test.each([
    [{ HQ_MODEL_PROVIDER: 'nope' }, /no model provider “nope”/],
    [{ HQ_MODEL_PROVIDER: 'openai', HQ_MODEL_API_KEY: KEY }, /No model is chosen/],
    [{ HQ_MODEL_PROVIDER: 'anthropic', HQ_MODEL: 'm' }, /needs a key/],
    [{ HQ_MODEL_PROVIDER: 'openai', HQ_MODEL: 'm', HQ_MODEL_BASE_URL: 'file:///x' }, /not an http/],
  ])('%j is an error in a sentence, never the demo model', async (env, sentence) => {
    const { outcome } = await run(env as Record<string, string>)
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'not_configured', message: expect.stringMatching(sentence) },
    })
  })

  test('models.json: used, corrected by the environment, and a broken one does not show its key', async () => {
    const server = await provider('openai')
    server.script({ text: 'hi', usage: [1_000_000, 0] })
    const file = join(home, 'models.json')
    await writeFile(
      file,
      JSON.stringify({
        provider: 'openai',
        base_url: server.url,
        api_key: KEY,
        model: 'my-model',
        prices: { 'my-model': { input: 2, output: 4 } },
      }),
      { mode: 0o600 },
    )
    expect((await run({})).usage).toMatchObject([{ model: 'my-model', costUsd: 2 }])
    expect((await run({ HQ_MODEL: 'other' })).usage).toMatchObject([{ model: 'other', costUsd: null }])
    expect((await run({}, { input: { model: 'openai/own' } })).usage).toMatchObject([{ model: 'own' }])
    expect(server.requests.at(-1)?.body['model']).toBe('own')
    await writeFile(file, `{"api_key": "${KEY}", oops`)
    expect((await run({})).outcome).toMatchObject({
      error: { code: 'not_configured', message: expect.stringContaining('not JSON') },
    })
    expect(problems.get('models')).toContain('not JSON')
  })

  test('the list of models; a provider that is down is a problem, not an exception', async () => {
    const server = await provider('openai')
    const runtimes = createRuntimes(contextWith(envFor('openai', server.url)))
    expect(runtimes.runtimes()).toEqual(['builtin'])
    expect(await runtimes.models()).toEqual([
      { provider: 'openai', model: 'm-1', demo: false },
      { provider: 'openai', model: 'm-2', demo: false },
    ])
    await server.close()
    expect(await runtimes.models()).toEqual([{ provider: 'openai', model: 'gpt-4o-mini', demo: false }])
    expect(problems.get('model_list')).toContain('cannot be reached')
    expect(await createRuntimes(contextWith({})).models()).toEqual([{ provider: 'demo', model: 'demo', demo: true }])
  })
})
