import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ReplicaConnection } from './connection.ts'
import { CALL_LIMIT_MS, type ToPage, type ToWorker } from './messages.ts'

/** A worker that answers when the test says so. */
class FakeWorker extends EventTarget {
  readonly heard: ToWorker[] = []
  terminated = false
  onmessage: ((event: MessageEvent<ToPage>) => void) | null = null
  onerror: ((event: { message: string; preventDefault(): void }) => void) | null = null
  postMessage(message: ToWorker): void {
    this.heard.push(message)
  }
  say(message: ToPage): void {
    this.onmessage?.({ data: message } as MessageEvent<ToPage>)
  }
  terminate(): void {
    this.terminated = true
  }
  calls() {
    return this.heard.flatMap((message) => (message.t === 'call' ? [message.call] : []))
  }
}

const OPEN: ToPage = { t: 'phase', phase: { name: 'open', storage: 'opfs', notice: null } }

let workers: FakeWorker[]
const connect = (): ReplicaConnection => {
  workers = []
  return new ReplicaConnection({ tenantId: 't', personId: 'p' }, () => {
    const worker = new FakeWorker()
    workers.push(worker)
    return worker as unknown as Worker
  })
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('C1: before the database was ever open, calls wait; afterwards every call ends within the limit', async () => {
  const connection = connect()
  const early = connection.query('select 1')
  early.catch(() => undefined)
  await vi.advanceTimersByTimeAsync(60_000)
  workers[0]?.say(OPEN)
  const late = connection.write([{ sql: 'insert …' }])
  const both = Promise.allSettled([early, late])
  await vi.advanceTimersByTimeAsync(CALL_LIMIT_MS)
  const results = await both
  expect(results.map((result) => result.status === 'rejected' && result.reason.code)).toEqual(['timeout', 'timeout'])
  expect(workers[0]?.heard.filter((message) => message.t === 'cancel')).toHaveLength(2)
})

test('answers find their calls; a refusal is an error with its words', async () => {
  const connection = connect()
  workers[0]?.say(OPEN)
  const first = connection.query('select 1')
  const second = connection.query('select nonsense')
  const [one, two] = workers[0]?.calls() ?? []
  workers[0]?.say({
    t: 'answer',
    answer: { id: two?.id ?? '', ok: false, error: { code: 'sql', message: 'no such column' } },
  })
  workers[0]?.say({ t: 'answer', answer: { id: one?.id ?? '', ok: true, value: [{ n: 1 }] } })
  await expect(first).resolves.toEqual([{ n: 1 }])
  await expect(second).rejects.toMatchObject({ code: 'sql', message: 'no such column' })
})

test('C2: a worker that dies is replaced, and unanswered calls are sent again with their ids', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const connection = connect()
  workers[0]?.say(OPEN)
  const write = connection.write([{ sql: 'insert …' }])
  workers[0]?.onerror?.({ message: 'out of memory', preventDefault: () => undefined })
  await vi.advanceTimersByTimeAsync(500)
  expect(workers[0]?.terminated).toBe(true)
  expect(workers[1]?.calls()[0]?.id).toBe(workers[0]?.calls()[0]?.id)
  workers[1]?.say({
    t: 'answer',
    answer: { id: workers[1].calls()[0]?.id ?? '', ok: true, value: { result: [], seq: 1 } },
  })
  await expect(write).resolves.toEqual({ result: [], seq: 1 })
  logged.mockRestore()
})

test('a database that cannot be opened ends all calls with the reason', async () => {
  const connection = connect()
  const waiting = connection.query('select 1')
  workers[0]?.say({ t: 'phase', phase: { name: 'failed', message: 'the disk is gone' } })
  await expect(waiting).rejects.toMatchObject({ code: 'failed', message: 'the disk is gone' })
  await expect(connection.query('select 1')).rejects.toMatchObject({ code: 'failed' })
})

test('after closing, calls end with `closed`', async () => {
  const connection = connect()
  const waiting = connection.query('select 1')
  const closing = connection.close()
  await expect(waiting).rejects.toMatchObject({ code: 'closed' })
  await vi.advanceTimersByTimeAsync(2_000)
  await closing
  expect(workers[0]?.terminated).toBe(true)
  await expect(connection.query('select 1')).rejects.toMatchObject({ code: 'closed' })
})
