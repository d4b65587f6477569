/**
 * Who sees and writes what, asked of the running system from outside: shapes, pushes, sockets, and what lies on disks. Nothing of another tenant, of
 * another person or replica; roles are kept; who is signed out is out; and no secret is anywhere it has no business to be.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TableName, tableNames, tables } from '@hq/shared/schema/tables.ts'
import { CLOSE, SYNC_SUBPROTOCOL } from '@hq/shared/sync/protocol.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { type Caller, insert, type Person, update } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { OWNER, within } from './support/browser.ts'
import { type Gateway, provision, type Row, type System, startSystem, taskPatch } from './support/system.ts'

/** Stands in every row of the other tenant. */
const FOREIGN = 'FOREIGN-TENANT-ROW'

let system: System
let member: Person
let viewer: Person
let gateway: Gateway
let gatewayCaller: Caller
let invitation = ''
const foreign = { tenant: newId(), person: newId(), task: newId(), gateway: newId() }

beforeAll(async () => {
  system = await startSystem()
  member = await system.join('member', 'Mia Member')
  viewer = await system.join('viewer', 'Vic Viewer')
  gateway = await system.gateway('one')
  const { token } = JSON.parse(await readFile(join(gateway.home, 'credentials.json'), 'utf8')) as { token: string }
  gatewayCaller = {
    headers: { authorization: `Bearer ${token}` },
    principal: { kind: 'gateway', tenant_id: system.tenantId, gateway_id: gateway.id, slug: 'one' },
  }
  await provision(system, gateway, 'wanda')
  const made = await system.request(system.owner, '/v1/invitations', { method: 'POST', body: '{"role":"member"}' })
  invitation = ((await made.json()) as { url: string }).url.split('/').at(-1) ?? ''
  await otherTenant()
})
afterAll(() => system?.stop())

/** A second workspace in the same database, as a shared installation would have. */
async function otherTenant(): Promise<void> {
  const { tenant, person, task, gateway } = foreign
  const [{ columns } = { columns: [] }] = await system.rows<{ columns: string[] }>(
    `select array_agg(column_name::text) as columns from information_schema.columns where table_name = 'tenants' and table_schema = 'public'`,
  )
  const named = columns.filter((name) => name === 'name' || name === 'slug')
  await system.rows(
    `insert into tenants (id${named.map((name) => `, ${name}`).join('')}) values ($1${named.map((_, n) => `, $${n + 2}`).join('')})`,
    [tenant, ...named.map(() => FOREIGN)],
  )
  await system.rows(
    `insert into people (id, tenant_id, name, email, role) values ($1, $2, $3, 'x@foreign.example', 'owner')`,
    [person, tenant, FOREIGN],
  )
  await system.rows(
    `insert into gateways (id, tenant_id, gateway_id, slug, label) values ($1, $2, $1, 'foreign', $3)`,
    [gateway, tenant, FOREIGN],
  )
  await system.rows('insert into tasks (id, tenant_id, title) values ($1, $2, $3)', [task, tenant, FOREIGN])
  await system.rows(
    `insert into agent_commands (id, tenant_id, gateway_id, action, payload) values ($1, $2, $3, 'update', $4)`,
    [newId(), tenant, gateway, { note: FOREIGN }],
  )
  await system.rows(
    `insert into comments (id, tenant_id, entity_type, entity_id, body, actor_type, actor_person_id) values ($1, $2, 'task', $3, $4, 'human', $5)`,
    [newId(), tenant, task, FOREIGN, person],
  )
}

/** The text of a whole shape as it goes over the wire, and its rows. */
async function shape(
  caller: Caller,
  table: string,
  replica: string,
  more = '',
): Promise<{ text: string; rows: Row[] }> {
  let text = ''
  const rows: Row[] = []
  for (let at = 'offset=-1'; ; ) {
    const response = await system.request(
      caller,
      `/v1/shape?table=${table}&replica=full&replica_id=${replica}&${at}${more}`,
    )
    const body = await response.text()
    expect(response.status, `${table}: ${body}`).toBe(200)
    text += body
    for (const { value } of JSON.parse(body) as { value?: Row }[]) if (value) rows.push(value)
    if (response.headers.has('electric-up-to-date')) return { text, rows }
    at = `offset=${response.headers.get('electric-offset')}&handle=${response.headers.get('electric-handle')}`
  }
}

const visibleTo = (kind: 'browser' | 'gateway'): TableName[] =>
  tableNames.filter((name) => tables[name].visibility[kind] !== 'none')

test('no shape shows a row of another tenant, whatever is asked for', async () => {
  for (const [caller, kind] of [
    [system.owner, 'browser'],
    [viewer, 'browser'],
    [gatewayCaller, 'gateway'],
  ] as const) {
    const replica = newId()
    for (const table of visibleTo(kind)) {
      const { text, rows } = await shape(caller, table, replica)
      expect(text, table).not.toContain(FOREIGN)
      for (const row of rows) expect(row['tenant_id'], table).toBe(system.tenantId)
    }
    const tricked = `&tenant_id=${foreign.tenant}&where=${encodeURIComponent(`tenant_id = '${foreign.tenant}'`)}`
    expect((await shape(caller, 'tasks', replica, tricked)).text).not.toContain(FOREIGN)
  }
})

test('a live change of another tenant is handed to nobody', async () => {
  const replica = newId()
  const first = await system.request(member, `/v1/shape?table=tasks&replica=full&replica_id=${replica}&offset=now`)
  const at = `offset=${first.headers.get('electric-offset')}&handle=${first.headers.get('electric-handle')}`
  const live = system.request(member, `/v1/shape?table=tasks&replica=full&replica_id=${replica}&${at}&live=true`)
  await system.rows('update tasks set title = $2 where id = $1', [foreign.task, `${FOREIGN} moved`])
  await system.writer(member).apply([taskPatch(system, 'of our own', null, newId(), by(member))])
  const body = await within(
    30_000,
    'our own change comes',
    live.then((response) => response.text()),
  )
  expect(body).toContain('of our own')
  expect(body).not.toContain(FOREIGN)
})

test('what a person has read, and how far a replica has come, is seen by nobody else', async () => {
  const [note, mine] = [newId(), newId()]
  await system.rows(`insert into notifications (id, tenant_id, type, title) values ($1, $2, 'system', 'Hello')`, [
    note,
    system.tenantId,
  ])
  const reader = system.writer(member)
  await reader.apply([
    insert(
      'notification_reads',
      {
        tenant_id: system.tenantId,
        notification_id: note,
        person_id: member.principal.person_id,
        read_at: new Date().toISOString(),
      },
      mine,
    ),
  ])
  expect((await shape(member, 'notification_reads', reader.replicaId)).rows.map(({ id }) => id)).toContain(mine)
  for (const other of [system.owner, viewer])
    expect((await shape(other, 'notification_reads', newId())).text).not.toContain(mine)
  const refused = await system.request(
    gatewayCaller,
    `/v1/shape?table=notification_reads&offset=-1&replica_id=${newId()}`,
  )
  expect(refused.status).toBeGreaterThanOrEqual(400)

  expect((await shape(member, 'client_progress', reader.replicaId)).text).toContain(reader.replicaId)
  expect((await shape(viewer, 'client_progress', newId())).text).not.toContain(reader.replicaId)
  // Nor by naming the replica of somebody else.
  const stolen = await system.request(
    viewer,
    `/v1/shape?table=client_progress&offset=-1&replica_id=${reader.replicaId}`,
  )
  expect(stolen.status === 200 ? await stolen.text() : '').not.toContain(reader.replicaId)
  // And nobody marks as read for another.
  const forged = await system.writer(viewer).push([
    insert('notification_reads', {
      tenant_id: system.tenantId,
      notification_id: note,
      person_id: member.principal.person_id,
      read_at: new Date().toISOString(),
    }),
  ])
  expect(forged.results).toMatchObject([{ outcome: 'rejected' }])
})

test('tables of the server are no shapes', async () => {
  for (const table of [
    'auth_user',
    'auth_session',
    'auth_account',
    'gateway_credentials',
    'gateway_registration_tokens',
    'invitations',
    'tenants',
    'pg_authid',
  ])
    for (const caller of [system.owner, gatewayCaller]) {
      const { status } = await system.request(caller, `/v1/shape?table=${table}&offset=-1&replica_id=${newId()}`)
      expect(status, table).toBeGreaterThanOrEqual(400)
    }
})

test('roles: a viewer writes nothing, a member nothing of admins, nobody across tenants; what was refused changed nothing', async () => {
  const task = newId()
  await system.writer().apply([taskPatch(system, 'to be kept', null, task)])
  const { tenantId } = system
  const { person_id } = member.principal
  const tries: [Person, Parameters<typeof insert>[0], ReturnType<typeof insert>][] = [
    [viewer, 'tasks', taskPatch(system, 'by the viewer', null, newId(), by(viewer))],
    [viewer, 'tasks', update('tasks', task, { title: 'to be kept' }, { title: 'by the viewer' })],
    [
      viewer,
      'comments',
      insert('comments', {
        tenant_id: tenantId,
        entity_type: 'task',
        entity_id: task,
        body: 'x',
        actor_type: 'human',
        actor_person_id: viewer.principal.person_id,
      }),
    ],
    [member, 'people', update('people', person_id, { role: 'member' }, { role: 'owner' })],
    [member, 'workspace', update('workspace', newId(), {}, { name: 'mine now' })],
    [member, 'tasks', taskPatch(system, FOREIGN, null, newId(), { ...by(member), tenant_id: foreign.tenant })],
    [member, 'tasks', update('tasks', foreign.task, { title: FOREIGN }, { title: 'taken' })],
    [
      member,
      'audit_log',
      insert('audit_log', {
        tenant_id: tenantId,
        actor_type: 'human',
        entity_type: 'task',
        entity_id: task,
        action: 'created',
        occurred_at: new Date().toISOString(),
      }),
    ],
    [
      member,
      'agent_runs',
      insert('agent_runs', { tenant_id: tenantId, gateway_id: gateway.id, agent_id: newId(), runtime: 'builtin' }),
    ],
  ]
  for (const [who, table, patch] of tries) {
    const { results } = await system.writer(who).push([patch])
    expect(results, `${who.principal.role} ${table}`).toMatchObject([
      { outcome: 'rejected', message: expect.stringMatching(/\S/) },
    ])
  }
  expect(await system.rows('select title from tasks where id = any($1)', [[task, foreign.task]])).toEqual(
    expect.arrayContaining([{ title: 'to be kept' }]),
  )
  expect(await system.rows('select role from people where id = $1', [person_id])).toEqual([{ role: 'member' }])
  expect(await system.rows('select 1 from tasks where tenant_id = $1', [foreign.tenant])).toHaveLength(1)
})

const by = (person: Person): Row => ({ created_by_id: person.principal.person_id })

/** A socket of this person, with its close code. */
async function socketOf({ headers }: Pick<Caller, 'headers'>): Promise<{ ws: WebSocket; closed: Promise<number> }> {
  const ws = new WebSocket(`${system.server.url.replace('http', 'ws')}/v1/sync`, SYNC_SUBPROTOCOL, { headers })
  const closed = new Promise<number>((resolve) => ws.on('close', resolve))
  await new Promise((resolve, reject) => ws.on('open', resolve).on('error', reject))
  return { ws, closed }
}

test('a session that has ended is out: its socket is closed, its cookie opens nothing', async () => {
  const leaver = await system.join('member', 'Lea Leaver')
  const [one, other] = [await socketOf(leaver), await socketOf(member)]
  try {
    expect((await system.request(leaver, '/api/auth/sign-out', { method: 'POST', body: '{}' })).status).toBe(200)
    expect(await within(30_000, 'the socket is closed', one.closed)).toBe(CLOSE.unauthenticated)
    expect((await system.request(leaver, `/v1/shape?table=tasks&offset=-1&replica_id=${newId()}`)).status).toBe(401)
    const push = await system.writer(leaver).send([])
    expect(push.status).toBe(401)
    expect(other.ws.readyState).toBe(WebSocket.OPEN)
  } finally {
    one.ws.terminate()
    other.ws.terminate()
  }
})

test('a retired gateway is out', async () => {
  const second = await system.gateway('two')
  const { token } = JSON.parse(await readFile(join(second.home, 'credentials.json'), 'utf8')) as { token: string }
  const caller = { headers: { authorization: `Bearer ${token}` } }
  const { closed } = await socketOf(caller)
  await system.request(system.owner, `/v1/gateways/${second.id}`, { method: 'DELETE' })
  expect(await within(30_000, 'the socket is closed', closed)).toBe(CLOSE.unauthenticated)
  expect((await system.request(caller, `/v1/shape?table=tasks&offset=-1&replica_id=${newId()}`)).status).toBe(401)
  await second.process.line(({ message, connection }) => message === 'Connection' && connection === 'unauthorized')
  await second.end()
})

/** All files below, with their bytes as latin-1 text: what is in them is found, whatever they are. */
async function filesUnder(folder: string): Promise<[path: string, text: string][]> {
  const found: [string, string][] = []
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    found.push([path, await readFile(path, 'latin1')])
  }
  return found
}

test('no password, token or hash lies in a replica, a change log, a log, or goes over a shape', async () => {
  const { token } = JSON.parse(await readFile(join(gateway.home, 'credentials.json'), 'utf8')) as { token: string }
  const hashes = await system.rows<{ secret: string }>(`select password as secret from auth_account
    union select token from auth_session union select token_hash::text from gateway_credentials
    union select token_hash::text from invitations union select token_hash::text from gateway_registration_tokens`)
  const cookie = decodeURIComponent(/hq\.session_token=([^;]+)/.exec(member.headers['cookie'] ?? '')?.[1] ?? '').split(
    '.',
  )[0]
  const secrets = [OWNER.password, token, invitation, cookie, ...hashes.map(({ secret }) => secret)].filter(
    (secret): secret is string => Boolean(secret),
  )
  expect(secrets.length).toBeGreaterThan(8)
  expect(secrets.every((secret) => secret.length >= 16)).toBe(true)

  const replica = newId()
  for (const table of visibleTo('browser')) {
    const { text } = await shape(system.owner, table, replica)
    for (const secret of secrets) expect(text.includes(secret), table).toBe(false)
  }

  await gateway.end()
  const read: string[] = []
  for (const [path, text] of [
    ...(await filesUnder(join(system.server.home, 'server'))),
    ...(await filesUnder(gateway.home)),
    ['the gateway’s output', gateway.text()] as [string, string],
  ]) {
    if (path.endsWith('credentials.json') || path.endsWith('auth-secret')) continue
    read.push(path)
    for (const secret of secrets) expect(text.includes(secret), `${path} holds ${secret.slice(0, 4)}…`).toBe(false)
  }
  // Over an Electric service the change log is there, and none here.
  expect(read.some((path) => path.includes('shapes'))).toBe(!system.server.electric)
  expect(read.some((path) => path.includes('replica'))).toBe(true)
})
