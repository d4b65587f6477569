import { expect, test } from 'vitest'
import { createLink } from './link.ts'

test('N3: while the server cannot read some table the connection is not called online; any other answer for that table ends it', async () => {
  let status = 200
  let now = 1_800_000_000_000
  const link = createLink({
    serverUrl: 'http://127.0.0.1:1',
    environment: {
      now: () => now,
      randomUuid: () => crypto.randomUUID(),
      fetch: async () => new Response(null, { status }),
      log: () => undefined,
    },
    replicaId: () => 'r',
  })
  let told = 0
  link.onChange(() => told++)
  const read = (table: string): Promise<Response> => link.request(`/v1/shape?table=${table}&offset=-1`)
  await read('tasks')
  expect(link.connection()).toBe('online')
  told = 0

  expect(link.stalledSince()).toBeNull()
  status = 503
  await read('tasks')
  const since = new Date(now).toISOString()
  now += 60_000
  await read('tasks')
  expect(link.stalledSince()).toBe(since)
  expect(link.connection()).toBe('connecting')
  expect(told).toBe(1)
  status = 200
  await read('people')
  await link.request('/v1/mutations')
  expect(link.connection()).toBe('connecting')
  // The server answers again, though not with rows: it was able to look.
  status = 409
  await read('tasks')
  expect(link.connection()).toBe('online')
  expect(link.stalledSince()).toBeNull()
  expect(told).toBe(2)

  // A refused push says nothing of reading.
  status = 503
  await link.request('/v1/mutations')
  expect(link.connection()).toBe('online')
})
