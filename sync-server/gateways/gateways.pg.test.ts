/** Retiring with and without agents, parcels between gateways, and who may give an agent away. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '../database/ids.ts'
import { type Gateway, insert, startWorkspace, update, type Workspace, type Writer } from '../testing/workspace.ts'

let workspace: Workspace
let owner: Writer
let one: Gateway
let two: Gateway

beforeAll(async () => {
  workspace = await startWorkspace()
  owner = workspace.writer(workspace.owner)
  one = await workspace.gateway('one')
  two = await workspace.gateway('two')
})
afterAll(() => workspace.stop())

const row = async (table: string, id: string): Promise<Record<string, unknown> | undefined> =>
  (await workspace.rows<Record<string, unknown>>(`select * from ${table} where id = $1`, [id]))[0]
const agentOn = async (gateway: Gateway, slug: string): Promise<string> => {
  const id = newId()
  await owner.apply([
    insert('agents', { tenant_id: workspace.tenantId, name: slug, slug, gateway_id: gateway.principal.gateway_id }, id),
  ])
  return id
}
const move = (agent: string, from: Gateway, to: Gateway, id = newId()) =>
  insert(
    'agent_commands',
    {
      tenant_id: workspace.tenantId,
      gateway_id: from.principal.gateway_id,
      agent_id: agent,
      action: 'move',
      payload: { to_gateway_id: to.principal.gateway_id },
      requested_by: workspace.owner.principal.person_id,
    },
    id,
  )

test('a gateway with agents is retired only when somebody says so; what waits there is refused, and goes along when the agent is moved', async () => {
  const gateway = await workspace.gateway('going')
  const gatewayId = gateway.principal.gateway_id
  const agent = await agentOn(gateway, 'wanda')
  const [task, command] = [newId(), newId()]
  await owner.apply(
    [insert('tasks', { title: 'Open', assignee_type: 'agent', assignee_agent_id: agent }, task)],
    [insert('agent_commands', { gateway_id: gatewayId, agent_id: agent, action: 'update' }, command)],
  )
  const retire = (how = ''): Promise<Response> =>
    workspace.request(workspace.owner, `/v1/gateways/${gatewayId}${how}`, { method: 'DELETE' })
  const refused = await retire()
  expect(refused.status).toBe(409)
  expect(await refused.json()).toMatchObject({
    code: 'agents_bound',
    message: expect.stringContaining('wanda still lives on “going”'),
  })
  expect(await row('gateways', gatewayId)).toMatchObject({ deleted_at: null })

  expect((await retire('?agents=leave')).status).toBe(200)
  expect(await row('gateways', gatewayId)).toMatchObject({ status: 'retired', deleted_at: expect.any(Date) })
  expect(await row('agent_commands', command)).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('“going” was retired'),
  })
  const item = async () => (await workspace.rows(`select * from agent_inbox_items where task_id = $1`, [task]))[0]
  expect(await item()).toMatchObject({ status: 'failed', error_message: 'The gateway “going” was retired.' })
  expect(await row('agents', agent)).toMatchObject({
    status: 'error',
    gate_detail: expect.stringContaining('Move the agent'),
  })

  await owner.apply([update('agents', agent, { gateway_id: gatewayId }, { gateway_id: one.principal.gateway_id })])
  expect(await row('agents', agent)).toMatchObject({ status: 'provisioning', epoch: 2, gate: null })
  expect(await item()).toMatchObject({ status: 'pending', gateway_id: one.principal.gateway_id })
})

test('a gateway gives an agent away only as a person’s command says, and only to a living gateway', async () => {
  const agent = await agentOn(one, 'mover')
  const old = workspace.writer(one)
  const give = (to: Gateway) =>
    update('agents', agent, { gateway_id: one.principal.gateway_id }, { gateway_id: to.principal.gateway_id })
  expect((await old.push([give(two)])).results[0]).toMatchObject({ outcome: 'rejected', code: 'forbidden' })

  const command = newId()
  await owner.apply([move(agent, one, two, command)])
  const begun = update('agent_commands', command, { status: 'pending' }, { status: 'running' })
  const ended = update('agent_commands', command, { status: 'running' }, { status: 'done' })
  await old.apply([begun])
  const third = await workspace.gateway('third')
  expect((await old.push([give(third), ended])).results[0]).toMatchObject({ outcome: 'rejected', code: 'forbidden' })
  const file = newId()
  await old.apply([
    insert(
      'agent_files',
      { gateway_id: one.principal.gateway_id, agent_id: agent, path: 'SOUL.md', size: 1, sha: 'a', content: 'x' },
      file,
    ),
  ])
  await old.apply([give(two), ended])
  expect(await row('agents', agent)).toMatchObject({ gateway_id: two.principal.gateway_id, epoch: 2 })
  expect(await row('agent_files', file)).toMatchObject({ gateway_id: two.principal.gateway_id, content: 'x' })

  // What the old one still says of it does not count.
  const late = await old.push(
    [update('agents', agent, {}, { status: 'ready' })],
    [
      insert('agent_files', {
        gateway_id: one.principal.gateway_id,
        agent_id: agent,
        path: 'late.md',
        size: 1,
        sha: 'b',
      }),
    ],
    [update('agent_files', file, {}, { sha: 'late' })],
  )
  expect(late.results.map(({ outcome, code }) => [outcome, code])).toEqual([
    ['rejected', 'forbidden'],
    ['rejected', 'forbidden'],
    ['rejected', 'forbidden'],
  ])

  await workspace.request(workspace.owner, `/v1/gateways/${third.principal.gateway_id}`, { method: 'DELETE' })
  const gone = await owner.push([
    update('agents', agent, { gateway_id: two.principal.gateway_id }, { gateway_id: third.principal.gateway_id }),
  ])
  expect(gone.results[0]).toMatchObject({ outcome: 'rejected', message: expect.stringContaining('retired') })
})

test('a parcel is fetched by the gateway that it is for, and by nobody else', async () => {
  const content = Buffer.from('sealed for two')
  const sha256 = createHash('sha256').update(content).digest('hex')
  const at = `/v1/gateways/parcels/${sha256}`
  const raw = { 'content-type': 'application/octet-stream' }
  const put = (caller: Gateway | Workspace['owner'], to: string): Promise<Response> =>
    workspace.request(caller, `${at}?for=${to}`, { method: 'PUT', body: content, headers: raw })
  expect((await put(workspace.owner, two.principal.gateway_id)).status).toBe(404)
  expect((await put(one, newId())).status).toBe(404)
  expect((await put(one, '../../etc')).status).toBe(404)
  expect((await put(one, two.principal.gateway_id)).status).toBe(201)
  for (const caller of [undefined, one, workspace.owner]) {
    expect((await workspace.request(caller, at)).status).toBe(404)
    expect((await workspace.request(caller, at, { method: 'DELETE' })).status).toBeOneOf([200, 404])
  }
  expect(await (await workspace.request(two, at)).text()).toBe('sealed for two')
  await workspace.request(two, at, { method: 'DELETE' })
  expect((await workspace.request(two, at)).status).toBe(404)
})
