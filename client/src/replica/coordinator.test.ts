/** Leaders and followers in one process: real BroadcastChannels, locks that the test takes away, engines that it answers for. */
import { afterEach, expect, test, vi } from 'vitest'
import { Coordinator, type Engine, type EngineEvents } from './coordinator.ts'
import { type Answer, type Call, type Request, type ToPage, UNKNOWN_STATUS } from './messages.ts'

/** One exclusive lock; `crash` ends the holder without a word, as the end of its tab does. */
class FakeLocks {
  readonly #queue: (() => Promise<void>)[] = []
  #held = false
  #crash: () => void = () => undefined

  request(_name: string, _options: unknown, work: () => Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      this.#queue.push(async () => {
        const crashed = new Promise<void>((end) => {
          this.#crash = end
        })
        await Promise.race([work(), crashed])
        resolve()
      })
      this.#next()
    })
  }

  crash(): void {
    this.#crash()
  }

  #next(): void {
    const next = this.#held ? undefined : this.#queue.shift()
    if (!next) return
    this.#held = true
    void next().then(() => {
      this.#held = false
      this.#next()
    })
  }
}

/** What all engines write to: a database survives its tab. */
interface Disk {
  readonly writes: Map<string, number>
}

interface Tab {
  readonly coordinator: Coordinator
  readonly said: ToPage[]
  /** Stops the engine from answering, as a tab does that is about to die. */
  hang(): void
  events(): EngineEvents
  ask(request: Request, id?: string, deadline?: number): Promise<Answer>
  mute(): void
}

let tabs: Tab[] = []
let names = 0
afterEach(async () => {
  for (const tab of tabs) await tab.coordinator.close()
  tabs = []
})

function openTab(locks: FakeLocks, disk: Disk, name: string): Tab {
  const said: ToPage[] = []
  const waiting = new Map<string, (answer: Answer) => void>()
  let hanging = false
  let muted = false
  let events: EngineEvents | undefined
  const never = new Promise<never>(() => undefined)
  const engine: Engine = {
    query: async (sql) => (hanging ? never : [{ sql }]),
    async write(id) {
      const seq = disk.writes.get(id) ?? disk.writes.size + 1
      disk.writes.set(id, seq)
      return hanging ? never : { result: [], seq }
    },
    outbox: async () => [],
    retry: async () => (hanging ? never : undefined),
    discard: async () => (hanging ? never : undefined),
    rebuild: async () => undefined,
    rescued: async () => ({ waiting: 0, failed: [] }),
    forgetRescued: async () => undefined,
    importChanges: async () => ({ imported: 0, known: 0, failed: [] }),
    status: () => ({ ...UNKNOWN_STATUS, pending: disk.writes.size }),
    wake: () => undefined,
    close: async () => undefined,
  }
  const coordinator = new Coordinator({
    name,
    locks: locks as unknown as LockManager,
    askMs: 20,
    open: async (given) => {
      events = given
      given.phase({ name: 'open', storage: 'opfs', notice: null })
      return engine
    },
    post: (message) => {
      if (muted) return
      said.push(message)
      if (message.t === 'answer') waiting.get(message.answer.id)?.(message.answer)
    },
  })
  const tab: Tab = {
    coordinator,
    said,
    hang: () => {
      hanging = true
    },
    mute: () => {
      muted = true
    },
    events: () => {
      if (!events) throw new Error('this tab does not lead')
      return events
    },
    ask: (request, id = crypto.randomUUID(), deadline = Number.MAX_SAFE_INTEGER) =>
      new Promise((resolve) => {
        waiting.set(id, resolve)
        coordinator.call({ id, request, deadline } satisfies Call)
      }),
  }
  tabs.push(tab)
  coordinator.start()
  return tab
}

const setUp = (count: number) => {
  const locks = new FakeLocks()
  const disk: Disk = { writes: new Map() }
  const name = `test-${process.pid}-${++names}`
  return { locks, disk, tabs: Array.from({ length: count }, () => openTab(locks, disk, name)) as [Tab, Tab, ...Tab[]] }
}

const READ: Request = { kind: 'query', sql: 'select 1', params: [] }
const WRITE: Request = { kind: 'write', statements: [], options: {} }

test('followers get their answers from the leader, and its phase, status and changes', async () => {
  const {
    tabs: [leader, follower],
  } = setUp(2)
  expect(await follower.ask(READ)).toMatchObject({ ok: true, value: [{ sql: 'select 1' }] })
  leader.events().changed(['tasks'])
  await vi.waitFor(() => expect(follower.said).toContainEqual({ t: 'changed', changed: ['tasks'] }))
  expect(follower.said).toContainEqual({ t: 'phase', phase: { name: 'open', storage: 'opfs', notice: null } })
  expect(leader.said).toContainEqual({ t: 'leading', leading: true })
})

test('T1, T4: the leader dies with calls unanswered; the next one answers them, a write counts once, everything counts as changed', async () => {
  const {
    locks,
    disk,
    tabs: [leader, follower, third],
  } = setUp(3)
  await follower.ask(READ)
  await third?.ask(READ)
  leader.hang()
  const read = follower.ask(READ)
  const write = third?.ask(WRITE, 'write-1')
  await vi.waitFor(() => expect(disk.writes.has('write-1')).toBe(true))
  leader.mute()
  locks.crash()
  expect(await read).toMatchObject({ ok: true })
  expect(await write).toMatchObject({ ok: true, value: { seq: 1 } })
  expect(disk.writes.size).toBe(1)
  for (const tab of [follower, third]) expect(tab?.said).toContainEqual({ t: 'changed', changed: 'all' })
})

test('T1: what must not be repeated ends as unsure', async () => {
  const {
    locks,
    tabs: [leader, follower],
  } = setUp(2)
  await follower.ask(READ)
  leader.hang()
  const discard = follower.ask({ kind: 'discard', seq: 4 })
  await new Promise((resolve) => setTimeout(resolve, 30))
  locks.crash()
  expect(await discard).toMatchObject({ ok: false, error: { code: 'unsure' } })
})

test('T2: asked again with the same id, a write is carried out once and answered again; a late call is not begun', async () => {
  const {
    disk,
    tabs: [, follower],
  } = setUp(2)
  expect(await follower.ask(WRITE, 'same')).toMatchObject({ ok: true, value: { seq: 1 } })
  expect(await follower.ask(WRITE, 'same')).toMatchObject({ ok: true, value: { seq: 1 } })
  void follower.ask(WRITE, 'late', Date.now() - 1)
  await follower.ask(READ)
  expect([...disk.writes.keys()]).toEqual(['same'])
})

test('T3: calls made before anybody leads are answered when somebody does', async () => {
  const locks = new FakeLocks()
  let free: () => void = () => undefined
  void locks.request('', {}, () => new Promise((resolve) => (free = resolve)))
  const disk: Disk = { writes: new Map() }
  const tab = openTab(locks, disk, `test-${process.pid}-${++names}`)
  const early = tab.ask(WRITE, 'early')
  await new Promise((resolve) => setTimeout(resolve, 50))
  free()
  expect(await early).toMatchObject({ ok: true })
})
