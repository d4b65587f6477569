/** Taking a device out of the workspace and letting it in again, over real HTTP. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '../database/ids.ts'
import { type Caller, type Person, startWorkspace, type Workspace } from '../testing/workspace.ts'

let workspace: Workspace
let admin: Person
let member: Person

beforeAll(async () => {
  workspace = await startWorkspace()
  admin = await workspace.join('admin')
  member = await workspace.join('member')
})
afterAll(() => workspace?.stop())

const read = async (caller: Caller, replica: string, label?: string) => {
  const response = await workspace.request(caller, `/v1/shape?table=people&offset=-1&replica_id=${replica}`, {
    ...(label && { headers: { 'x-hq-label': label } }),
  })
  const body = (await response.json()) as { code?: string }
  return body.code ?? response.status
}
const ask = async (caller: Caller | undefined, action: 'revoke' | 'restore', id: string) => {
  const response = await workspace.request(caller, `/v1/devices/${id}/${action}`, { method: 'POST', body: '{}' })
  return response.status
}
const rowOf = async (id: string) => {
  const rows = await workspace.rows('select label, revoked_at is not null as revoked from replicas where id = $1', [id])
  return rows[0] as { label: string | null; revoked: boolean } | undefined
}

test('a person removes their own device, which counts at once; only an admin lets it in again', async () => {
  const device = newId()
  expect(await read(member, device, 'Chrome on Linux')).toBe(200)
  expect(await rowOf(device)).toEqual({ label: 'Chrome on Linux', revoked: false })
  expect(await ask(member, 'revoke', device)).toBe(200)
  // What the server knew of it for the last 30 seconds no longer counts.
  expect(await read(member, device)).toBe('revoked')
  expect(await ask(member, 'revoke', device)).toBe(200)
  expect(await ask(member, 'restore', device)).toBe(403)
  expect(await read(member, device)).toBe('revoked')
  expect(await ask(admin, 'restore', device)).toBe(200)
  expect(await read(member, device)).toBe(200)
})

test('nobody but an admin removes somebody else’s', async () => {
  const device = newId()
  expect(await read(admin, device)).toBe(200)
  expect(await ask(member, 'revoke', device)).toBe(403)
  expect(await ask(undefined, 'revoke', device)).toBe(401)
  expect(await read(admin, device)).toBe(200)
  const theirs = newId()
  expect(await read(member, theirs)).toBe(200)
  expect(await ask(admin, 'revoke', theirs)).toBe(200)
  expect(await read(member, theirs)).toBe('revoked')
})

test('gateways, unknown devices and those of another workspace are not touched', async () => {
  const gateway = await workspace.gateway()
  const replica = newId()
  expect(await read(gateway, replica)).toBe(200)
  expect(await ask(admin, 'revoke', replica)).toBe(409)
  expect(await ask(gateway, 'revoke', replica)).toBe(403)
  expect(await ask(admin, 'revoke', newId())).toBe(404)
  const foreign = newId()
  const tenant = newId()
  await workspace.rows(`insert into tenants (id, name, slug) values ($1, 'Other', 'other')`, [tenant])
  await workspace.rows(`insert into replicas (id, tenant_id, replica_id, kind) values ($1, $2, $1, 'browser')`, [
    foreign,
    tenant,
  ])
  expect(await ask(admin, 'revoke', foreign)).toBe(404)
  expect(await rowOf(foreign)).toMatchObject({ revoked: false })
})
