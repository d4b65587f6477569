/**
 * A server over real HTTP that is honest (the in-memory server behind it) or sloppy in one of many ways, and can be either at any moment.
 *
 *     const server = await startSloppyServer(fake)
 *     server.mood = MOODS.empty_array      // from now on
 *     server.mood = undefined              // honest again
 *
 * The moods are those of the table of sloppy answers in the reference (letters A–N), and what captive portals, proxies and broken links add.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FakeServer } from './fake-server.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The connection ends after this many characters of the body. */
  readonly cutAfter?: number
}

export interface Asked {
  readonly path: string
  readonly table: string | undefined
  readonly offset: string
  readonly handle: string | undefined
  readonly live: boolean
  /** When it came, of `performance.now()`. */
  readonly at: number
}

export interface Mood {
  /** Of the table in the reference; `+`: not in it. */
  readonly letter: string
  readonly on: 'shapes' | 'pushes' | 'everything'
  /** Answers itself; undefined: the honest server is asked. */
  readonly instead?: (asked: Asked) => Answer | undefined
  /** Spoils the honest answer. */
  readonly spoil?: (answer: Answer, asked: Asked) => Answer
  /** The honest server does not hold long polls. */
  readonly hasty?: true
}

export interface SloppyServer {
  readonly url: string
  mood: Mood | undefined
  readonly asked: Asked[]
  close(): Promise<void>
}

type Message = { key?: string; value?: Record<string, string | null>; headers: Record<string, unknown> }

const JSON_TYPE = { 'content-type': 'application/json' }
const PORTAL: Answer = {
  status: 200,
  headers: { 'content-type': 'text/html' },
  body: '<!doctype html><title>Welcome to the hotel</title><p>Please accept our terms.',
}
const mustRefetch = (handle: string | undefined): Answer => ({
  status: 409,
  headers: { ...JSON_TYPE, ...(handle !== undefined && { 'electric-handle': handle }) },
  body: '[{"headers":{"control":"must-refetch"}}]',
})
const problem = (status: number, headers: Record<string, string> = {}): Answer => ({
  status,
  headers: { ...JSON_TYPE, ...headers },
  body: JSON.stringify({ message: 'Invalid request', errors: { offset: ['out of bounds for this shape'] } }),
})
const without = (answer: Answer, ...names: string[]): Answer => ({
  ...answer,
  headers: Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !names.includes(name))),
})
const withMessages = (answer: Answer, change: (messages: Message[]) => Message[]): Answer =>
  answer.status === 200 ? { ...answer, body: JSON.stringify(change(JSON.parse(answer.body) as Message[])) } : answer
const withValues = (answer: Answer, change: (value: Record<string, string | null>) => Record<string, string | null>) =>
  withMessages(answer, (messages) =>
    messages.map((message) => (message.value ? { ...message, value: change(message.value) } : message)),
  )
/** `inf` is after everything. */
const isLater = ({ offset }: Asked): boolean => offset !== '-1'

export const MOODS = {
  up_to_date_with_the_snapshot: { letter: 'B', on: 'shapes', spoil: (answer) => answer },
  no_up_to_date_header: { letter: 'C', on: 'shapes', spoil: (answer) => without(answer, 'electric-up-to-date') },
  up_to_date_not_last: {
    letter: 'D',
    on: 'shapes',
    spoil: (answer) =>
      withMessages(answer, (messages) => {
        const ends = messages.filter(({ headers }) => headers['control'] === 'up-to-date')
        return [...ends, ...messages.filter((message) => !ends.includes(message)), { headers: { control: 'noise' } }]
      }),
  },
  empty_array: { letter: 'E', on: 'shapes', spoil: (answer) => withMessages(answer, () => []) },
  no_cursor: { letter: 'F', on: 'shapes', spoil: (answer) => without(answer, 'electric-cursor') },
  no_schema: { letter: 'G', on: 'shapes', spoil: (answer) => without(answer, 'electric-schema') },
  no_handle_or_offset: {
    letter: 'F+',
    on: 'shapes',
    spoil: (answer) => without(answer, 'electric-handle', 'electric-offset'),
  },
  live_that_does_not_hold: { letter: 'H', on: 'shapes', hasty: true },
  conflict_without_handle: {
    letter: 'I',
    on: 'shapes',
    instead: (asked) => (isLater(asked) ? mustRefetch(undefined) : undefined),
  },
  conflict_with_the_same_handle: {
    letter: 'J',
    on: 'shapes',
    instead: (asked) => (isLater(asked) ? mustRefetch(asked.handle) : undefined),
  },
  conflict_to_everything: { letter: 'J+', on: 'shapes', instead: () => mustRefetch(`new-${Math.random()}`) },
  bad_request_to_everything: { letter: 'K', on: 'everything', instead: () => problem(400) },
  overloaded: { letter: 'L', on: 'everything', instead: () => problem(503) },
  overloaded_and_says_when: { letter: 'L+', on: 'everything', instead: () => problem(503, { 'retry-after': '1' }) },
  constant_cursor: {
    letter: 'M',
    on: 'shapes',
    spoil: (answer) => ({ ...answer, headers: { ...answer.headers, 'electric-cursor': '7' } }),
  },
  null_where_none_may_be: {
    letter: 'N',
    on: 'shapes',
    spoil: (answer) => withValues(answer, (value) => ('title' in value ? { ...value, priority: null } : value)),
  },
  handle_reused: {
    letter: '+',
    on: 'shapes',
    spoil: (answer) => ({ ...answer, headers: { ...answer.headers, 'electric-handle': 'always-the-same' } }),
    instead: (asked) => (isLater(asked) ? mustRefetch('always-the-same') : undefined),
  },
  unknown_columns: {
    letter: '+',
    on: 'shapes',
    spoil: (answer) => withValues(answer, (value) => ({ ...value, column_of_the_future: 'x' })),
  },
  unreadable_value: {
    letter: '+',
    on: 'shapes',
    spoil: (answer) =>
      withValues(answer, (value) => ('title' in value ? { ...value, sort_order: 'no number' } : value)),
  },
  rows_without_ids: {
    letter: '+',
    on: 'shapes',
    spoil: (answer) => withValues(answer, ({ id: _, ...value }) => value),
  },
  truncated_json: {
    letter: '+',
    on: 'everything',
    spoil: (answer) => ({ ...answer, body: answer.body.slice(0, Math.max(1, answer.body.length - 9)) }),
  },
  connection_cut_in_the_body: {
    letter: '+',
    on: 'everything',
    spoil: (answer) => ({ ...answer, cutAfter: Math.floor(answer.body.length / 2) }),
  },
  captive_portal: { letter: '+', on: 'everything', instead: () => PORTAL },
  html_with_the_right_headers: {
    letter: '+',
    on: 'everything',
    spoil: (answer) => ({ ...answer, body: PORTAL.body }),
  },
  an_object_for_an_array: { letter: '+', on: 'everything', spoil: (answer) => ({ ...answer, body: '{}' }) },
  not_found: { letter: '+', on: 'everything', instead: () => ({ status: 404, headers: JSON_TYPE, body: '{}' }) },
  push_conflict_that_stays: {
    letter: '+',
    on: 'pushes',
    instead: () => ({
      status: 409,
      headers: JSON_TYPE,
      body: '{"code":"out_of_order","message":"x","expected_seq":1}',
    }),
  },
  push_that_takes_nothing: {
    letter: '+',
    on: 'pushes',
    instead: () => ({ status: 200, headers: JSON_TYPE, body: '{"last_seq":0,"results":[]}' }),
  },
} satisfies Record<string, Mood>

export async function startSloppyServer(fake: FakeServer): Promise<SloppyServer> {
  const asked: Asked[] = []
  const sloppy = { mood: undefined as Mood | undefined }
  const patience = fake.faults.longPollMs

  const answer = async (request: IncomingMessage, body: string, signal: AbortSignal): Promise<Answer> => {
    const url = new URL(request.url ?? '/', 'http://sloppy.test')
    const each: Asked = {
      path: url.pathname,
      table: url.searchParams.get('table') ?? undefined,
      offset: url.searchParams.get('offset') ?? '-1',
      handle: url.searchParams.get('handle') ?? undefined,
      live: url.searchParams.get('live') === 'true',
      at: performance.now(),
    }
    asked.push(each)
    const concerned = (mood: Mood | undefined): Mood | undefined =>
      mood && (mood.on === 'everything' || (mood.on === 'shapes') === (each.path === '/v1/shape')) ? mood : undefined
    const instead = concerned(sloppy.mood)?.instead?.(each)
    if (instead) return instead
    const headers = new Headers()
    for (const [name, value] of Object.entries(request.headers)) if (typeof value === 'string') headers.set(name, value)
    const honest = await fake.fetch(url.href, {
      method: request.method ?? 'GET',
      headers,
      signal,
      ...(body && { body }),
    })
    const whole: Answer = {
      status: honest.status,
      headers: Object.fromEntries(honest.headers),
      body: await honest.text(),
    }
    // The mood of the moment when it is sent.
    return concerned(sloppy.mood)?.spoil?.(whole, each) ?? whole
  }

  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      answer(request, body, gone.signal).then(
        ({ status, headers, body: text, cutAfter }) => {
          response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) })
          if (cutAfter === undefined) return response.end(text)
          response.write(text.slice(0, cutAfter), () => response.destroy())
          return undefined
        },
        () => response.destroy(),
      )
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    get mood() {
      return sloppy.mood
    },
    set mood(mood) {
      sloppy.mood = mood
      fake.faults.longPollMs = mood?.hasty ? 0 : patience
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
