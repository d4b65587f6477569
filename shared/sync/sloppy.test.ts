/**
 * Sloppy servers: whatever nonsense a server, a proxy or a hotel's portal answers for a while, a replica loses no row, does not die, does not hammer
 * the server, says it once, goes on writing, and is well again by itself when the answers are.
 */
import { randomUUID } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { createFakeServer, type FakeServer } from './testing/fake-server.ts'
import { addTask, openTestReplica, TENANT, type TestReplica, titles, until } from './testing/harness.ts'
import { type Asked, MOODS, type Mood, type SloppyServer, startSloppyServer } from './testing/sloppy.ts'

vi.setConfig({ testTimeout: 180_000 })
// Electric's client says on the console what it thinks of such servers.
vi.spyOn(console, 'warn').mockImplementation(() => undefined)

/** Of one shape, or of the outbox, in the time below. */
const MOST_REQUESTS = 20
const WATCHED_MS = 2_000

interface Scene {
  readonly fake: FakeServer
  readonly server: SloppyServer
  readonly replica: TestReplica
}

async function scene(work: (scene: Scene) => Promise<void>, mood?: Mood): Promise<void> {
  const fake = createFakeServer({ tenantId: TENANT })
  const server = await startSloppyServer(fake)
  for (const title of ['a', 'b', 'c']) fake.put('tasks', { id: randomUUID(), title, priority: 'none' })
  server.mood = mood
  const logged: string[] = []
  const replica = await openTestReplica(fake, {
    tables: ['tasks'],
    serverUrl: server.url,
    // What the adapters have is a socket of their own; here the fate of each request says how the connection is.
    transport: undefined as never,
    environment: {
      now: Date.now,
      randomUuid: randomUUID,
      fetch: (input, init) => fetch(input, init),
      log: (level, message) => {
        if (level === 'warn' || level === 'error') logged.push(`${level}: ${message}`)
      },
    },
  })
  try {
    await work({ fake, server, replica: Object.assign(replica, { logged }) })
  } finally {
    await replica.close()
    fake.close()
    await server.close()
  }
}

/** Requests of the busiest shape, or of the outbox. */
function busiest(asked: readonly Asked[]): number {
  const counts = new Map<string, number>()
  for (const { path, table } of asked) counts.set(`${path} ${table}`, (counts.get(`${path} ${table}`) ?? 0) + 1)
  return Math.max(0, ...counts.values())
}

/** Looks all the time for `ms`; returns the smallest number of tasks that was ever seen. */
async function fewest(replica: TestReplica, ms: number): Promise<number> {
  const end = performance.now() + ms
  let least = Number.POSITIVE_INFINITY
  while (performance.now() < end) {
    least = Math.min(least, (await titles(replica)).length)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return least
}

/** What was said about one shape or about pushing, without the numbers that change. */
function repeated(logged: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const line of logged) {
    const kind = line.replace(/\d+/g, 'n')
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return [...counts].flatMap(([line, count]) => (count > 1 ? [`${count} × ${line}`] : []))
}

/** On pushes alone there is no first load to be disturbed. */
const cases = Object.entries(MOODS) as [string, Mood][]

describe.concurrent('a replica that has been loaded', () => {
  test.for(cases)('%s', async ([, mood]) => {
    await scene(async ({ fake, server, replica }) => {
      await until(() => replica.status().initial.done, 'the first load')
      expect(await titles(replica)).toEqual(['a', 'b', 'c'])

      server.mood = mood
      const start = server.asked.length
      fake.put('tasks', { id: randomUUID(), title: 'd' })
      await addTask(replica, 'mine')
      const least = await fewest(replica, WATCHED_MS)
      const asked = server.asked.slice(start)
      const duringIt = await addTask(replica, 'mine too')
      expect(least).toBeGreaterThanOrEqual(4)
      expect(busiest(asked), JSON.stringify(asked.slice(0, 12))).toBeLessThan(MOST_REQUESTS)
      expect(repeated(replica.logged)).toEqual([])

      server.mood = undefined
      fake.put('tasks', { id: randomUUID(), title: 'e' })
      await until(() => replica.status().initial.done && replica.status().pending === 0, 'an empty outbox', 60_000)
      await until(async () => (await titles(replica)).join() === 'a,b,c,d,e,mine,mine too', 'everything', 60_000)
      expect(
        fake.applied.filter(({ patches }) => patches.some(({ id }) => id === duringIt)),
        'the write of that time took effect once',
      ).toHaveLength(1)
      expect(fake.applied).toHaveLength(2)
    })
  })
})

describe.concurrent('the first load', () => {
  test.for(cases.filter(([, mood]) => mood.on !== 'pushes'))('%s', async ([, mood]) => {
    await scene(async ({ fake, server, replica }) => {
      await addTask(replica, 'mine')
      const least = await fewest(replica, WATCHED_MS)
      expect(least).toBeGreaterThanOrEqual(1)
      expect(busiest(server.asked), JSON.stringify(server.asked.slice(0, 12))).toBeLessThan(MOST_REQUESTS)
      expect(repeated(replica.logged)).toEqual([])

      server.mood = undefined
      fake.put('tasks', { id: randomUUID(), title: 'd' })
      await until(() => replica.status().initial.done && replica.status().pending === 0, 'an empty outbox', 60_000)
      await until(async () => (await titles(replica)).join() === 'a,b,c,d,mine', 'everything', 60_000)
      expect(fake.applied).toHaveLength(1)
    }, mood)
  })
})
