/** Shapes by principal, the WebSocket, and the app's files, over real HTTP. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isTableName, tables } from '@hq/shared/schema/tables.ts'
import { CLOSE, type ServerFrame, SYNC_SUBPROTOCOL } from '@hq/shared/sync/protocol.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { newId } from '../database/ids.ts'
import {
  type Caller,
  type Gateway,
  insert,
  type Person,
  remove,
  startWorkspace,
  update,
  type Workspace,
} from '../testing/workspace.ts'
import { shapeDefinition } from './shape-route.ts'

let workspace: Workspace
let member: Person
let gateway: Gateway
let app: string

beforeAll(async () => {
  app = await mkdtemp(join(tmpdir(), 'hq-test-app-'))
  await mkdir(join(app, 'assets'))
  await writeFile(
    join(app, '_shell.html'),
    '<!doctype html><script>start()</script><script src="/x.js"></script><p>shell</p>',
  )
  await writeFile(join(app, 'assets/app-1.js'), 'plain')
  await writeFile(join(app, 'assets/app-1.js.br'), 'packed')
  await writeFile(join(app, 'sw.js'), 'worker')
  await writeFile(join(app, '.secret'), 'no')
  workspace = await startWorkspace({ appFolder: app })
  member = await workspace.join('member')
  gateway = await workspace.gateway()
})
afterAll(async () => {
  await workspace?.stop()
  await rm(app, { recursive: true, force: true })
})

type Messages = { value?: Record<string, unknown> }[]
const shape = async (caller: Caller | undefined, table: string, replica: string, more = '') => {
  const response = await workspace.request(caller, `/v1/shape?table=${table}&offset=-1&replica_id=${replica}${more}`)
  const body = (await response.json()) as Messages & { code?: string }
  return {
    status: response.status,
    code: body.code,
    rows: Array.isArray(body) ? body.flatMap(({ value }) => (value ? [value] : [])) : [],
    headers: response.headers,
  }
}

describe('shapes', () => {
  test('every table of the schema has a definition with the tenant in it, or is refused', () => {
    for (const principal of [member.principal, gateway.principal]) {
      for (const name of Object.keys(tables)) {
        if (!isTableName(name)) continue
        const scope = principal.kind === 'person' ? tables[name].visibility.browser : tables[name].visibility.gateway
        if (scope === 'none') expect(() => shapeDefinition(name, principal, newId())).toThrow(/may not read/)
        else {
          const definition = shapeDefinition(name, principal, newId())
          expect(definition.where).toMatch(/^"tenant_id" = \$1/)
          expect(definition.params?.[0]).toBe(principal.tenant_id)
          expect(definition.replica).toBe('full')
        }
      }
    }
  })

  test('the client’s own conditions and columns have no effect', async () => {
    const mine = await shape(member, 'people', newId(), '&where=1%3D1&columns=id&params%5B1%5D=x&replica=default')
    expect(mine.status).toBe(200)
    expect(mine.rows.length).toBeGreaterThanOrEqual(2)
    expect(mine.rows[0]).toHaveProperty('email')
    expect(mine.headers.get('cache-control')).toBe('no-store')
  })

  test('server tables, unknown tables, strangers', async () => {
    for (const table of [
      'auth_user',
      'auth_session',
      'row_clocks',
      'gateway_credentials',
      'invitations',
      'pg_shadow',
      'public.tasks',
    ]) {
      expect([table, (await shape(member, table, newId())).code]).toEqual([table, 'unknown_table'])
    }
    expect((await shape(undefined, 'tasks', newId())).status).toBe(401)
    expect((await shape(gateway, 'notification_reads', newId())).status).toBe(403)
    expect((await shape(member, 'tasks', 'not-a-uuid')).status).toBe(400)
    expect(
      (await workspace.request(member, `/v1/shape?table=tasks&replica_id=${newId()}`, { method: 'DELETE' })).status,
    ).toBe(405)
  })

  test('rows of a person and of a replica are theirs alone', async () => {
    const notification = newId()
    await workspace.writer(gateway).apply([insert('notifications', { type: 'system', title: 'Hello' }, notification)])
    const [mine, other] = [workspace.writer(member), workspace.writer(workspace.owner)]
    const read = (caller: Person) => [
      insert('notification_reads', {
        notification_id: notification,
        person_id: caller.principal.person_id,
        read_at: new Date().toISOString(),
      }),
    ]
    await mine.apply(read(member))
    await other.apply(read(workspace.owner))
    const reads = await shape(member, 'notification_reads', mine.replicaId)
    expect(reads.rows.map((row) => row['person_id'])).toEqual([member.principal.person_id])
    const progress = await shape(member, 'client_progress', mine.replicaId)
    expect(progress.rows).toMatchObject([{ replica_id: mine.replicaId, last_seq: '1' }])
    expect(await shape(member, 'client_progress', other.replicaId)).toMatchObject({ status: 403, code: 'forbidden' })
  })

  test('a revoked replica is told so', async () => {
    const replica = newId()
    expect((await shape(member, 'tasks', replica)).status).toBe(200)
    await workspace.server.pool.query('update replicas set revoked_at = now() where id = $1', [replica])
    await workspace.restart()
    expect(await shape(member, 'tasks', replica)).toMatchObject({ status: 403, code: 'revoked' })
    const push = await workspace.writer(member, replica).send([])
    expect([push.status, push.body.code]).toEqual([403, 'revoked'])
  })
})

interface Socket {
  readonly ws: WebSocket
  request(
    path: string,
    init?: { method?: string; body?: string; headers?: Record<string, string> },
  ): Promise<ServerFrame & { t: 'res' }>
  send(frame: unknown): void
  readonly closed: Promise<number>
  readonly frames: ServerFrame[]
}

async function open(
  caller: Caller | undefined,
  headers: Record<string, string> = {},
  protocol = SYNC_SUBPROTOCOL,
): Promise<Socket> {
  const ws = new WebSocket(`${workspace.url.replace('http', 'ws')}/v1/sync`, protocol, {
    headers: { ...caller?.headers, ...headers },
  })
  const waiting = new Map<number, (frame: ServerFrame & { t: 'res' }) => void>()
  const frames: ServerFrame[] = []
  ws.on('message', (data) => {
    const frame = JSON.parse(String(data)) as ServerFrame
    frames.push(frame)
    if (frame.t === 'res') waiting.get(frame.id)?.(frame)
  })
  const closed = new Promise<number>((done) => ws.on('close', done))
  await new Promise<void>((done, fail) => ws.once('open', () => done()).once('error', fail))
  let next = 0
  return {
    ws,
    frames,
    closed,
    send: (frame) => ws.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    request(path, { method = 'GET', headers: more = {}, body } = {}) {
      const id = next++
      ws.send(JSON.stringify({ t: 'req', id, method, path, headers: more, ...(body === undefined ? {} : { body }) }))
      return new Promise((done) => waiting.set(id, done))
    },
  }
}

describe('the WebSocket', () => {
  test('carries shapes, pushes and a live change side by side', async () => {
    const socket = await open(member)
    try {
      const replica = newId()
      const first = await socket.request(`/v1/shape?table=tasks&offset=-1&replica_id=${replica}`)
      expect(first.status).toBe(200)
      let { 'electric-offset': offset = '', 'electric-handle': handle = '' } = first.headers
      let upToDate = 'electric-up-to-date' in first.headers
      while (!upToDate) {
        const more = await socket.request(
          `/v1/shape?table=tasks&offset=${offset}&handle=${handle}&replica_id=${replica}`,
        )
        offset = more.headers['electric-offset'] ?? ''
        handle = more.headers['electric-handle'] ?? ''
        upToDate = 'electric-up-to-date' in more.headers
      }
      const live = socket.request(
        `/v1/shape?table=tasks&offset=${offset}&handle=${handle}&live=true&replica_id=${replica}`,
      )
      const writer = workspace.writer(member, replica)
      const body = JSON.stringify({
        protocol: 1,
        replica_id: replica,
        schema_version: '0001_schema.sql',
        mutations: [writer.mutation({ patches: [insert('tasks', { title: 'Live “ü”' })] })],
      })
      const pushed = await socket.request('/v1/mutations', {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json' },
      })
      expect(JSON.parse(pushed.body)).toMatchObject({ last_seq: 1 })
      expect((await live).body).toContain('Live “ü”')
      expect((await socket.request('/v1/nope')).status).toBe(404)
      expect((await socket.request('/v1/shape?table=nope&offset=-1')).status).toBe(400)
      // Found by fuzzing: it was a 500.
      const noHeader = { headers: { cookie: '\u0000' } }
      expect((await socket.request('/v1/nope', noHeader)).status).toBe(400)
      socket.send({ t: 'ping', n: 7 })
      await expect.poll(() => socket.frames.at(-1)).toEqual({ t: 'pong', n: 7 })
    } finally {
      socket.ws.terminate()
    }
  })

  test('cancel ends a held request without an answer, and its id is free again', async () => {
    const socket = await open(member)
    try {
      const first = await socket.request(`/v1/shape?table=streams&offset=now&replica_id=${newId()}`)
      const path = `/v1/shape?table=streams&offset=${first.headers['electric-offset']}&handle=${first.headers['electric-handle']}&live=true&replica_id=${newId()}`
      for (let n = 0; n < 3; n++) {
        socket.send({ t: 'req', id: 99, method: 'GET', path, headers: {} })
        socket.send({ t: 'cancel', id: 99 })
      }
      socket.send({ t: 'ping', n: 1 })
      await expect.poll(() => socket.frames.at(-1)).toEqual({ t: 'pong', n: 1 })
      expect(socket.frames.filter((frame) => frame.t === 'res' && frame.id === 99)).toEqual([])
    } finally {
      socket.ws.terminate()
    }
  })

  test('strangers, other sites, other protocols and nonsense are closed with a reason', async () => {
    expect(await (await open(undefined)).closed).toBe(CLOSE.unauthenticated)
    await expect(open(member, { origin: 'https://evil.example' })).rejects.toThrow(/403/)
    for (const frame of [
      '{',
      '{"t":"req"}',
      '[]',
      JSON.stringify({ t: 'req', id: 1, method: 'GET', path: '/api/auth/get-session', headers: {} }),
    ]) {
      const socket = await open(member)
      socket.send(frame)
      expect(await socket.closed).toBe(CLOSE.protocol)
    }
  })

  test('too many at once are told to wait; the others are answered', async () => {
    const socket = await open(member)
    try {
      const first = await socket.request(`/v1/shape?table=streams&offset=now&replica_id=${newId()}`)
      const path = `/v1/shape?table=streams&offset=${first.headers['electric-offset']}&handle=${first.headers['electric-handle']}&live=true&replica_id=${newId()}`
      for (let n = 0; n < 205; n++) socket.send({ t: 'req', id: 1000 + n, method: 'GET', path, headers: {} })
      await expect.poll(() => socket.frames.filter((frame) => frame.t === 'res' && frame.status === 429).length).toBe(5)
    } finally {
      socket.ws.terminate()
    }
  })

  /** A live request for what has nothing to say, held by the server. */
  const holdOne = async (caller: Caller, table: string, replica: string) => {
    const socket = await open(caller)
    const first = await socket.request(`/v1/shape?table=${table}&offset=now&replica_id=${replica}`)
    expect(first.status).toBe(200)
    const path = `/v1/shape?table=${table}&offset=${first.headers['electric-offset']}&handle=${first.headers['electric-handle']}`
    const live = socket.request(`${path}&live=true&replica_id=${replica}`)
    // Frames are answered in no order, but begun in theirs.
    await socket.request(`/v1/session`)
    return { socket, live }
  }

  test('6. a device that is removed while it is held is answered with that, not with rows; its neighbour is left alone', async () => {
    const [replica, other] = [newId(), newId()]
    const { socket, live } = await holdOne(member, 'streams', replica)
    const neighbour = await holdOne(member, 'streams', other)
    try {
      const revoked = await workspace.request(member, `/v1/devices/${replica}/revoke`, { method: 'POST', body: '{}' })
      expect(revoked.status).toBe(200)
      const answer = await live
      expect([answer.status, JSON.parse(answer.body)]).toMatchObject([403, { code: 'revoked' }])
      await workspace.writer(workspace.owner).apply([insert('streams', { name: 'Afterwards' })])
      expect((await neighbour.live).body).toContain('Afterwards')
    } finally {
      socket.ws.terminate()
      neighbour.socket.ws.terminate()
    }
  })

  test('6. a changed role has what is held looked at anew, before its time is over', async () => {
    const person = await workspace.join('member')
    const before = await holdOne(member, 'streams', newId())
    const { socket, live } = await holdOne(person, 'streams', newId())
    try {
      const { person_id } = person.principal
      await workspace
        .writer(workspace.owner)
        .apply([update('people', person_id, { role: 'member' }, { role: 'viewer' })])
      // The other one came first, so its time would be over first.
      const first = await Promise.race([live.then(() => 'changed'), before.live.then(() => 'unchanged')])
      expect([first, (await live).status]).toEqual(['changed', 200])
    } finally {
      socket.ws.terminate()
      before.socket.ws.terminate()
    }
  })

  test('a removed person’s socket is closed at once', async () => {
    const person = await workspace.join('member')
    const socket = await open(person)
    await workspace.writer(workspace.owner).apply([remove('people', person.principal.person_id)])
    expect(await socket.closed).toBe(CLOSE.unauthenticated)
  })
})

describe('the app', () => {
  const get = (path: string, headers: Record<string, string> = {}) => fetch(workspace.url + path, { headers })

  test('shell for every route, with a policy that lets its own script run', async () => {
    for (const path of ['/', '/tasks/42', '/join/abc', '/_shell.html']) {
      const response = await get(path)
      expect([path, response.status, response.headers.get('cache-control')]).toEqual([path, 200, 'no-cache'])
      expect(await response.text()).toContain('shell')
      const policy = response.headers.get('content-security-policy') ?? ''
      expect(policy).toMatch(/script-src 'self' 'wasm-unsafe-eval' 'sha256-[^ ]+'; /)
      expect(policy).not.toMatch(/script-src[^;]*unsafe-inline/)
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    }
  })

  test('assets for ever, packed when taken; a missing one is 404; sw.js revalidated', async () => {
    const plain = await get('/assets/app-1.js', { 'accept-encoding': 'identity' })
    expect([await plain.text(), plain.headers.get('cache-control')]).toEqual([
      'plain',
      'public, max-age=31536000, immutable',
    ])
    const { request } = await import('node:http')
    const encoding = await new Promise((done, fail) => {
      request(`${workspace.url}/assets/app-1.js`, { headers: { 'accept-encoding': 'gzip, br' } }, (response) =>
        done(response.resume().headers['content-encoding']),
      )
        .on('error', fail)
        .end()
    })
    expect(encoding).toBe('br')
    expect((await get('/assets/gone.js')).status).toBe(404)
    const worker = await get('/sw.js')
    expect(worker.headers.get('cache-control')).toBe('no-cache')
    expect((await get('/sw.js', { 'if-none-match': worker.headers.get('etag') ?? '' })).status).toBe(304)
  })

  test('nothing outside the folder, nothing hidden; JSON errors under /v1 and /api', async () => {
    for (const path of ['/..%2f..%2fetc/passwd', '/.secret', '/assets/..%2f.secret', '/%00', '/%E0%A4%A']) {
      const text = await (await get(path)).text()
      expect(text).not.toMatch(/root:|^no$/)
    }
    for (const path of ['/v1/none', '/api/none', '/api/auth/sign-up/email']) {
      const response = await get(path)
      expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([404, 'not_found'])
    }
    expect(await (await get('/v1/health')).json()).toMatchObject({ status: 'active', service: 'hq' })
  })
})
