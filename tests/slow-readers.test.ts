/**
 * Peers that ask for much and read nothing, beside one who works: what they don't read is not kept for them without bound, they are cut off, and nobody else
 * notices.
 */
import { SYNC_SUBPROTOCOL } from '@hq/shared/sync/protocol.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { residentMb, serverPid } from '../bench/support/memory.ts'
import { eventually } from './support/browser.ts'
import { openLive, until } from './support/replica.ts'
import { type System, startSystem, taskPatch } from './support/system.ts'

const READERS = 40
const ASKED = 100
const CHANGES = 3_000

let system: System
beforeAll(async () => {
  system = await startSystem()
  await system.rows(
    `insert into tasks (id, tenant_id, title, description) select gen_random_uuid(), $1, 'Task ' || n, repeat('What is to be done. ', 40)
     from generate_series(1, 8000) n`,
    [system.tenantId],
  )
})
afterAll(() => system?.stop())

/** Asks for the beginning of all tasks, again and again, and stops reading before the first answer. */
async function openStuck(): Promise<WebSocket> {
  const socket = new WebSocket(`${system.server.url.replace(/^http/, 'ws')}/v1/sync`, SYNC_SUBPROTOCOL, {
    headers: { ...system.owner.headers },
    origin: system.server.url,
  })
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  // A peer that is cut off hears of it as an error, or not at all.
  socket.on('error', () => undefined)
  socket.pause()
  const replicaId = newId()
  for (let id = 1; id <= ASKED; id++) {
    const path = `/v1/shape?table=tasks&replica=full&replica_id=${replicaId}&offset=-1`
    socket.send(JSON.stringify({ t: 'req', id, method: 'GET', path, headers: {} }))
  }
  return socket
}

test('readers that stop reading hold a bounded part of the memory and are cut off, and a neighbour sees every change', async () => {
  const pid = await serverPid(system.server.url)
  const neighbour = await openLive(system.server.url, system.owner)
  const stuck: WebSocket[] = []
  let most = 0
  const looking = setInterval(() => {
    residentMb(pid).then(
      (mb) => (most = Math.max(most, mb)),
      () => undefined, // between two looks the server may have ended; the test then fails by itself
    )
  }, 100)
  try {
    const before = await residentMb(pid)
    for (let n = 0; n < READERS; n++) stuck.push(await openStuck())
    for (let made = 0; made < CHANGES; made += 100) {
      await system.rows(
        `insert into tasks (id, tenant_id, title) select gen_random_uuid(), $1, 'Later ' || n from generate_series(1, 100) n`,
        [system.tenantId],
      )
    }
    await until(neighbour, 'the neighbour has all of it', async () => {
      const [row] = await neighbour.rows<{ n: number }>(
        `select count(*)::int as n from tasks where title like 'Later %'`,
      )
      return row?.n === CHANGES
    })
    const id = newId()
    await system.writer().apply([taskPatch(system, 'one more', null, id)])
    await until(neighbour, 'a single change arrives', async () => (await neighbour.ids('tasks')).includes(id), 5_000)
    // The server answers nobody who does not read; its own count of sockets says when they are gone.
    await eventually(
      'only the neighbour is left',
      async () => {
        const { sockets } = (await (await system.request(undefined, '/v1/health')).json()) as { sockets: number }
        return sockets === 1
      },
      90_000,
    )
    // All that they asked for is more than 20 GB.
    expect(most - before).toBeLessThan(450)
    expect(neighbour.refused).toEqual([])
  } finally {
    clearInterval(looking)
    for (const socket of stuck) socket.terminate()
    await neighbour.close()
  }
})
