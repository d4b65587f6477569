/** A database that is away says nothing about who may do what (principal.ts, 2). */
import { expect, test } from 'vitest'
import { newId } from '../database/ids.ts'
import { type Caller, insert, startWorkspace } from '../testing/workspace.ts'

test('while the database is away every request of a person or a gateway is a 503 with a time to come back, never a refusal; then all goes on', async () => {
  const workspace = await startWorkspace()
  try {
    const person = await workspace.join('member')
    const gateway = await workspace.gateway()
    const writers = [person, gateway].map((caller) => ({ caller, writer: workspace.writer(caller) }))
    const note = () => insert('streams', { name: newId() })
    await writers[0]?.writer.apply([note()])

    await workspace.postgres.halt()
    const ask = async (caller: Caller, path: string, init?: RequestInit) => {
      const response = await workspace.request(caller, path, init)
      const body = (await response.json()) as { code?: string }
      return [response.status, body.code, Number(response.headers.get('retry-after')) > 0]
    }
    for (const { caller, writer } of writers) {
      const push = { method: 'POST', body: JSON.stringify({ mutations: [] }) }
      const headers = { 'content-type': 'application/json', 'x-hq-replica': writer.replicaId }
      expect(await ask(caller, '/v1/mutations', { ...push, headers })).toEqual([503, 'busy', true])
      expect(await ask(caller, `/v1/shape?table=tasks&offset=-1&replica_id=${writer.replicaId}`)).toEqual([
        503,
        'busy',
        true,
      ])
      expect(await ask(caller, '/v1/session')).toEqual([503, 'busy', true])
    }

    await workspace.postgres.restart()
    await expect.poll(() => ask(gateway, '/v1/session').then(([status]) => status), { timeout: 20_000 }).toBe(200)
    for (const { writer } of writers) await writer.apply([note()])
  } finally {
    await workspace.stop()
  }
})
