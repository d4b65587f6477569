/**
 * Hostile input at every endpoint, by property: each request gets a documented answer and at most one line in the log, the server lives, and a neighbour's
 * replica goes on writing and reading all the while. `HQ_FUZZ_RUNS` and `HQ_FUZZ_SEED` choose how much, and what.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { tableNames } from '@hq/shared/schema/tables.ts'
import { CLOSE, errorBodySchema, LIMITS, pushResponseSchema, SYNC_SUBPROTOCOL } from '@hq/shared/sync/protocol.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { insert, type Person, startWorkspace, type Workspace } from '@hq/sync-server/testing/workspace.ts'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { within } from './support/browser.ts'
import { type Live, openLive, until } from './support/replica.ts'

const RUNS = Number(process.env['HQ_FUZZ_RUNS'] ?? 30)
const SEED = Number(process.env['HQ_FUZZ_SEED'] ?? 20_261_201)
const SETTINGS = { numRuns: RUNS, seed: SEED, endOnFailure: true }

let workspace: Workspace
let person: Person
let neighbour: Live
let logged: string[] = []
let beating: Promise<void>
let isOver = false

beforeAll(async () => {
  console.log(`fuzz: HQ_FUZZ_SEED=${SEED} HQ_FUZZ_RUNS=${RUNS}`)
  workspace = await startWorkspace({
    log: (level, message, fields) => {
      if (level === 'error' || level === 'warn') logged.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`)
    },
  })
  person = await workspace.join('member')
  neighbour = await openLive(workspace.url, workspace.owner)
})
afterAll(async () => {
  await neighbour?.close()
  await workspace?.stop()
})

/** While a test runs, the neighbour writes, is acknowledged, and gets what others write. */
beforeEach(() => {
  isOver = false
  logged = []
  beating = (async () => {
    const other = workspace.writer(workspace.owner)
    for (let n = 0; !isOver || n < 2; n++) {
      const own = await neighbour.addTask(`beat ${n}`)
      const theirs = newId()
      await other.apply([insert('tasks', { title: 'of another' }, theirs)])
      await until(neighbour, 'the neighbour goes on', async () => {
        const ids = new Set(await neighbour.ids('tasks'))
        return neighbour.replica.status().pending === 0 && ids.has(theirs) && ids.has(own)
      })
    }
  })()
  // Seen at the end.
  beating.catch(() => undefined)
})
afterEach(async () => {
  isOver = true
  await beating
  expect(neighbour.refused).toEqual([])
  expect((await workspace.request(undefined, '/v1/health')).status).toBe(200)
})

interface Reply {
  readonly status: number
  readonly body: string
}
/** One request, its log lines counted: requests of the fuzz go one after the other, and the neighbour gives no cause for any. */
async function ask(
  about: string,
  path: string,
  init: RequestInit,
  caller: Person | undefined = person,
): Promise<Reply> {
  const before = logged.length
  const response = await workspace.request(caller, path, init)
  const body = await response.text()
  expect(logged.length - before, `${about}\n${logged.slice(before).join('\n')}`).toBeLessThanOrEqual(1)
  return { status: response.status, body }
}
const PUSH_STATUSES = [200, 400, 401, 403, 409, 413, 426]
/** What a client is told: a code, words, and nothing of our insides. */
const expectError = ({ status, body }: Reply, about: string): void => {
  const parsed = errorBodySchema.safeParse(JSON.parse(body))
  expect(parsed.success, `${about} → ${status} ${body.slice(0, 500)}`).toBe(true)
  expect(body, about).not.toMatch(/\.ts:\d+|node_modules|at async|select |insert into/)
}
const short = (value: unknown): string => JSON.stringify(value)?.slice(0, 2_000) ?? 'nothing'

const hostileText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    "'; drop table tasks; --",
    '\0',
    '%00',
    '../../etc/passwd',
    '-1',
    '1e309',
    'null',
    '__proto__',
    'ＮＵＬＬ',
  ),
  fc.constant('x'.repeat(5_000)),
)

test('shapes: any query, any method', async () => {
  const name = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.constantFrom(
        'table',
        'offset',
        'handle',
        'live',
        'live_sse',
        'cursor',
        'log',
        'columns',
        'where',
        'params[1]',
        'subset__limit',
        'replica',
        'replica_id',
      ),
    },
    hostileText,
  )
  const value = fc.oneof(
    fc.constantFrom(
      ...tableNames,
      '-1',
      'now',
      '0_0',
      '0_inf',
      '9007199254740993_0',
      '99999999999999999999_9',
      'true',
      'false',
      'full',
      'changes_only',
    ),
    hostileText,
  )
  const arbitrary = fc.record({
    method: fc.constantFrom('GET', 'GET', 'GET', 'POST', 'DELETE', 'PUT', 'OPTIONS', 'PATCH'),
    query: fc.array(fc.tuple(name, value), { maxLength: 8 }),
    complete: fc.boolean(),
    body: fc.oneof(fc.json(), hostileText),
  })
  const replica = newId()
  await fc.assert(
    fc.asyncProperty(arbitrary, async ({ method, query, complete, body }) => {
      const search = new URLSearchParams(complete ? { replica_id: replica, table: 'tasks', offset: '-1' } : {})
      for (const [key, text] of query)
        if (!complete || !search.has(key) || key === 'offset') search.set(key, text.toWellFormed())
      // A request that is rightly held is not waited for.
      const held = AbortSignal.timeout(1_500)
      const about = `${method} ${search}`
      const reply = await ask(about, `/v1/shape?${search}`, {
        method,
        signal: held,
        ...(method === 'GET' ? {} : { body: body.toWellFormed() }),
      }).catch((error: unknown) => {
        if (held.aborted) return undefined
        throw error
      })
      if (!reply) return expect(search.get('live'), about).toBeTruthy()
      expect([200, 204, 304, 400, 403, 404, 405, 409, 413, 431], about).toContain(reply.status)
      if (reply.status === 409) expect(reply.body).toContain('must-refetch')
      else if (reply.status >= 400 && reply.status !== 431) {
        expect(JSON.parse(reply.body), about).toMatchObject({ message: expect.stringMatching(/\S/) as string })
      }
    }),
    SETTINGS,
  )
})

const mutationLike = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.record(
    {
      seq: fc.oneof(
        { weight: 6, arbitrary: fc.constant('next' as const) },
        fc.constantFrom(0, -1, 1.5, '1', 2 ** 53, null),
      ),
      mutation_id: fc.oneof({ weight: 5, arbitrary: fc.uuid() }, hostileText),
      actor: fc.oneof({ weight: 5, arbitrary: fc.constant('own' as const) }, fc.jsonValue({ maxDepth: 2 })),
      run_id: fc.oneof(fc.constant(null), fc.uuid()),
      hlc: fc.oneof(
        { weight: 5, arbitrary: fc.constant('now' as const) },
        hostileText,
        fc.constant(`${'f'.repeat(12)}-ffff-${randomUUID()}`),
      ),
      patches: fc.oneof(
        {
          weight: 6,
          arbitrary: fc.array(
            fc.record({
              table: fc.oneof({ weight: 6, arbitrary: fc.constantFrom<string>(...tableNames) }, hostileText),
              id: fc.oneof({ weight: 6, arbitrary: fc.uuid() }, hostileText),
              op: fc.oneof({ weight: 6, arbitrary: fc.constantFrom('insert', 'update', 'delete') }, hostileText),
              set: fc.dictionary(
                fc.oneof(
                  fc.constantFrom(
                    'title',
                    'meta',
                    'tags',
                    'payload',
                    'role',
                    'name',
                    'deleted_at',
                    'settings',
                    'created_at',
                  ),
                  hostileText,
                ),
                fc.jsonValue({ maxDepth: 3 }),
                { maxKeys: 5 },
              ),
              base: fc.dictionary(fc.constantFrom('title', 'role'), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 }),
            }),
            { maxLength: 4 },
          ),
        },
        fc.jsonValue({ maxDepth: 2 }),
      ),
    },
    { requiredKeys: [] },
  ),
)

const hlcNow = (): string => `${Date.now().toString(16).padStart(12, '0')}-0000-${randomUUID()}`
const filled = (mutation: unknown, seq: number): unknown => {
  if (typeof mutation !== 'object' || mutation === null || Array.isArray(mutation)) return mutation
  const like = mutation as Record<string, unknown>
  return {
    ...like,
    ...(like['seq'] === 'next' ? { seq } : {}),
    ...(like['actor'] === 'own' ? { actor: { type: 'human', id: person.principal.person_id } } : {}),
    ...(like['hlc'] === 'now' ? { hlc: hlcNow() } : {}),
  }
}

test('pushes: envelopes of every kind, entries of every kind', async () => {
  const arbitrary = fc.record({
    protocol: fc.oneof({ weight: 6, arbitrary: fc.constant<unknown>(1) }, fc.constantFrom<unknown>(0, 2, '1', null)),
    schema: fc.oneof(
      { weight: 6, arbitrary: fc.constant<unknown>('0001_schema.sql') },
      fc.constantFrom<unknown>('9999_future.sql', '', 7, null, '0000_past.sql'),
    ),
    replica: fc.oneof({ weight: 6, arbitrary: fc.constant('new') }, hostileText),
    mutations: fc.oneof(
      { weight: 8, arbitrary: fc.array(mutationLike, { maxLength: 12 }) as fc.Arbitrary<unknown> },
      fc.jsonValue({ maxDepth: 2 }),
    ),
    twice: fc.boolean(),
    same: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(arbitrary, async ({ protocol, schema, replica, mutations, twice, same }) => {
      const list = Array.isArray(mutations)
        ? mutations.map((mutation, n) => filled(mutation, same ? 1 : n + 1))
        : mutations
      const body = JSON.stringify({
        protocol,
        replica_id: replica === 'new' ? newId() : replica,
        schema_version: schema,
        mutations: list,
      })
      const about = short(body)
      for (let time = 0; time < (twice ? 2 : 1); time++) {
        const reply = await ask(about, '/v1/mutations', { method: 'POST', body: body.toWellFormed() })
        expect(PUSH_STATUSES, `${about} → ${reply.status} ${reply.body}`).toContain(reply.status)
        if (reply.status !== 200) {
          expectError(reply, about)
          continue
        }
        const answer = pushResponseSchema.safeParse(JSON.parse(reply.body))
        expect(answer.success, `${about} → ${reply.body.slice(0, 1_000)}`).toBe(true)
        expect(answer.data?.results, about).toHaveLength(Array.isArray(list) ? list.length : 0)
        for (const { outcome, message } of answer.data?.results ?? [])
          if (outcome === 'rejected') expect(message, about).toMatch(/\S/)
      }
    }),
    SETTINGS,
  )
})

test('pushes: bytes that are no push', async () => {
  const envelope = (mutations: string): string =>
    `{"protocol":1,"replica_id":"${newId()}","schema_version":"0001_schema.sql","mutations":${mutations}}`
  const deep = (depth: number, [open, close]: readonly [string, string] = ['[', ']']): string =>
    `${open.repeat(depth)}1${close.repeat(depth)}`
  const entry = (set: string): string =>
    `{"seq":1,"mutation_id":"${randomUUID()}","actor":{"type":"human","id":"${person.principal.person_id}"},"run_id":null,"hlc":"${hlcNow()}","patches":[{"table":"tasks","id":"${newId()}","op":"insert","set":${set},"base":{}}]}`
  const bodies: [string, string | Buffer, number[]][] = [
    ['nothing', '', [400]],
    ['rubbish', randomBytes(10_000), [400]],
    ['half', envelope('[').slice(0, 50), [400]],
    ['deep as an envelope', deep(200_000), [400]],
    ['deep in objects', envelope(deep(50_000, ['{"a":', '}'])), [400]],
    ['a deep entry', envelope(`[${deep(100_000)}]`), [200, 400]],
    ['a deep value', envelope(`[${entry(`{"title":"x","tags":${deep(20_000)}}`)}]`), [200, 400]],
    [
      'too many',
      envelope(
        `[${Array(LIMITS.mutationsPerPush + 1)
          .fill('1')
          .join()}]`,
      ),
      [400],
    ],
    ['200 bad ones', envelope(`[${Array(200).fill('{"bad":true}').join()}]`), [200]],
    ['a large one', envelope(`[${entry(`{"title":"x","description":"${'x'.repeat(3 * 1024 * 1024)}"}`)}]`), [200]],
    ['null for a column that is never null', envelope(`[${entry('{"title":"x","tags":null,"status":null}')}]`), [200]],
    ['a number without end', envelope(`[${entry(`{"title":${'9'.repeat(100_000)}}`)}]`), [200]],
    ['keys of prototypes', envelope(`[${entry('{"title":"x","__proto__":{"a":1},"constructor":1}')}]`), [200]],
  ]
  for (const [what, body, statuses] of bodies) {
    const reply = await ask(what, '/v1/mutations', {
      method: 'POST',
      body: typeof body === 'string' ? body : new Uint8Array(body),
    })
    expect(statuses, `${what} → ${reply.status} ${reply.body.slice(0, 500)}`).toContain(reply.status)
    if (reply.status !== 200) expectError(reply, what)
  }
  // The largest of all may be answered by hanging up.
  const huge = await workspace.request(person, '/v1/mutations', { method: 'POST', body: 'x'.repeat(40_000_000) }).then(
    ({ status }) => status,
    () => 413,
  )
  expect(huge).toBe(413)
})

test('null in a column of JSON that must have a value is refused like any other value', async () => {
  const gateway = await workspace.gateway()
  const writer = workspace.writer(workspace.owner)
  const { results } = await writer.push(
    [
      insert('agents', {
        name: 'A',
        slug: `a-${randomUUID().slice(0, 6)}`,
        gateway_id: gateway.principal.gateway_id,
        meta: null,
      }),
    ],
    [insert('agent_commands', { gateway_id: gateway.principal.gateway_id, action: 'update', payload: null })],
    [insert('tasks', { title: 'x', tags: null })],
  )
  const stored = await workspace.rows(
    `select 1 from agents where jsonb_typeof(meta) = 'null' union all select 1 from agent_commands where jsonb_typeof(payload) = 'null'`,
  )
  expect(stored).toEqual([])
  for (const { outcome, message } of results) if (outcome === 'rejected') expect(message).toMatch(/must not be empty/)
})

test('bodies that are cut off, or never end, change nothing and hold nobody up', async () => {
  const { port } = new URL(workspace.url)
  const replicaId = newId()
  const whole = JSON.stringify({
    protocol: 1,
    replica_id: replicaId,
    schema_version: '0001_schema.sql',
    mutations: [{ seq: 1 }],
  })
  const head = `POST /v1/mutations HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncookie: ${person.headers['cookie']}\r\ncontent-type: application/json\r\ncontent-length: ${whole.length}\r\n\r\n`
  const open: ReturnType<typeof connect>[] = []
  for (let n = 0; n < 60; n++) {
    const socket = connect(Number(port), '127.0.0.1')
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    socket.write(head.slice(0, n % 3 === 0 ? Math.floor(head.length * Math.random()) : undefined))
    if (n % 3 !== 0) socket.write(whole.slice(0, Math.floor((whole.length - 1) * Math.random())))
    if (n % 2 === 0) {
      await new Promise((later) => setTimeout(later, 5))
      socket.resetAndDestroy()
    } else open.push(socket)
  }
  // Half of them still hang there.
  await workspace.writer(person).apply([insert('tasks', { title: 'beside them' })])
  for (const socket of open) socket.destroy()
  await expect.poll(async () => (await workspace.request(person, '/v1/session')).status).toBe(200)
  expect(await workspace.rows('select 1 from client_progress where id = $1', [replicaId])).toEqual([])
  expect(logged).toEqual([])
})

/** A socket of `person`: what it got, and with which code it was closed. */
async function socket(): Promise<{ ws: WebSocket; got: string[]; closed: Promise<number> }> {
  const ws = new WebSocket(`${workspace.url.replace('http', 'ws')}/v1/sync`, SYNC_SUBPROTOCOL, {
    headers: { ...person.headers },
    origin: workspace.url,
  })
  const got: string[] = []
  ws.on('message', (data) => got.push(String(data)))
  ws.on('error', () => undefined)
  const closed = new Promise<number>((resolve) => ws.on('close', resolve))
  await once(ws, 'open')
  return { ws, got, closed }
}

test('frames: what is none closes the socket with its code; what is one is answered; the log stays quiet', async () => {
  const frame = fc.oneof(
    fc.constant({ t: 'ping', n: 7 }),
    fc.record({ t: fc.constant('cancel'), id: fc.oneof(fc.nat(), fc.constant(-1)) }),
    fc.record({
      t: fc.constant('req'),
      id: fc.nat(50),
      method: fc.constantFrom('GET', 'POST', 'DELETE', 'PUT'),
      path: fc.oneof(
        fc.constantFrom(
          '/v1/session',
          '/v1/health',
          '/v1/nothing',
          '/v1/shape',
          '/v1/shape?table=tasks&offset=-1',
          '/v1/../api/auth/sign-out',
          '/v1/mutations',
          '//evil.example/v1/',
          '/v1//evil.example',
        ),
        hostileText.map((text) => `/v1/${text}`),
      ),
      headers: fc.dictionary(
        fc.constantFrom(
          'host',
          'cookie',
          'authorization',
          'content-length',
          'transfer-encoding',
          'x-hq-label',
          'bad name',
          'x\r\ny',
        ),
        hostileText,
        { maxKeys: 3 },
      ),
      body: hostileText,
    }),
    fc.jsonValue({ maxDepth: 3 }),
  )
  const message = fc.oneof(
    { weight: 8, arbitrary: frame.map((value) => JSON.stringify(value)) },
    hostileText,
    fc.uint8Array({ maxLength: 200 }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 30 }), async (messages) => {
      logged = []
      const { ws, got, closed } = await socket()
      for (const each of messages) ws.send(each)
      // Either it is still there and answers, or it was closed with the code for a bad frame.
      ws.send(JSON.stringify({ t: 'ping', n: 4711 }))
      const alive = (async () => {
        while (!got.some((text) => text.includes('4711'))) await new Promise((later) => setTimeout(later, 5))
      })()
      const code = await within(10_000, 'an answer or a close', Promise.race([alive, closed]))
      if (code !== undefined) expect([CLOSE.protocol, 1007], short(messages.map(String))).toContain(code)
      ws.terminate()
      expect(logged.length, `${short(messages.map(String))}\n${logged.join('\n')}`).toBeLessThanOrEqual(messages.length)
      expect(
        logged.filter((line) => line.startsWith('error')),
        short(messages.map(String)),
      ).toEqual([])
    }),
    { ...SETTINGS, numRuns: Math.ceil(RUNS / 2) },
  )
})

test('frames: a binary one, a huge one, an id used twice, ten thousand at once', async () => {
  const binary = await socket()
  binary.ws.send(Buffer.from('{"t":"ping","n":1}'))
  expect(await binary.closed).toBe(CLOSE.protocol)

  const huge = await socket()
  huge.ws.send(
    JSON.stringify({
      t: 'req',
      id: 1,
      method: 'POST',
      path: '/v1/mutations',
      headers: {},
      body: 'x'.repeat(LIMITS.pushBytes * 2 + 100_000),
    }),
  )
  expect([1009, 1006]).toContain(await within(20_000, 'it is closed', huge.closed))

  const held = (id: number, where: string) =>
    JSON.stringify({
      t: 'req',
      id,
      method: 'GET',
      path: `/v1/shape?table=tasks&replica_id=${newId()}&${where}`,
      headers: {},
    })
  const twice = await socket()
  twice.ws.send(held(1, 'offset=now'))
  twice.ws.send(held(1, 'offset=now'))
  expect(await twice.closed).toBe(CLOSE.protocol)

  const many = await socket()
  for (let id = 0; id < 10_000; id++)
    many.ws.send(JSON.stringify({ t: 'req', id, method: 'GET', path: '/v1/session', headers: {} }))
  await within(
    60_000,
    'all are answered',
    (async () => {
      while (many.got.length < 10_000) await new Promise((later) => setTimeout(later, 20))
    })(),
  )
  const statuses = many.got.map((text) => (JSON.parse(text) as { status: number }).status)
  expect(new Set(statuses)).toEqual(new Set([200, 429]))
  many.ws.send(JSON.stringify({ t: 'cancel', id: 77_777 }))
  many.ws.send(JSON.stringify({ t: 'ping', n: 1 }))
  await expect.poll(() => many.got.at(-1)).toContain('pong')
  many.ws.terminate()
  expect(logged).toEqual([])
})

test('people, sessions, invitations, gateways, devices: any body', async () => {
  const id = newId()
  const routes = [
    'GET /v1/session',
    'POST /v1/setup',
    'POST /api/auth/sign-in/email',
    'GET /api/auth/get-session',
    'POST /api/auth/sign-up/email',
    'POST /v1/invitations',
    'GET /v1/invitations',
    `DELETE /v1/invitations/${id}`,
    'GET /v1/invitations/by-token/nothing',
    'POST /v1/invitations/by-token/nothing/accept',
    'POST /v1/gateways/tokens',
    'GET /v1/gateways/tokens',
    `DELETE /v1/gateways/tokens/${id}`,
    'POST /v1/gateways/register',
    `DELETE /v1/gateways/${id}`,
    `POST /v1/devices/${id}/revoke`,
    `POST /v1/devices/${id}/restore`,
    'POST /v1/no-such-route',
    'GET /api/no-such-route',
    'PUT /v1/session',
  ]
  const field = fc.constantFrom(
    'name',
    'email',
    'password',
    'workspace_name',
    'timezone',
    'role',
    'label',
    'slug',
    'token',
    '__proto__',
  )
  const body = fc.oneof(
    {
      weight: 5,
      arbitrary: fc
        .dictionary(field, fc.oneof(fc.jsonValue({ maxDepth: 2 }), hostileText), { maxKeys: 6 })
        .map((value) => JSON.stringify(value)),
    },
    hostileText,
    fc.json(),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...routes),
      body,
      fc.constantFrom('owner', 'member', 'nobody'),
      async (route, text, as) => {
        const [method = '', path = ''] = route.split(' ')
        const about = `${as} ${route} ${short(text)}`
        const caller = as === 'owner' ? workspace.owner : as === 'member' ? person : undefined
        const init = { method, ...(method === 'GET' ? {} : { body: text.toWellFormed() }) }
        const reply = caller ? await ask(about, path, init, caller) : await askNobody(about, path, init)
        expect(
          [200, 201, 400, 401, 403, 404, 405, 409, 410, 422, 429],
          `${about} → ${reply.status} ${reply.body.slice(0, 300)}`,
        ).toContain(reply.status)
        if (reply.status >= 400) expectError(reply, about)
      },
    ),
    { ...SETTINGS, numRuns: RUNS * 2 },
  )
})

const askNobody = async (about: string, path: string, init: RequestInit): Promise<Reply> => {
  const before = logged.length
  const response = await workspace.request(undefined, path, init)
  expect(logged.length - before, about).toBeLessThanOrEqual(1)
  return { status: response.status, body: await response.text() }
}
