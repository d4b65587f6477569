/** The three ways in which a gateway hears of changes (HQ_SYNC): one WebSocket, long polls, server-sent events; the product is the same over each. */

import { randomUUID } from 'node:crypto'
import { readMigrations } from '@hq/shared/sync/adapter-node.ts'
import { openReplica } from '@hq/shared/sync/replica.ts'
import { openDatabase, until } from '@hq/shared/sync/testing/harness.ts'
import { insert } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type System, startSystem } from './support/system.ts'

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system?.stop())

test.for(['websocket', 'long-poll', 'sse'])(
  '%s: a command is heard, carried out and answered, also after the server was killed',
  async (way) => {
    const gateway = await system.gateway(way, { env: { HQ_SYNC: way } })
    const ask = async (): Promise<string> => {
      const id = randomUUID()
      await system.writer(system.owner).apply([
        insert(
          'agent_commands',
          {
            gateway_id: gateway.id,
            action: 'list_models',
            requested_by: system.owner.principal.person_id,
            payload: {},
          },
          id,
        ),
      ])
      return id
    }
    await system.rowWhen('agent_commands', await ask(), ({ status }) => status === 'done')
    await system.server.kill()
    await system.server.start()
    await system.rowWhen('agent_commands', await ask(), ({ status }) => status === 'done')
    await gateway.end()
  },
)

test('sse: changes come down the open stream, as the text that Postgres printed; nothing is asked again for them', async () => {
  const { owner, server } = system
  const streams: string[] = []
  let asked = 0
  const replica = await openReplica({
    db: await openDatabase(),
    migrations: readMigrations(),
    identity: { kind: 'browser', ownerId: owner.principal.person_id, tenantId: system.tenantId },
    serverUrl: server.url,
    tables: ['tasks'],
    liveSse: true,
    environment: {
      now: Date.now,
      randomUuid: randomUUID,
      log: () => undefined,
      fetch: async (input, init) => {
        const headers = new Headers(init?.headers)
        for (const [name, value] of Object.entries(owner.headers)) headers.set(name, value)
        const response = await fetch(input, { ...init, headers })
        asked++
        if (response.headers.get('content-type')?.startsWith('text/event-stream')) streams.push(input)
        return response
      },
    },
  })
  try {
    await until(() => streams.length === 3, 'three streams: tasks, acknowledgements, refusals')
    const before = asked
    const ids = Array.from({ length: 20 }, () => randomUUID())
    for (const id of ids)
      await system.writer(owner).apply([insert('tasks', { title: `over SSE ${id}`, sort_order: 0.1 }, id)])
    await until(
      async () => (await replica.query('select from tasks where id = any ($1)', [ids])).length === 20,
      'all of them',
    )
    expect(await replica.query('select distinct sort_order from tasks where id = any ($1)', [ids])).toEqual([
      { sort_order: 0.1 },
    ])
    expect(asked).toBe(before)
  } finally {
    await replica.close()
  }
})
