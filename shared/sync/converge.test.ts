/**
 * P3: whatever edits two replicas make, whatever the network does, when it is healthy again and writers rest, both equal the server and their outboxes
 * are empty. P2 on the way: every acknowledged write is applied once, in the order of its replica.
 *
 * Random edits from a seed; the seed is part of each test's name, `SEED=…` runs another one.
 */
import { randomUUID } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import type { Mutation } from './protocol.ts'
import { createFakeServer } from './testing/fake-server.ts'
import {
  addTask,
  killedCopy,
  openTestReplica,
  seeded,
  settled,
  TENANT,
  type TestReplica,
  until,
} from './testing/harness.ts'

// Databases are opened and thrown away in each test; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const seeds = process.env['SEED'] ? [Number(process.env['SEED'])] : [1, 20_261, 777_777]

for (const seed of seeds) {
  test(`P3: two replicas and the server converge (seed ${seed})`, async () => {
    const random = seeded(seed)
    const pick = <T>(items: readonly T[]): T | undefined => items[Math.floor(random() * items.length)]
    const server = createFakeServer({ tenantId: TENANT })
    server.faults.longPollMs = 200
    server.faults.reject = ({ patches }) =>
      patches.some(({ set }) => set['title'] === 'refused') ? { code: 'invalid', message: 'no' } : undefined
    const tables = ['tasks', 'contacts'] as const
    const replicas: TestReplica[] = []
    try {
      for (let index = 0; index < 2; index++) replicas.push(await openTestReplica(server, { tables: [...tables] }))
      await until(() => replicas.every((replica) => replica.status().initial.done))
      const acknowledged = new Map<number, number>()

      for (let step = 0; step < 120; step++) {
        const which = Math.floor(random() * 2)
        const replica = replicas[which]
        if (!replica) continue
        const dice = random()
        const rows = await replica.query<{ id: string }>('select id from tasks order by id')
        const id = pick(rows)?.id
        let seq: number | undefined
        if (dice < 0.25 || !id) {
          await addTask(replica, random() < 0.1 ? 'refused' : `t${step}`)
          seq = 1
        } else if (dice < 0.55) {
          const column = pick(['title', 'description', 'priority'])
          const value = random() < 0.05 && column === 'title' ? 'refused' : `v${step}`
          ;({ seq } = await replica.write((tx) =>
            tx.query(`update tasks set ${column} = $2 where id = $1`, [id, value]),
          ))
        } else if (dice < 0.62) {
          ;({ seq } = await replica.write((tx) => tx.query('delete from tasks where id = $1', [id])))
        } else if (dice < 0.7) {
          ;({ seq } = await replica.write(async (tx) => {
            await tx.query('update tasks set sort_order = sort_order + 1, tags = array[$2, null] where id = $1', [
              id,
              `tag ${step}`,
            ])
            await tx.query(`insert into contacts (id, tenant_id, name) values ($1, $2, $3)`, [
              randomUUID(),
              TENANT,
              `c${step}`,
            ])
          }))
        } else if (dice < 0.76) {
          server.put('tasks', { id, title: `server ${step}` })
        } else if (dice < 0.8) {
          server.faults.online = !server.faults.online
        } else if (dice < 0.88) {
          const kind = pick(['drop', 'lose'] as const) ?? 'drop'
          let times = 2
          server.faults.fault = ({ path }) => (path === '/v1/mutations' && times-- > 0 ? { kind } : undefined)
        } else if (dice < 0.91) {
          server.rotate(pick(tables) ?? 'tasks')
        } else if (dice < 0.93) {
          const copy = await killedCopy(replica.db)
          await replica.close()
          replicas[which] = await openTestReplica(server, { db: copy, tables: [...tables] })
        } else {
          await new Promise((resolve) => setTimeout(resolve, random() * 30))
        }
        if (seq !== undefined) acknowledged.set(which, (acknowledged.get(which) ?? 0) + 1)
      }

      server.faults.fault = () => undefined
      server.faults.online = true
      server.reconnect()
      for (const replica of replicas) await settled(replica)

      const wanted = server
        .rows('tasks')
        .map(({ id, title, description, deleted_at: deleted, sort_order: order, priority }) => ({
          id,
          title,
          description,
          gone: deleted !== null,
          order: Number(order),
          priority,
        }))
      const byId = (a: { id?: unknown }, b: { id?: unknown }): number => (String(a.id) < String(b.id) ? -1 : 1)
      const contacts = server
        .rows('contacts')
        .map((row) => row['name'])
        .sort()
      for (const replica of replicas) {
        await until(async () => {
          const shown = await replica.query<Record<string, unknown>>(
            'select id, title, description, deleted_at is not null as gone, sort_order as order, priority from tasks',
          )
          return JSON.stringify(shown.sort(byId)) === JSON.stringify(wanted.sort(byId))
        }, `replica to equal the server, seed ${seed}`)
        expect(
          (await replica.query<{ name: string }>('select name from contacts')).map(({ name }) => name).sort(),
        ).toEqual(contacts)
        const left = await replica.query<{ n: number }>(
          `select (select count(*) from sync.outbox where state <> 'rejected')::int + (select count(*) from sync.pending_base)::int as n`,
        )
        expect(left).toEqual([{ n: 0 }])
      }
      replicas.forEach((replica, index) => {
        const mine = server.applied
          .filter(({ hlc }: Mutation) => hlc.endsWith(replica.identity.replicaId))
          .map(({ seq }) => seq)
        expect(mine, 'applied once, in order').toEqual([...new Set(mine)].sort((a, b) => a - b))
        expect(server.lastSeq(replica.identity.replicaId)).toBe(acknowledged.get(index) ?? 0)
      })
    } finally {
      for (const replica of replicas) await replica.close()
      server.close()
    }
  })
}
