/** Several tabs on one database: the one that holds it goes away in the middle of everything. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  call,
  type Device,
  drained,
  eventually,
  hasChromium,
  openDevice,
  opened,
  query,
  setUpOwner,
  startTestServer,
  statusOf,
  type TestServer,
  within,
} from '../../../tests/support/browser.ts'

/** Writes and reads one after the other until told to stop; answers with what each call came to and how long it took. */
const START = `(name) => {
  const outcomes = []
  window.__stop = false
  const ask = (request) => new Promise((resolve) => {
    const id = crypto.randomUUID()
    const started = performance.now()
    const worker = window.__databaseWorker
    const listener = ({ data }) => {
      if (data.t !== 'answer' || data.answer.id !== id) return
      worker.removeEventListener('message', listener)
      resolve({ ok: data.answer.ok, error: data.answer.error?.code, ms: performance.now() - started })
    }
    worker.addEventListener('message', listener)
    worker.postMessage({ t: 'call', call: { id, request, deadline: Number.MAX_SAFE_INTEGER } })
  })
  window.__done = (async () => {
    for (let n = 0; !window.__stop; n++) {
      const title = name + ' ' + n
      const statements = [{ sql: "insert into tasks (id, tenant_id, title) select uuidv7(), tenant_id, $1 from sync.replica", params: [title] }]
      outcomes.push({ title, ...(await ask({ kind: 'write', statements, options: {} })) })
      const started = performance.now()
      await window.__hq.query('select count(*) from tasks').catch((error) => outcomes.push({ title: '', ok: false, error: error.code, ms: performance.now() - started }))
    }
    return outcomes
  })()
}`

interface Outcome {
  readonly title: string
  readonly ok: boolean
  readonly error?: string
  readonly ms: number
}

const start = (page: Page, name: string): Promise<unknown> => call(page, START, name)
const finish = async (page: Page): Promise<Outcome[]> =>
  (await within(
    20_000,
    'the calls end',
    call(page, '() => { window.__stop = true; return window.__done }'),
  )) as Outcome[]

describe.skipIf(!hasChromium)('three tabs', () => {
  let server: TestServer
  let device: Device

  beforeAll(async () => {
    server = await startTestServer()
    device = await openDevice(server)
    await setUpOwner(device.page, server)
  })
  afterAll(async () => {
    await device?.close()
    await server?.stop()
  })

  test('one leads; when its tab is closed, and the next one’s, no call is lost, stuck or carried out twice (T1)', async () => {
    const first = device.page
    const second = await device.newTab('/')
    const third = await device.newTab('/sync')
    await Promise.all([opened(second), opened(third)])
    expect((await statusOf(first))?.leading).toBe(true)
    expect((await statusOf(second))?.leading).toBe(false)

    await start(second, 'second')
    await start(third, 'third')
    await eventually('both have written', async () => (await count(third)) > 20)
    await first.close()
    const led = await eventually('another leads', async () => {
      const states = await Promise.all(
        [second, third].map(async (page) => ((await statusOf(page))?.leading ? page : undefined)),
      )
      return states.find((page) => page !== undefined)
    })
    const before = await count(third)
    await eventually('writing goes on', async () => (await count(third)) > before + 10)

    const survivor = led === second ? third : second
    const outcomes = await finish(led)
    await led.close()
    await eventually('the last one leads', async () => (await statusOf(survivor))?.leading)
    const again = await count(survivor)
    await eventually('writing goes on', async () => (await count(survivor)) > again + 10)
    outcomes.push(...(await finish(survivor)))

    expect(outcomes.filter((outcome) => !outcome.ok)).toEqual([])
    await drained(survivor, 60_000)
    const titles = outcomes
      .map((outcome) => outcome.title)
      .filter(Boolean)
      .sort()
    const there = await server.rows<{ title: string }>('select title from tasks')
    expect(there.map(({ title }) => title).sort()).toEqual(titles)
  })
})

const count = async (page: Page): Promise<number> =>
  Number((await query<{ n: number }>(page, 'select count(*) as n from tasks'))[0]?.n ?? 0)
