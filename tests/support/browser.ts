/**
 * Whole-system tests in a real browser: the built app, a real server in its own process on a real Postgres, and Chromium.
 *
 *     const server = await startTestServer()
 *     const device = await openDevice(server)           // a browser profile of its own
 *     try {
 *       await setUpOwner(device.page, server)
 *       await write(device.page, [{ sql: 'insert into tasks …', params: […] }])
 *       await server.kill()                              // SIGKILL
 *       await device.reopen()                            // a cold browser on the same profile
 *     } finally { await device.close(); await server.stop() }
 *
 * Everything here ends in bounded time (`within`): a page whose worker hangs must fail a test, not stop the run.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SqlValue, Statement, SyncStatus, WriteOptions, Written } from '@hq/shared/sync/contract.ts'
import { startTestPostgres, type TestPostgres } from '@hq/sync-server/shapes/testing/postgres.ts'
import pg from 'pg'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { ensureBuilt } from '../../scripts/build.ts'
import { ELECTRIC_SECRET, type ElectricService, startElectric } from './electric.ts'

const root = join(import.meta.dirname, '../..')

export const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
/** Browser tests skip themselves when this is false: `describe.skipIf(!hasChromium)`. */
export const hasChromium = existsSync(CHROMIUM) || Boolean(process.env['HQ_REQUIRE_BROWSER'])

export const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Rejects when `promise` takes longer than `ms`; the message says what was waited for. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Asks again until the answer is truthy, and returns it. */
export async function eventually<T>(what: string, ask: () => Promise<T>, ms = 20_000): Promise<NonNullable<T>> {
  const end = Date.now() + ms
  let last: unknown
  for (;;) {
    try {
      const answer = await within(Math.max(1_000, end - Date.now()), what, ask())
      if (answer) return answer
      last = answer
    } catch (error) {
      last = error
    }
    if (Date.now() > end)
      throw new Error(
        `${what}: not within ${ms} ms; last: ${last instanceof Error ? last.message : JSON.stringify(last)}`,
      )
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

export interface TestServer {
  readonly url: string
  readonly postgres: TestPostgres
  /** HQ_HOME of the server, without Postgres. */
  readonly home: string
  /** With HQ_TEST_SHAPES=electric: what the server reads shapes from. */
  readonly electric: ElectricService | undefined
  /** Rows straight from the authority. */
  rows<T = Record<string, unknown>>(sql: string, params?: unknown[]): Promise<T[]>
  /** SIGKILL. */
  kill(): Promise<void>
  /** Starts it again on the same data and port. `env`: for this process and later ones (server-process.ts). */
  start(env?: Readonly<Record<string, string>>): Promise<void>
  /** Ends everything. */
  stop(): Promise<void>
}

export interface TestServerOptions {
  readonly appFolder?: string
  readonly env?: Readonly<Record<string, string>>
}

/** A server with nobody in it yet, serving the app as built now. */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const home = await mkdtemp(join(tmpdir(), 'hq-test-home-'))
  const appFolder = options.appFolder ?? (await copyOfApp(home))
  const postgres = await startTestPostgres()
  const pool = new pg.Pool({ connectionString: postgres.url, max: 2 })
  // Stopping Postgres ends idle connections; that is no error here.
  pool.on('error', () => undefined)
  const electric = process.env['HQ_TEST_SHAPES'] === 'electric' ? await startElectric(postgres.url) : undefined
  let child: ChildProcess | undefined
  let own = options.env ?? {}
  let url = ''
  let port = 0
  const server: TestServer = {
    get url() {
      return url
    },
    postgres,
    home,
    electric,
    rows: async <T>(sql: string, params: unknown[] = []) => (await pool.query(sql, params)).rows as T[],
    async start(more = {}) {
      own = { ...own, ...more }
      const env = {
        ...process.env,
        ...own,
        TEST_DATABASE_URL: postgres.url,
        TEST_HOME: home,
        TEST_PORT: String(port),
        TEST_APP_FOLDER: appFolder,
        ...(electric && { TEST_ELECTRIC_URL: electric.url, TEST_ELECTRIC_SECRET: ELECTRIC_SECRET }),
      }
      const started = spawn(process.execPath, [join(import.meta.dirname, 'server-process.ts')], {
        cwd: root,
        env,
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      })
      child = started
      const exited = once(started, 'exit').then(() => Promise.reject(new Error('The server ended while starting.')))
      const [ready] = await within(60_000, 'the server starts', Promise.race([once(started, 'message'), exited]))
      exited.catch(() => undefined)
      ;({ url, port } = ready as { url: string; port: number })
    },
    async kill() {
      const dying = child
      child = undefined
      if (!dying || dying.exitCode !== null) return
      const gone = once(dying, 'exit')
      dying.kill('SIGKILL')
      await within(5_000, 'the killed server is gone', gone)
    },
    async stop() {
      await server.kill()
      await electric?.stop()
      await pool.end()
      await postgres.stop()
      await rm(home, { recursive: true, force: true, maxRetries: 3 })
    },
  }
  try {
    await server.start()
    return server
  } catch (error) {
    await server.stop()
    throw error
  }
}

/** The app, built if stale, copied so that another build does not pull it away from under a test. */
async function copyOfApp(home: string): Promise<string> {
  ensureBuilt()
  const folder = join(home, 'app')
  await cp(join(root, 'client/dist/client'), folder, { recursive: true })
  return folder
}

/** A browser with a profile of its own, as one person's computer has. */
export interface Device {
  readonly context: BrowserContext
  /** The first tab. */
  readonly page: Page
  /** Errors that pages logged or threw, for assertions and for reading when a test failed. */
  readonly problems: readonly string[]
  /** Another tab. */
  newTab(path?: string): Promise<Page>
  /** Ends the browser and starts it cold on the same profile, at `path`. */
  reopen(path?: string): Promise<void>
  /** Ends the browser only; `reopen` starts it again. */
  quit(): Promise<void>
  /** SIGKILL to the browser and all its processes; `reopen` starts it again. Linux only. */
  kill(): Promise<void>
  /** Where the browser keeps its profile. */
  readonly profile: string
  close(): Promise<void>
}

export interface DeviceOptions {
  readonly viewport?: { readonly width: number; readonly height: number }
  readonly colorScheme?: 'light' | 'dark'
}

export async function openDevice(server: TestServer, options: DeviceOptions = {}): Promise<Device> {
  const profile = await mkdtemp(join(tmpdir(), 'hq-test-profile-'))
  const problems: string[] = []
  let context: BrowserContext | undefined
  let page: Page | undefined
  const watch = (tab: Page): void => {
    tab.on('pageerror', (error) => problems.push(`thrown: ${error.message}`))
    tab.on('console', (message) => {
      if (message.type() === 'error') problems.push(`logged: ${message.text()}`)
      if (process.env['HQ_DEBUG']) console.log(`[page] ${message.type()}: ${message.text()}`)
    })
  }
  const launch = async (): Promise<void> => {
    context = await within(
      30_000,
      'Chromium starts',
      chromium.launchPersistentContext(profile, {
        executablePath: CHROMIUM,
        args: CHROMIUM_ARGS,
        viewport: options.viewport ?? { width: 1280, height: 800 },
        colorScheme: options.colorScheme ?? 'light',
        reducedMotion: 'reduce',
      }),
    )
    await context.addInitScript(CAPTURE_WORKERS)
    context.setDefaultTimeout(20_000)
    context.on('page', watch)
    page = context.pages()[0] ?? (await context.newPage())
    watch(page)
  }
  const need = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('This browser was closed.')
    return value
  }
  const device: Device = {
    get context() {
      return need(context)
    },
    get page() {
      return need(page)
    },
    problems,
    async newTab(path = '/') {
      const tab = await need(context).newPage()
      await tab.goto(server.url + path)
      return tab
    },
    async quit() {
      const closing = context
      context = undefined
      page = undefined
      // A page that spins never closes by itself; the browser goes with the profile then.
      await within(15_000, 'Chromium ends', closing?.close() ?? Promise.resolve())
    },
    profile,
    async kill() {
      const killed = context
      context = undefined
      page = undefined
      const gone = killed && new Promise((resolve) => killed.once('close', resolve))
      for (const pid of processesOf(profile)) {
        try {
          process.kill(pid, 'SIGKILL')
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
        }
      }
      await within(15_000, 'the killed browser is gone', gone ?? Promise.resolve())
    },
    async reopen(path = '/') {
      if (context) await device.quit()
      await launch()
      await need(page).goto(server.url + path)
    },
    async close() {
      await device.quit().catch((error: unknown) => console.warn('A test browser did not close.', error))
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
  await launch()
  return device
}

/** Processes of the browser with this profile; its children end with it. */
const processesOf = (profile: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`--user-data-dir=${profile}\0`)
          ? [Number(pid)]
          : []
      } catch {
        // It has ended since it was listed.
        return []
      }
    })

export const OWNER = {
  name: 'Olga Owner',
  email: 'owner@example.com',
  password: 'correct horse battery',
  workspace: 'Acme',
} as const

/** The first visit: fills in the setup screen and waits until the app is there and loaded. */
export async function setUpOwner(page: Page, server: TestServer): Promise<void> {
  await page.goto(`${server.url}/`)
  await page.getByLabel('Your name', { exact: true }).fill(OWNER.name)
  await page.getByLabel('Email', { exact: true }).fill(OWNER.email)
  await page.getByLabel('Password', { exact: true }).fill(OWNER.password)
  await page.getByLabel('Workspace', { exact: true }).fill(OWNER.workspace)
  await page.getByRole('button', { name: 'Create the workspace' }).click()
  await loaded(page)
}

/** Fills in the sign-in screen (which must be showing, or come) and waits until the app is loaded. */
export async function signIn(
  page: Page,
  server: TestServer,
  who: { email: string; password: string } = OWNER,
): Promise<void> {
  if (!page.url().startsWith(server.url)) await page.goto(`${server.url}/`)
  await page.getByLabel('Email', { exact: true }).fill(who.email)
  await page.getByLabel('Password', { exact: true }).fill(who.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await loaded(page)
}

/** Makes an invitation in the owner's page and returns the path of its link. */
export async function invite(page: Page, role: 'admin' | 'member' | 'viewer' = 'member'): Promise<string> {
  const made = await page.request.post(new URL('/v1/invitations', page.url()).href, {
    data: { role },
    headers: { origin: new URL(page.url()).origin },
  })
  if (!made.ok()) throw new Error(`no invitation: ${await made.text()}`)
  return new URL(((await made.json()) as { url: string }).url).pathname
}

/** Joins by a link in a fresh device. */
export async function joinByLink(
  page: Page,
  server: TestServer,
  path: string,
  who: { name: string; email: string; password: string },
): Promise<void> {
  await page.goto(server.url + path)
  await page.getByLabel('Your name', { exact: true }).fill(who.name)
  await page.getByLabel('Email', { exact: true }).fill(who.email)
  await page.getByLabel('Choose a password', { exact: true }).fill(who.password)
  await page.getByRole('button', { name: /^Join / }).click()
  await loaded(page)
}

/** Calls a function, given as source, in the page. (As source, because tests are checked without a browser's types.) */
export const call = (page: Page, source: string, argument: unknown = null): Promise<unknown> =>
  page.evaluate(`(${source})(${JSON.stringify(argument)})`)

export interface PageStatus {
  readonly phase: {
    readonly name: string
    readonly storage?: string
    readonly notice?: string | null
    readonly message?: string
  }
  readonly status: SyncStatus
  readonly leading: boolean
}

/** What the page knows of its replica (`window.__hq`); undefined before the app is there. */
export const statusOf = (page: Page): Promise<PageStatus | undefined> =>
  within(5_000, 'the page says how it is', call(page, '() => window.__hq?.status()')) as Promise<PageStatus | undefined>

/** Waits until the first load is done. */
export const loaded = (page: Page, ms = 60_000): Promise<unknown> =>
  eventually('the workspace is loaded', async () => (await statusOf(page))?.status.initial.done, ms)

/** Waits until the database is open. */
export const opened = (page: Page, ms = 30_000): Promise<unknown> =>
  eventually('the database is open', async () => (await statusOf(page))?.phase.name === 'open', ms)

/** Waits until nothing waits to be sent. */
export const drained = (page: Page, ms = 30_000): Promise<unknown> =>
  eventually(
    'everything is sent',
    async () => {
      const now = await statusOf(page)
      if (now?.status.connection === 'online' && now.status.pending === 0) return true
      throw new Error(JSON.stringify(now))
    },
    ms,
  )

/** Rows of a SELECT in the page's replica. */
export async function query<T = Record<string, unknown>>(
  page: Page,
  sql: string,
  params: readonly SqlValue[] = [],
): Promise<T[]> {
  const asked = call(page, '([sql, params]) => window.__hq.query(sql, params)', [sql, params])
  return (await within(15_000, sql, asked)) as T[]
}

/**
 * Writes through the page's own worker, as `useWrite` does: all statements in one transaction. With `id`, the same write may
 * be asked for twice. Rejects with the worker's message.
 */
export async function write(
  page: Page,
  statements: readonly Statement[],
  id: string = crypto.randomUUID(),
  options: WriteOptions = {},
) {
  const asked = call(page, CALL_WORKER, { id, request: { kind: 'write', statements, options } })
  return (await within(15_000, 'a write ends', asked)) as Written<Record<string, unknown>[][]>
}

/** Inserts a task and returns its id. */
export async function writeTask(page: Page, title: string, id: string = crypto.randomUUID()): Promise<string> {
  const [{ tenant_id } = { tenant_id: '' }] = await query<{ tenant_id: string }>(
    page,
    'select tenant_id from sync.replica',
  )
  await write(page, [
    { sql: 'insert into tasks (id, tenant_id, title) values ($1, $2, $3)', params: [id, tenant_id, title] },
  ])
  return id
}

/** The page's own database worker, so that a test can talk to it like the app does. */
const CAPTURE_WORKERS = `{
  const Native = window.Worker
  window.Worker = class extends Native {
    constructor(...args) {
      super(...args)
      if (String(args[0]).includes('/worker-')) window.__databaseWorker = this
    }
  }
}`

const CALL_WORKER = `({ id, request }) => new Promise((resolve, reject) => {
  const worker = window.__databaseWorker
  const listener = ({ data }) => {
    if (data.t !== 'answer' || data.answer.id !== id) return
    worker.removeEventListener('message', listener)
    if (data.answer.ok) resolve(data.answer.value)
    else reject(new Error(data.answer.error.code + ': ' + data.answer.error.message))
  }
  worker.addEventListener('message', listener)
  worker.postMessage({ t: 'call', call: { id, request, deadline: Number.MAX_SAFE_INTEGER } })
})`
