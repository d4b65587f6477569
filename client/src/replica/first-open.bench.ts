/**
 * `first_open`: a device's first visit, signed in, from the address to the rows of a list, workspace with 10,000 tasks: app and
 * database are fetched, the database is installed, the tasks are loaded.
 * `reopen`: the same device, a cold browser, from the address to the same rows (median of three).
 * `initial_sync_browser`: rows per second from the open database to the end of the first load, 100,000 tasks.
 * The browser's own start is not in any of them.
 */
import type { Page } from 'playwright-core'
import {
  call,
  type Device,
  eventually,
  loaded,
  OWNER,
  openDevice,
  startTestServer,
  statusOf,
  type TestServer,
} from '../../../tests/support/browser.ts'

type Measured = Record<string, { value: number; unit: string; target: number; better: 'lower' | 'higher' }>

export async function run(): Promise<Measured> {
  const server = await startTestServer()
  const devices: Device[] = []
  const device = async (): Promise<Device> => {
    const fresh = await openDevice(server)
    devices.push(fresh)
    await signInQuietly(fresh.page, server)
    return fresh
  }
  try {
    await setUp(server)
    await addTasks(server, 10_000)
    const first = await device()
    const firstOpen = await timeToList(first.page, server)
    await loaded(first.page)
    const reopens: number[] = []
    for (let n = 0; n < 3; n++) {
      await first.quit()
      await first.reopen('/v1/health')
      reopens.push(await timeToList(first.page, server))
    }
    await addTasks(server, 90_000)
    const rate = await syncRate((await device()).page, server)
    return {
      first_open: { value: Math.round(firstOpen), unit: 'ms, 10k tasks', target: 4_000, better: 'lower' },
      reopen: { value: Math.round(median(reopens)), unit: 'ms, 10k tasks', target: 1_500, better: 'lower' },
      initial_sync_browser: { value: Math.round(rate), unit: 'rows/s, 100k rows', target: 10_000, better: 'higher' },
    }
  } finally {
    for (const open of devices) await open.close()
    await server.stop()
  }
}

async function setUp(server: TestServer): Promise<void> {
  const body = { ...OWNER, workspace_name: OWNER.workspace, timezone: 'UTC' }
  const response = await fetch(`${server.url}/v1/setup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`no setup: ${await response.text()}`)
}

const addTasks = (server: TestServer, count: number): Promise<unknown> =>
  server.rows(
    `insert into tasks (id, tenant_id, title, description, sort_order)
     select uuidv7(), w.tenant_id, 'Bench task ' || n, repeat('What is to be done, in a sentence or two. ', 4), n
     from workspace w, generate_series(1, $1::int) n`,
    [count],
  )

/** Gets the session's cookie without opening the app. */
async function signInQuietly(page: Page, server: TestServer): Promise<void> {
  const response = await page.request.post(`${server.url}/api/auth/sign-in/email`, {
    data: { email: OWNER.email, password: OWNER.password },
    headers: { origin: server.url },
  })
  if (!response.ok()) throw new Error(`no sign-in: ${await response.text()}`)
}

async function timeToList(page: Page, server: TestServer): Promise<number> {
  const started = performance.now()
  await page.goto(`${server.url}/tasks`, { waitUntil: 'commit' })
  await page.getByText('Bench task').first().waitFor({ timeout: 60_000 })
  return performance.now() - started
}

/** Watches the status inside the page, so that the watching itself costs nothing measurable. */
const WATCH = `() => new Promise((resolve) => {
  let opened
  const look = () => {
    const state = window.__hq?.status()
    if (state?.phase.name === 'open' && opened === undefined) opened = performance.now()
    if (state?.status.initial.done) resolve({ ms: performance.now() - opened, rows: state.status.initial.rows })
    else setTimeout(look, 5)
  }
  look()
})`

async function syncRate(page: Page, server: TestServer): Promise<number> {
  await page.goto(`${server.url}/sync`, { waitUntil: 'commit' })
  await eventually('the app is there', async () => (await statusOf(page)) !== undefined)
  const { ms, rows } = (await call(page, WATCH)) as { ms: number; rows: number }
  return (rows / ms) * 1_000
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
