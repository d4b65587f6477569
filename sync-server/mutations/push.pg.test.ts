import { randomBytes, randomUUID } from 'node:crypto'
import { LIMITS } from '@hq/shared/sync/protocol.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashToken, newId } from '../database/ids.ts'
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

let workspace: Workspace
let member: Person
let gatewayA: Gateway
let gatewayB: Gateway

beforeAll(async () => {
  workspace = await startWorkspace()
  member = await workspace.join('member')
  gatewayA = await workspace.gateway('alpha')
  gatewayB = await workspace.gateway('beta')
})
afterAll(() => workspace?.stop())

const task = (set: Record<string, unknown> = {}, id = newId()) => insert('tasks', { title: 'A task', ...set }, id)
const row = async (table: string, id: string) => (await workspace.rows(`select * from ${table} where id = $1`, [id]))[0]
const agentOn = async (gateway: Gateway, slug = `agent-${randomUUID().slice(0, 8)}`) => {
  const id = newId()
  await workspace
    .writer(workspace.owner)
    .apply([
      insert('agents', { name: slug, slug, gateway_id: gateway.principal.gateway_id, status: 'provisioning' }, id),
    ])
  return id
}

describe('order and repetition', () => {
  test('a repeat returns the stored result and changes nothing', async () => {
    const writer = workspace.writer(member)
    const id = newId()
    const good = writer.mutation({ patches: [task({}, id)] })
    const bad = writer.mutation({ patches: [task({ status: 'no such status' })] })
    const first = await writer.send([good, bad])
    expect(first.body.results.map(({ outcome, code }) => [outcome, code])).toEqual([
      ['applied', undefined],
      ['rejected', 'invalid'],
    ])
    const again = await writer.send([good, bad])
    expect(again).toEqual(first)
    expect(await workspace.rows(`select * from audit_log where entity_id = $1`, [id])).toHaveLength(1)
    expect(
      await workspace.rows('select * from mutation_results where replica_id = $1', [writer.replicaId]),
    ).toHaveLength(1)
    const [progress] = await workspace.rows('select last_seq from client_progress where id = $1', [writer.replicaId])
    expect(progress?.['last_seq']).toBe('2')
  })

  test('a gap is refused whole, and says what is expected', async () => {
    const writer = workspace.writer(member)
    await writer.apply([task()])
    writer.seq = 5
    const id = newId()
    const { status, body } = await writer.send([writer.mutation({ patches: [task({}, id)] })])
    expect([status, body.code, body.expected_seq]).toEqual([409, 'out_of_order', 2])
    expect(await row('tasks', id)).toBeUndefined()
  })

  test('two pushes of the same mutations at once apply them once', async () => {
    const writer = workspace.writer(member)
    const ids = Array.from({ length: 20 }, () => newId())
    const mutations = ids.map((id) => writer.mutation({ patches: [task({}, id)] }))
    const answers = await Promise.all([writer.send(mutations), writer.send(mutations), writer.send(mutations)])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    const [count] = await workspace.rows('select count(*)::int as n from audit_log where entity_id = any($1)', [ids])
    expect(count?.['n']).toBe(20)
  })

  test('malformed and oversized mutations are recorded, and those beside them go through', async () => {
    const writer = workspace.writer(member)
    const [a, b] = [newId(), newId()]
    const first = writer.mutation({ patches: [task({}, a)] })
    const malformed = { ...writer.mutation({ patches: [] }), hlc: 'yesterday' }
    writer.seq++
    const unreadable = { nonsense: true }
    const huge = writer.mutation({ patches: [task({ description: 'x'.repeat(LIMITS.mutationBytes) })] })
    const last = writer.mutation({ patches: [task({}, b)] })
    const { body } = await writer.send([first, malformed, unreadable, huge, last])
    expect(body.results.map(({ outcome, code }) => code ?? outcome)).toEqual([
      'applied',
      'malformed',
      'malformed',
      'too_large',
      'applied',
    ])
    expect(body.last_seq).toBe(5)
    expect(await row('tasks', a)).toBeDefined()
    expect(await row('tasks', b)).toBeDefined()
    expect(
      await workspace.rows('select seq from mutation_results where replica_id = $1', [writer.replicaId]),
    ).toHaveLength(3)
  })

  test('what Postgres cannot store is a rejection of that mutation, not of the batch', async () => {
    const writer = workspace.writer(member)
    const values: unknown[] = ['a\0b', '\ud800', 'fine']
    const nested = JSON.parse(`${'['.repeat(200)}1${']'.repeat(200)}`) as unknown
    const { results } = await writer.push(
      ...values.map((title) => [task({ title })]),
      [insert('contacts', { name: 'n', extended: { nested } })],
      [insert('contacts', { name: randomBytes(8_000).toString('base64') })],
      [task({ due_date: 'not a date' })],
      [task()],
    )
    expect(results.map(({ code, outcome }) => code ?? outcome)).toEqual([
      'invalid',
      'invalid',
      'applied',
      'invalid',
      'invalid',
      'invalid',
      'applied',
    ])
  })

  test('bodies and versions that cannot be served say why', async () => {
    const push = async (body: unknown) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      const response = await workspace.request(member, '/v1/mutations', { method: 'POST', body: text })
      return [response.status, ((await response.json()) as { code: string }).code]
    }
    const envelope = { protocol: 1, replica_id: newId(), schema_version: '0001_schema.sql', mutations: [] }
    expect(await push('{')).toEqual([400, 'malformed'])
    expect(await push({ ...envelope, protocol: 99 })).toEqual([426, 'protocol'])
    expect(await push({ ...envelope, schema_version: '9999_future.sql' })).toEqual([426, 'schema_too_new'])
    expect(await push('x'.repeat(LIMITS.pushBytes + 1))).toEqual([413, 'too_large'])
    expect(
      (await workspace.request(undefined, '/v1/mutations', { method: 'POST', body: JSON.stringify(envelope) })).status,
    ).toBe(401)
  })
})

describe('rights', () => {
  test('a viewer writes nothing but what it has read', async () => {
    const viewer = await workspace.join('viewer')
    const notification = newId()
    await workspace.writer(gatewayA).apply([insert('notifications', { type: 'system', title: 'Hello' }, notification)])
    const other = member.principal.person_id
    const { results } = await workspace.writer(viewer).push(
      [task()],
      [
        insert('notification_reads', {
          notification_id: notification,
          person_id: viewer.principal.person_id,
          read_at: new Date().toISOString(),
        }),
      ],
      [
        insert('notification_reads', {
          notification_id: notification,
          person_id: other,
          read_at: new Date().toISOString(),
        }),
      ],
    )
    expect(results.map(({ code, outcome }) => code ?? outcome)).toEqual(['forbidden', 'applied', 'forbidden'])
  })

  test('nobody acts for somebody else', async () => {
    const agent = await agentOn(gatewayA)
    const asPerson = { actor: { type: 'human', id: workspace.owner.principal.person_id } } as const
    const asAgent = { actor: { type: 'agent', id: agent } } as const
    const { results } = await workspace
      .writer(member)
      .push({ patches: [task()], ...asPerson }, { patches: [task()], ...asAgent })
    expect(results.map(({ code }) => code)).toEqual(['forbidden', 'forbidden'])
    const fromB = await workspace
      .writer(gatewayB)
      .push({ patches: [task()], ...asAgent }, { patches: [task()], ...asPerson })
    expect(fromB.results.map(({ code }) => code)).toEqual(['forbidden', 'forbidden'])
    await workspace.writer(gatewayA).apply({ patches: [task()], ...asAgent })
  })

  test('commands on a gateway’s machine are for admins; a key is in none', async () => {
    const command = (action: string, payload: object) =>
      insert('agent_commands', { gateway_id: gatewayA.principal.gateway_id, action, payload })
    const asked = [
      [command('install_runtime', { runtime: 'openclaw' })],
      [command('run_shell', { command: 'ls' })],
      [command('list_models', {})],
      [command('auth_set_default', { connection_id: newId() })],
      [command('auth_remove', { connection_id: newId() })],
      [command('auth_start', { connection_id: newId(), flow: 'paste' })],
      [command('auth_paste', { connection_id: newId(), sealed_id: newId() })],
      [command('auth_refresh', { connection_id: newId() })],
    ]
    const by = async (who: Caller) =>
      (await workspace.writer(who).push(...asked)).results.map(({ code, outcome }) => code ?? outcome)
    expect(await by(member)).toEqual([
      'forbidden',
      'forbidden',
      'applied',
      'forbidden',
      'forbidden',
      'forbidden',
      'forbidden',
      'forbidden',
    ])
    expect(new Set(await by(workspace.owner))).toEqual(new Set(['applied']))
    const { results } = await workspace
      .writer(workspace.owner)
      .push(
        [command('auth_set_api_key', { api_key: 'sk-1' })],
        [command('auth_set_default', { connection_id: newId() })],
        [command('auth_paste', { connection_id: newId(), redirect: 'http://localhost/?code=c-1' })],
      )
    expect(results.map(({ code, outcome }) => code ?? outcome)).toEqual(['invalid', 'applied', 'invalid'])
  })

  test('how people sign in to a model is set by admins, and has no secret in it; a gateway removes a model’s key, and no other', async () => {
    const oauth = { token_url: 'https://id.example/token', device_url: 'https://id.example/device', client_id: 'hq' }
    const connect = (more: object, id = newId()) =>
      insert(
        'model_connections',
        { gateway_id: gatewayA.principal.gateway_id, label: 'Claw', provider: 'openai', oauth: { ...oauth, ...more } },
        id,
      )
    const id = newId()
    const [forMember] = (await workspace.writer(member).push([connect({})])).results
    expect(forMember).toMatchObject({ code: 'forbidden' })
    const { results } = await workspace
      .writer(workspace.owner)
      .push(
        [connect({}, id)],
        [connect({ client_secret: 's' })],
        [connect({ token_url: 'http://id.example/token' })],
        [connect({ token_url: 'https://id.example/token?key=1' })],
        [connect({ device_url: undefined })],
      )
    expect(results.map(({ code, outcome }) => code ?? outcome)).toEqual([
      'applied',
      'invalid',
      'invalid',
      'invalid',
      'invalid',
    ])
    const elsewhere = { ...oauth, token_url: 'https://elsewhere.example/token' }
    const [byGateway] = (
      await workspace.writer(gatewayA).push([update('model_connections', id, { oauth }, { oauth: elsewhere })])
    ).results
    expect(byGateway).toMatchObject({ code: 'forbidden' })
    const [own, model] = [newId(), newId()]
    const secret = (secretId: string, category: string, key: string) =>
      insert('secrets', { gateway_id: gatewayA.principal.gateway_id, category, key, name: key }, secretId)
    await workspace
      .writer(workspace.owner)
      .apply([secret(own, 'user', 'OWN_ONE'), secret(model, 'model', 'MODEL_KEY_A')])
    const drop = (secretId: string) =>
      update('secrets', secretId, { deleted_at: null }, { deleted_at: new Date().toISOString() })
    const dropped = await workspace.writer(gatewayA).push([drop(own)], [drop(model)])
    expect(dropped.results.map(({ code, outcome }) => code ?? outcome)).toEqual(['forbidden', 'applied'])
  })

  test('a pairing is answered by a person’s command: the gateway writes just what it says, with the end of that command', async () => {
    const gateway_id = gatewayA.principal.gateway_id
    const question = async (kind = 'pairing'): Promise<string> => {
      const id = newId()
      await workspace
        .writer(gatewayA)
        .apply([insert('approvals', { gateway_id, kind, subject: 'Phone', title: 'Phone wants to pair' }, id)])
      return id
    }
    const asked = async (payload: object): Promise<string> => {
      const id = newId()
      await workspace
        .writer(member)
        .apply([
          insert(
            'agent_commands',
            { gateway_id, action: 'approve_pairing', payload, requested_by: member.principal.person_id },
            id,
          ),
        ])
      return id
    }
    const end = (id: string) => update('agent_commands', id, { status: 'pending' }, { status: 'done' })
    const answer = (id: string, status: string, by = member.principal.person_id) =>
      update('approvals', id, { status: 'pending' }, { status, decided_by: by, decided_at: new Date().toISOString() })
    const [one, two, exec] = [await question(), await question(), await question('exec')]
    const allow = await asked({ approval_id: one, decision: 'allow' })
    const other = await asked({ approval_id: exec, decision: 'allow' })
    const { results } = await workspace
      .writer(gatewayA)
      .push(
        [answer(one, 'denied'), end(allow)],
        [answer(one, 'allowed', workspace.owner.principal.person_id), end(allow)],
        [answer(two, 'allowed'), end(allow)],
        [answer(exec, 'allowed'), end(other)],
        [answer(one, 'allowed'), end(allow)],
      )
    expect(results.map(({ code, outcome }) => code ?? outcome)).toEqual([
      'forbidden',
      'forbidden',
      'forbidden',
      'forbidden',
      'applied',
    ])
    const forged = insert('agent_commands', {
      gateway_id,
      action: 'approve_pairing',
      payload: { approval_id: two, decision: 'allow' },
      requested_by: member.principal.person_id,
    })
    expect((await workspace.writer(gatewayA).push([forged])).results[0]).toMatchObject({ code: 'forbidden' })
    const viewer = await workspace.join('viewer')
    const viewers = await workspace.writer(viewer).push([
      insert('agent_commands', {
        gateway_id,
        action: 'approve_pairing',
        payload: { approval_id: two, decision: 'allow' },
      }),
    ])
    expect(viewers.results[0]).toMatchObject({ code: 'forbidden' })
  })

  test('only people answer an approval, once, in their own name; a gateway withdraws what it asked', async () => {
    const ask = async (): Promise<string> => {
      const id = newId()
      await workspace
        .writer(gatewayA)
        .apply([
          insert(
            'approvals',
            { gateway_id: gatewayA.principal.gateway_id, kind: 'exec', subject: 'exec', title: 'Run ls' },
            id,
          ),
        ])
      return id
    }
    const answer = (id: string, set: Record<string, unknown>, from = 'pending') => [
      update('approvals', id, { status: from }, set),
    ]
    const own = { decided_by: member.principal.person_id, decided_at: new Date().toISOString() }
    const [one, two] = [await ask(), await ask()]
    const { results } = await workspace.writer(member).push(
      [
        insert('approvals', {
          gateway_id: gatewayA.principal.gateway_id,
          kind: 'exec',
          subject: 'exec',
          title: 'Mine',
        }),
      ],
      answer(one, { status: 'allowed', decided_by: workspace.owner.principal.person_id }),
      answer(one, { status: 'expired' }),
      answer(one, { status: 'allowed', ...own }),
      answer(one, { status: 'denied', ...own }, 'allowed'),
    )
    expect(results.map(({ code, outcome }) => code ?? outcome)).toEqual([
      'forbidden',
      'forbidden',
      'invalid',
      'applied',
      'invalid',
    ])
    const gateway = await workspace
      .writer(gatewayA)
      .push(
        answer(two, { status: 'allowed' }),
        answer(two, { note: 'I say yes' }),
        answer(two, { status: 'cancelled' }),
      )
    expect(gateway.results.map(({ code, outcome }) => code ?? outcome)).toEqual(['forbidden', 'forbidden', 'applied'])
    const agent = await agentOn(gatewayA)
    const made = (tool_policy: Record<string, unknown>) => [
      insert('agents', {
        gateway_id: gatewayA.principal.gateway_id,
        name: 'New',
        slug: `new-${randomUUID().slice(0, 8)}`,
        tool_policy,
      }),
    ]
    const makes = await workspace.writer(member).push(made({}), made({ default: 'allow' }))
    expect(makes.results.map(({ code, outcome }) => code ?? outcome)).toEqual(['applied', 'forbidden'])
    const policy = [update('agents', agent, { tool_policy: {} }, { tool_policy: { default: 'allow' } })]
    expect((await workspace.writer(gatewayA).push(policy)).results[0]).toMatchObject({ code: 'forbidden' })
    expect((await workspace.writer(member).push(policy)).results[0]).toMatchObject({ code: 'forbidden' })
    expect((await workspace.writer(workspace.owner).push(policy)).results[0]).toMatchObject({ outcome: 'applied' })
  })

  test('gateway B never touches the rows of gateway A', async () => {
    const agent = await agentOn(gatewayA)
    const command = newId()
    await workspace
      .writer(member)
      .apply([
        insert(
          'agent_commands',
          { gateway_id: gatewayA.principal.gateway_id, agent_id: agent, action: 'update', status: 'pending' },
          command,
        ),
      ])
    const b = workspace.writer(gatewayB)
    const { results } = await b.push(
      [update('agent_commands', command, { status: 'pending' }, { status: 'leased' })],
      [update('agents', agent, { status: 'provisioning' }, { status: 'ready' })],
      [update('gateways', gatewayA.principal.gateway_id, { label: 'alpha' }, { label: 'mine now' })],
      [
        insert('command_output', {
          gateway_id: gatewayA.principal.gateway_id,
          command_id: command,
          seq: 1,
          stream: 'stdout',
          text: 'x',
        }),
      ],
      [
        update(
          'agents',
          agent,
          { gateway_id: gatewayA.principal.gateway_id },
          { gateway_id: gatewayB.principal.gateway_id },
        ),
      ],
    )
    expect(results.map(({ code }) => code)).toEqual(Array(5).fill('forbidden'))
    await workspace
      .writer(gatewayA)
      .apply([update('agent_commands', command, { status: 'wrong base' }, { status: 'leased' })])
    expect((await row('agent_commands', command))?.['status']).toBe('leased')
  })

  test('people do not write what belongs to the gateway, and server columns are ignored', async () => {
    const agent = await agentOn(gatewayA)
    const writer = workspace.writer(member)
    const { results } = await writer.push(
      [update('agents', agent, { status: 'provisioning' }, { status: 'ready' })],
      [update('agents', agent, { epoch: 1 }, { epoch: 9, description: 'hello' })],
      [
        insert('agents', {
          name: 'X',
          slug: 'forged-status',
          gateway_id: gatewayA.principal.gateway_id,
          status: 'ready',
        }),
      ],
    )
    expect(results.map(({ code, outcome }) => code ?? outcome)).toEqual(['forbidden', 'applied', 'applied'])
    expect(await row('agents', agent)).toMatchObject({ status: 'provisioning', epoch: 1, description: 'hello' })
    expect((await workspace.rows(`select status from agents where slug = 'forged-status'`))[0]).toEqual({
      status: 'provisioning',
    })
  })

  test('unknown tables and columns, foreign tenants, and the tables of the server', async () => {
    const { results } = await workspace
      .writer(workspace.owner)
      .push(
        [{ ...task(), table: 'auth_user' }],
        [{ ...task(), table: 'row_clocks' }],
        [task({ 'title"; drop table tasks; --': 'x' })],
        [task({ tenant_id: newId() })],
        [insert('audit_log', { entity_type: 'task' })],
        [insert('client_progress', { last_seq: '99' })],
        [insert('people', { name: 'Eve', role: 'owner' })],
        [insert('gateways', { slug: 'x', label: 'x' })],
        [update('tasks', newId(), {}, { title: 'nothing' })],
      )
    expect(results.map(({ code }) => code)).toEqual([
      'unknown_table',
      'unknown_table',
      'unknown_column',
      'forbidden',
      'forbidden',
      'forbidden',
      'forbidden',
      'forbidden',
      'missing_row',
    ])
  })

  test('another tenant sees and changes nothing, and cannot tell what exists', async () => {
    const [tenantId, gatewayId, foreign] = [newId(), newId(), newId()]
    const token = `hqgw_${randomUUID()}`
    await workspace.rows(`insert into tenants (id, name, slug) values ($1::uuid, 'Other', 'other')`, [tenantId])
    await workspace.rows(
      `insert into gateways (id, tenant_id, gateway_id, slug, label) values ($1, $2, $1, 'theirs', 'Theirs')`,
      [gatewayId, tenantId],
    )
    await workspace.rows(
      'insert into gateway_credentials (id, gateway_id, tenant_id, token_hash) values ($1, $2, $3, $4)',
      [newId(), gatewayId, tenantId, hashToken(token)],
    )
    await workspace.writer(member).apply([task({}, foreign)])
    const stranger: Gateway = {
      token,
      headers: { authorization: `Bearer ${token}` },
      principal: { kind: 'gateway', tenant_id: tenantId, gateway_id: gatewayId, slug: 'theirs' },
    }
    const writer = workspace.writer(stranger)
    const { results } = await writer.push(
      [update('tasks', foreign, { title: 'A task' }, { title: 'mine' })],
      [remove('tasks', foreign)],
      [task({ title: 'mine' }, foreign)],
      [task()],
      [update('tasks', newId(), {}, { title: 'x' })],
    )
    expect(results.map(({ code, outcome }) => code ?? outcome)).toEqual([
      'missing_row',
      'missing_row',
      'not_unique',
      'applied',
      'missing_row',
    ])
    expect(await row('tasks', foreign)).toMatchObject({ title: 'A task', deleted_at: null })
    const response = await workspace.request(stranger, `/v1/shape?table=tasks&offset=-1&replica_id=${writer.replicaId}`)
    const seen = ((await response.json()) as { value?: { tenant_id: string } }[]).flatMap(({ value }) => value ?? [])
    expect(seen.map(({ tenant_id }) => tenant_id)).toEqual([tenantId])
    const borrowed = workspace.writer(stranger, workspace.writer(member).replicaId)
    const own = workspace.writer(member)
    await own.apply([task()])
    const stolen = workspace.writer(stranger, own.replicaId)
    expect((await borrowed.send([])).status).toBe(200)
    expect((await stolen.send([stolen.mutation({ patches: [task()] })])).status).toBe(403)
  })

  test('what another tenant has can’t be referred to, and is told from nothing by no answer', async () => {
    const [tenantId, gatewayId, agent, stream] = [newId(), newId(), newId(), newId()]
    await workspace.rows(`insert into tenants (id, name, slug) values ($1::uuid, 'Third', 'third')`, [tenantId])
    await workspace.rows(
      `insert into gateways (id, tenant_id, gateway_id, slug, label) values ($1, $2, $1, 'third', 'Third')`,
      [gatewayId, tenantId],
    )
    await workspace.rows(`insert into agents (id, tenant_id, name, slug, gateway_id) values ($1, $2, 'A', 'a', $3)`, [
      agent,
      tenantId,
      gatewayId,
    ])
    await workspace.rows(`insert into streams (id, tenant_id, name) values ($1, $2, 'S')`, [stream, tenantId])
    const tries = (gateway: string, assignee: string, of: string) => [
      [task({ stream_id: of })],
      [task({ assignee_type: 'agent', assignee_agent_id: assignee })],
      [insert('agent_commands', { action: 'update', gateway_id: gateway, agent_id: assignee })],
    ]
    const codes = async (...ids: [string, string, string]) =>
      (await workspace.writer(member).push(...tries(...ids))).results.map(({ code, message }) => [code, message])
    const foreign = await codes(gatewayId, agent, stream)
    expect(foreign.map(([code]) => code)).toEqual(Array(3).fill('missing_reference'))
    expect(await codes(newId(), newId(), newId())).toEqual(foreign)
  })

  test('roles: not above one’s own, never without an owner; one’s own name always', async () => {
    const admin = await workspace.join('admin')
    const id = (person: Person) => person.principal.person_id
    const asAdmin = await workspace
      .writer(admin)
      .push(
        [update('people', id(member), { role: 'member' }, { role: 'owner' })],
        [update('people', id(workspace.owner), { role: 'owner' }, { role: 'viewer' })],
        [update('people', id(workspace.owner), { name: 'Olga Owner' }, { name: 'Somebody' })],
      )
    expect(asAdmin.results.map(({ code }) => code)).toEqual(['forbidden', 'forbidden', 'forbidden'])
    const asOwner = await workspace
      .writer(workspace.owner)
      .push(
        [update('people', id(workspace.owner), { role: 'owner' }, { role: 'admin' })],
        [remove('people', id(workspace.owner))],
      )
    expect(asOwner.results.map(({ code }) => code)).toEqual(['forbidden', 'forbidden'])
    await workspace
      .writer(member)
      .apply([update('people', id(member), {}, { name: 'New Name', timezone: 'Asia/Tokyo' })])
    const escalate = await workspace
      .writer(member)
      .push([update('people', id(member), { role: 'member' }, { role: 'admin' })])
    expect(escalate.results[0]?.code).toBe('forbidden')
  })

  test('a comment carries its author', async () => {
    const id = newId()
    await workspace.writer(member).apply([task({}, id)])
    const comment = newId()
    const body = { entity_type: 'task', entity_id: id, body: 'Hi', actor_type: 'human' }
    await workspace
      .writer(member)
      .apply([insert('comments', { ...body, actor_person_id: member.principal.person_id }, comment)])
    const other = await workspace.join('member')
    const { results } = await workspace
      .writer(other)
      .push(
        [insert('comments', { ...body, actor_person_id: member.principal.person_id })],
        [update('comments', comment, { body: 'Hi' }, { body: 'Bye' })],
        [remove('comments', comment)],
      )
    expect(results.map(({ code }) => code)).toEqual(['forbidden', 'forbidden', 'forbidden'])
    await workspace.writer(workspace.owner).apply([remove('comments', comment)])
  })
})

describe('merge', () => {
  test('different columns both stand', async () => {
    const id = newId()
    await workspace.writer(member).apply([task({ priority: 'low' }, id)])
    await workspace.writer(member).apply([update('tasks', id, { title: 'A task' }, { title: 'One' })])
    await workspace.writer(workspace.owner).apply([update('tasks', id, { priority: 'low' }, { priority: 'high' })])
    expect(await row('tasks', id)).toMatchObject({ title: 'One', priority: 'high' })
    expect(await workspace.rows('select * from conflicts where row_id = $1', [id])).toEqual([])
  })

  test('the same column: the later clock wins whatever comes first, and the loser is kept', async () => {
    const now = Date.now()
    for (const laterFirst of [true, false]) {
      const id = newId()
      await workspace.writer(member).apply({ patches: [task({}, id)], at: now - 60_000 })
      const early = { patches: [update('tasks', id, { title: 'A task' }, { title: 'early' })], at: now - 30_000 }
      const late = { patches: [update('tasks', id, { title: 'A task' }, { title: 'late' })], at: now - 20_000 }
      const [a, b] = [workspace.writer(member), workspace.writer(workspace.owner)]
      await a.apply(laterFirst ? late : early)
      await b.apply(laterFirst ? early : late)
      expect((await row('tasks', id))?.['title']).toBe('late')
      const conflicts = await workspace.rows(
        'select winner, loser, loser_actor, winner_actor from conflicts where row_id = $1',
        [id],
      )
      const [first, second] = [member.principal.person_id, workspace.owner.principal.person_id]
      expect(conflicts).toEqual([
        {
          winner: 'late',
          loser: 'early',
          winner_actor: { type: 'human', id: laterFirst ? first : second },
          loser_actor: { type: 'human', id: laterFirst ? second : first },
        },
      ])
      const results = await workspace.rows('select outcome, detail from mutation_results where replica_id = $1', [
        b.replicaId,
      ])
      expect(results).toEqual(
        laterFirst ? [{ outcome: 'applied', detail: { lost: [{ table: 'tasks', id, column: 'title' }] } }] : [],
      )
    }
  })

  test('a clock of tomorrow is clamped: it does not win for ever', async () => {
    const id = newId()
    const wrong = workspace.writer(member)
    await wrong.apply([task({}, id)])
    await wrong.apply({
      patches: [update('tasks', id, { title: 'A task' }, { title: 'from tomorrow' })],
      at: Date.now() + 86_400_000,
    })
    await new Promise((later) => setTimeout(later, 20))
    await workspace
      .writer(workspace.owner)
      .apply({ patches: [update('tasks', id, { title: 'A task' }, { title: 'from today' })], at: Date.now() + 10 })
    expect((await row('tasks', id))?.['title']).toBe('from today')
  })

  test('deletes win, and can be undone by who saw them', async () => {
    const id = newId()
    const writer = workspace.writer(member)
    await writer.apply([task({}, id)])
    await writer.apply([remove('tasks', id)])
    await workspace
      .writer(workspace.owner)
      .apply([update('tasks', id, { title: 'A task' }, { title: 'edited meanwhile' })])
    const deleted = (await row('tasks', id)) ?? {}
    expect(deleted).toMatchObject({ title: 'edited meanwhile' })
    const at = (deleted['deleted_at'] as Date).toISOString()
    await workspace
      .writer(workspace.owner)
      .apply([update('tasks', id, { deleted_at: '2001-01-01T00:00:00Z' }, { deleted_at: null })])
    expect((await row('tasks', id))?.['deleted_at']).not.toBeNull()
    await writer.apply([update('tasks', id, { deleted_at: at }, { deleted_at: null })])
    expect((await row('tasks', id))?.['deleted_at']).toBeNull()
  })

  test('strict: a stale verdict is refused with the present one', async () => {
    const [id, link] = [newId(), newId()]
    const agent = await agentOn(gatewayA)
    await workspace.writer(member).apply([task({}, id)])
    await workspace.writer(gatewayA).apply({
      actor: { type: 'agent', id: agent },
      patches: [
        insert(
          'entity_links',
          {
            owner_type: 'task',
            owner_id: id,
            target_type: 'text',
            body: 'x',
            is_deliverable: true,
            review_status: 'submitted',
            submitted_by_agent_id: agent,
          },
          link,
        ),
      ],
    })
    await workspace
      .writer(workspace.owner)
      .apply([update('entity_links', link, { review_status: 'submitted' }, { review_status: 'rejected' })])
    const { results } = await workspace
      .writer(member)
      .push([update('entity_links', link, { review_status: 'submitted' }, { review_status: 'approved' })])
    expect(results[0]).toMatchObject({
      outcome: 'rejected',
      code: 'stale',
      message: expect.stringContaining('rejected') as string,
    })
  })

  test('two sides tag one row: both stand, and nothing is a conflict; whose card moved later decides, silently', async () => {
    const id = newId()
    const now = Date.now()
    const [mine, theirs] = [workspace.writer(member), workspace.writer(workspace.owner)]
    await mine.apply({ patches: [task({ tags: ['a', 'b'], sort_order: '1' }, id)], at: now - 60_000 })
    const base = { tags: ['a', 'b'], sort_order: '1' }
    await mine.apply({
      patches: [update('tasks', id, base, { tags: ['b', 'mine'], sort_order: '2' })],
      at: now - 20_000,
    })
    await theirs.apply({
      patches: [update('tasks', id, base, { tags: ['a', 'b', 'theirs'], sort_order: '3' })],
      at: now - 30_000,
    })
    expect(await row('tasks', id)).toMatchObject({ tags: ['b', 'mine', 'theirs'], sort_order: 2 })
    expect(await workspace.rows('select 1 from conflicts where row_id = $1', [id])).toEqual([])
    const results = 'select 1 from mutation_results where replica_id = $1'
    expect(await workspace.rows(results, [theirs.replicaId])).toEqual([])
  })

  test('two deletes that did not see one another: an undo that saw only its own leaves the row deleted', async () => {
    const id = newId()
    const [mine, theirs] = [workspace.writer(member), workspace.writer(workspace.owner)]
    await mine.apply([task({}, id)])
    const [early, late] = ['2026-01-01T10:00:00.000Z', '2026-01-01T11:00:00.000Z']
    await mine.apply([update('tasks', id, { deleted_at: null }, { deleted_at: early })])
    await theirs.apply([update('tasks', id, { deleted_at: null }, { deleted_at: late })])
    for (const seen of [early, late])
      await mine.apply([update('tasks', id, { deleted_at: seen }, { deleted_at: null })])
    const [found] = await workspace.rows("select to_jsonb(deleted_at) #>> '{}' as at from tasks where id = $1", [id])
    expect(found?.['at']).toBe('2026-01-01T11:00:00.000001+00:00')
    await mine.apply([update('tasks', id, { deleted_at: found?.['at'] }, { deleted_at: null })])
    expect((await row('tasks', id))?.['deleted_at']).toBeNull()
  })

  test('big numbers keep every digit', async () => {
    const id = newId()
    const writer = workspace.writer(member)
    await writer.apply([insert('knowledge_items', { kind: 'file', title: 'Big', file_size: '9007199254740993' }, id)])
    await writer.apply([
      update('knowledge_items', id, { file_size: '9007199254740993' }, { file_size: '9007199254740995' }),
    ])
    expect((await row('knowledge_items', id))?.['file_size']).toBe('9007199254740995')
    expect(await workspace.rows('select 1 from conflicts where row_id = $1', [id])).toEqual([])
  })

  test('the same insert from two replicas is one row', async () => {
    const id = newId()
    const created_at = new Date().toISOString()
    await workspace.writer(member).apply([task({ created_at }, id)])
    await workspace.writer(member).apply([task({ created_at }, id)])
    expect(await workspace.rows('select id from tasks where id = $1', [id])).toHaveLength(1)
  })
})

describe('rejections of the domain and of constraints', () => {
  test('each says what, and the mutation leaves nothing behind', async () => {
    const writer = workspace.writer(workspace.owner)
    const gateway_id = gatewayA.principal.gateway_id
    const [parent, child, grandchild] = [newId(), newId(), newId()]
    await writer.apply(
      [insert('agents', { name: 'Taken', slug: 'taken', gateway_id })],
      [task({}, parent), task({ parent_id: parent }, child)],
    )
    const half = newId()
    const { results } = await writer.push(
      [insert('agents', { name: 'Again', slug: 'taken', gateway_id })],
      [insert('agents', { name: 'Bad', slug: 'Not A Slug', gateway_id })],
      [insert('agents', { name: 'Bad', slug: 'everyone', gateway_id })],
      [task({}, half), task({ stream_id: newId() })],
      [task({ parent_id: child }, grandchild)],
      [update('tasks', parent, { parent_id: null }, { parent_id: half })],
      [task({ title: '   ' })],
      [update('tasks', child, { created_at: null }, { created_at: '2020-01-01T00:00:00Z' })],
      [insert('task_relations', { source_task_id: parent, target_task_id: child, relation_type: 'blocks' })],
      [insert('task_relations', { source_task_id: child, target_task_id: parent, relation_type: 'blocks' })],
    )
    expect(results.map(({ code, outcome }) => code ?? outcome)).toEqual([
      'not_unique',
      'invalid',
      'invalid',
      'missing_reference',
      'invalid',
      'invalid',
      'invalid',
      'immutable',
      'applied',
      'invalid',
    ])
    expect(results[0]?.message).toContain('slug')
    expect(results[3]?.message).toContain('stream')
    expect(await row('tasks', half)).toBeUndefined()
  })

  test('two halves of a circle at the same moment: one of them is refused', async () => {
    const [a, b] = [newId(), newId()]
    await workspace.writer(member).apply([task({}, a), task({}, b)])
    const relation = (source: string, target: string) =>
      workspace
        .writer(member)
        .push([insert('task_relations', { source_task_id: source, target_task_id: target, relation_type: 'blocks' })])
    const outcomes = (await Promise.all([relation(a, b), relation(b, a)])).map(({ results }) => results[0]?.outcome)
    expect(outcomes.sort()).toEqual(['applied', 'rejected'])
  })

  test('a child before its parent in one mutation is fine', async () => {
    const [parent, child] = [newId(), newId()]
    await workspace.writer(member).apply([task({ parent_id: parent }, child), task({}, parent)])
  })
})
