/** For tests: a model provider on the loopback that speaks the streaming formats of OpenAI, Anthropic and Ollama over real HTTP, and misbehaves on demand. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Say {
  readonly text?: string
  readonly calls?: readonly { readonly name: string; readonly input: unknown }[]
  readonly finish?: string
  /** Input and output tokens; null: the provider doesn't say. */
  readonly usage?: readonly [number, number] | null
}

/** What the next request gets: an answer, an HTTP error, or a raw way to go wrong. */
export type Reply =
  | Say
  | { readonly status: number; readonly body: string; readonly headers?: Record<string, string> }
  | { readonly raw: (response: ServerResponse) => void }

export interface Loopback {
  readonly url: string
  /** Bodies of all requests, in order: their number is the number of model calls. */
  readonly requests: {
    readonly path: string
    readonly headers: IncomingMessage['headers']
    readonly body: Record<string, unknown>
  }[]
  /** What comes next; the last one is repeated. */
  script(...replies: (Reply | ((body: Record<string, unknown>) => Reply | Promise<Reply>))[]): void
  close(): Promise<void>
}

export type Format = 'openai' | 'anthropic' | 'ollama'

export async function startLoopback(format: Format): Promise<Loopback> {
  const requests: Loopback['requests'] = []
  let replies: Parameters<Loopback['script']> = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => (text += String(chunk)))
    request.on('end', () => void answer(request, response, text))
  })

  async function answer(request: IncomingMessage, response: ServerResponse, text: string): Promise<void> {
    if (request.method === 'GET') {
      if (request.url?.startsWith('/hang')) return // never answered
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ data: [{ id: 'm-1' }, { id: 'm-2' }], models: [{ name: 'm-1' }, { name: 'm-2' }] }))
      return
    }
    const body = JSON.parse(text) as Record<string, unknown>
    requests.push({ path: request.url ?? '', headers: request.headers, body })
    const next = replies.length > 1 ? replies.shift() : replies[0]
    const reply = typeof next === 'function' ? await next(body) : (next ?? { text: 'ok' })
    if ('raw' in reply) return reply.raw(response)
    if ('status' in reply) {
      response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers }).end(reply.body)
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end({ openai: openAi, anthropic, ollama }[format](reply, requests.length))
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    script: (...next) => {
      replies = next
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export const openAiChunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

function openAi({ text, calls = [], finish, usage = [100, 20] }: Say, n: number): string {
  let out = openAiChunk({ role: 'assistant', content: '' })
  for (const word of text?.match(/\S+\s*/g) ?? []) out += openAiChunk({ content: word })
  for (const [index, call] of calls.entries()) {
    const json = JSON.stringify(call.input)
    out += openAiChunk({
      tool_calls: [{ index, id: `call_${n}_${index}`, type: 'function', function: { name: call.name, arguments: '' } }],
    })
    out += openAiChunk({ tool_calls: [{ index, function: { arguments: json.slice(0, 5) } }] })
    out += openAiChunk({ tool_calls: [{ index, function: { arguments: json.slice(5) } }] })
  }
  out += openAiChunk({}, finish ?? (calls.length > 0 ? 'tool_calls' : 'stop'))
  if (usage) {
    out += `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage: { prompt_tokens: usage[0], completion_tokens: usage[1], total_tokens: usage[0] + usage[1] } })}\n\n`
  }
  return `${out}data: [DONE]\n\n`
}

export const anthropicEvent = (type: string, data: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`

function anthropic({ text, calls = [], finish, usage = [100, 20] }: Say, n: number): string {
  const [input, output] = usage ?? [0, 0]
  let out = anthropicEvent('message_start', {
    message: {
      id: `msg_${n}`,
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: input, output_tokens: 1 },
    },
  })
  let index = 0
  if (text) {
    out += anthropicEvent('content_block_start', { index, content_block: { type: 'text', text: '' } })
    for (const word of text.match(/\S+\s*/g) ?? [])
      out += anthropicEvent('content_block_delta', { index, delta: { type: 'text_delta', text: word } })
    out += anthropicEvent('content_block_stop', { index })
    index += 1
  }
  for (const call of calls) {
    const json = JSON.stringify(call.input)
    out += anthropicEvent('content_block_start', {
      index,
      content_block: { type: 'tool_use', id: `toolu_${n}_${index}`, name: call.name, input: {} },
    })
    out += anthropicEvent('content_block_delta', {
      index,
      delta: { type: 'input_json_delta', partial_json: json.slice(0, 5) },
    })
    out += anthropicEvent('content_block_delta', {
      index,
      delta: { type: 'input_json_delta', partial_json: json.slice(5) },
    })
    out += anthropicEvent('content_block_stop', { index })
    index += 1
  }
  out += anthropicEvent('message_delta', {
    delta: { stop_reason: finish ?? (calls.length > 0 ? 'tool_use' : 'end_turn'), stop_sequence: null },
    usage: { output_tokens: output },
  })
  return out + anthropicEvent('message_stop', {})
}

/** One JSON object a line, as `/api/chat` streams them. */
function ollama({ text, calls = [], finish, usage = [100, 20] }: Say): string {
  const line = (message: object, more: object = {}): string =>
    `${JSON.stringify({ model: 'm', created_at: '2026-01-01T00:00:00Z', message: { role: 'assistant', content: '', ...message }, done: false, ...more })}\n`
  let out = ''
  for (const word of text?.match(/\S+\s*/g) ?? []) out += line({ content: word })
  for (const { name, input } of calls) out += line({ tool_calls: [{ function: { name, arguments: input } }] })
  const counts = usage ? { prompt_eval_count: usage[0], eval_count: usage[1] } : {}
  return out + line({}, { done: true, done_reason: finish ?? 'stop', ...counts })
}
