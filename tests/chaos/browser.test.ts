/**
 * A browser that is killed, whose leading tab crashes, or whose profile is copied, at random moments (HQ_CHAOS_SEED, HQ_CHAOS_ROUNDS). What was
 * acknowledged is there once; every call ends within five seconds.
 */
import { randomUUID } from 'node:crypto'
import { cp } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  call,
  type Device,
  drained,
  eventually,
  hasChromium,
  loaded,
  OWNER,
  openDevice,
  query,
  setUpOwner,
  statusOf,
  within,
  writeTask,
} from '../support/browser.ts'
import { createChance, limit, pause, rounds } from '../support/chance.ts'
import { BUSY_LOG, streamOfTasks } from '../support/chaos.ts'
import { browserConverged } from '../support/converged.ts'
import { type System, startSystem } from '../support/system.ts'

const chance = createChance('browser chaos')

/** No call may take longer. */
const LIMIT_MS = 5_000

/**
 * Writes and reads without end. As the page does (connection.ts, C1), a write is given up after five seconds; then nobody knows whether it was done.
 * Each outcome is told at once to the test, which lives on when the page does not.
 */
const WRITE_ON = `(word) => {
  const ask = (request) => new Promise((resolve) => {
    const id = crypto.randomUUID()
    const started = performance.now()
    const end = (ok, error) => {
      window.__databaseWorker.removeEventListener('message', listener)
      clearTimeout(timer)
      resolve({ ok, error, ms: performance.now() - started })
    }
    const listener = ({ data }) => {
      if (data.t === 'answer' && data.answer.id === id) end(data.answer.ok, data.answer.error?.code)
    }
    const timer = setTimeout(() => end(false, 'timeout'), ${LIMIT_MS})
    window.__databaseWorker.addEventListener('message', listener)
    window.__databaseWorker.postMessage({ t: 'call', call: { id, request, deadline: Date.now() + ${LIMIT_MS} } })
  })
  window.__stop = false
  window.__done = (async () => {
    for (let n = 0; !window.__stop; n++) {
      const title = word + ' ' + n
      const sql = 'insert into tasks (id, tenant_id, title) select uuidv7(), tenant_id, $1 from sync.replica'
      const written = await ask({ kind: 'write', statements: [{ sql, params: [title] }], options: {} })
      await window.__outcome({ ...written, title })
      const started = performance.now()
      const read = await window.__hq.query('select count(*) from tasks').then(() => ({ ok: true }), (error) => ({ ok: false, error: error.code }))
      await window.__outcome({ ...read, ms: performance.now() - started })
    }
  })()
}`

interface Outcome {
  /** Of a write. */
  readonly title?: string
  readonly ok: boolean
  readonly error?: string
  readonly ms: number
}

describe.skipIf(!hasChromium)('a browser', () => {
  let system: System
  let device: Device
  const outcomes: Outcome[] = []
  let words = 0

  beforeAll(async () => {
    system = await startSystem({ browser: true, setUp: false, env: BUSY_LOG })
    const first = await openDevice(system.server)
    await setUpOwner(first.page, system.server)
    await first.close()
    await system.signIn()
    device = await openDevice(system.server)
  })
  afterAll(async () => {
    await device?.close()
    await system?.stop()
  })

  const listen = async (of: Device): Promise<void> => {
    await of.context.exposeFunction('__outcome', (outcome: Outcome) => void outcomes.push(outcome))
  }
  const writeOn = (page: Page): Promise<unknown> => call(page, WRITE_ON, `chaos ${words++}`)
  const stop = (page: Page): Promise<unknown> =>
    within(20_000, 'the calls end', call(page, '() => { window.__stop = true; return window.__done }'))
  const acknowledged = (): string[] => outcomes.flatMap(({ title, ok }) => (title && ok ? [title] : []))

  const signInIfAsked = async (page: Page): Promise<void> => {
    const email = page.getByLabel('Email', { exact: true })
    if (!(await email.isVisible())) return
    await email.fill(OWNER.email)
    await page.getByLabel('Password', { exact: true }).fill(OWNER.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await email.waitFor({ state: 'hidden' })
  }

  /** Waits until the app is there, its database perhaps not yet. */
  const begun = (page: Page): Promise<unknown> =>
    eventually(
      'the app',
      async () => {
        await signInIfAsked(page)
        return statusOf(page)
      },
      60_000,
    )

  /**
   * Waits until the database is open and the server knows this person. A killed browser may have lost its cookie (Chromium saves it within half a
   * minute): the app opens from its replica then, and gives way to the sign-in once the server has been asked.
   */
  const enter = (page: Page): Promise<unknown> =>
    eventually(
      'the database is open and connected',
      async () => {
        await signInIfAsked(page)
        const state = await statusOf(page)
        if (state?.phase.name !== 'open' || state.status.connection !== 'online')
          throw new Error(`${JSON.stringify(state)} at ${page.url()} ${device.problems.slice(-5)}`)
        return true
      },
      90_000,
    )

  const everythingOnce = async (): Promise<void> => {
    const titles = acknowledged()
    expect(titles.length).toBeGreaterThan(0)
    const there = await system.rows<{ title: string; n: number }>(
      `select title, count(*)::int as n from tasks where title like 'chaos %' group by 1`,
    )
    const counts = new Map(there.map(({ title, n }) => [title, n]))
    expect(titles.filter((title) => counts.get(title) !== 1)).toEqual([])
    expect(there.filter(({ n }) => n > 1)).toEqual([])
  }

  test(
    'killed while its database is being made, again and again: in the end it opens and loads',
    limit(2),
    async () => {
      await device.page.goto(system.server.url)
      for (let round = 0; round < rounds(2); round++) {
        await begun(device.page)
        await pause(chance.between(0, 2_000))
        await device.kill()
        await device.reopen()
      }
      await enter(device.page)
      await loaded(device.page)
      await browserConverged(system, device.page)
    },
  )

  test(
    'killed while it writes, pushes and applies what comes: nothing acknowledged is lost, nothing is there twice',
    limit(3),
    async () => {
      await device.reopen()
      await enter(device.page)
      const end = streamOfTasks(system, 'elsewhere', 40)
      onTestFinished(async () => void (await end()))
      for (let round = 0; round < rounds(3); round++) {
        await listen(device)
        await writeOn(device.page)
        const before = acknowledged().length
        await eventually('it writes', async () => acknowledged().length > before + 3)
        await pause(chance.between(0, 700))
        await device.kill()
        await device.reopen()
        await enter(device.page)
      }
      await end()
      await drained(device.page, 60_000)
      await browserConverged(system, device.page, { ms: 90_000 })
      await everythingOnce()
    },
  )

  test(
    'three tabs, the leading one crashes at random moments: every call ends within five seconds, nothing is done twice',
    limit(3),
    async () => {
      await device.reopen()
      await enter(device.page)
      await listen(device)
      const tabs = [device.page, await device.newTab(), await device.newTab('/sync')]
      await Promise.all(tabs.map(enter))
      const from = outcomes.length
      for (const tab of tabs) await writeOn(tab)
      for (let round = 0; round < rounds(3); round++) {
        const leader = await eventually(
          'one leads',
          async () => {
            for (const tab of tabs) if ((await statusOf(tab))?.leading) return tab
            return undefined
          },
          30_000,
        )
        const before = acknowledged().length
        await eventually('writing goes on', async () => acknowledged().length > before + 10, 30_000)
        await pause(chance.between(0, 300))
        await crash(leader)
        tabs.splice(tabs.indexOf(leader), 1)
        await leader.close()
        const fresh = await device.newTab()
        await enter(fresh)
        await writeOn(fresh)
        tabs.push(fresh)
      }
      await Promise.all(tabs.map(stop))
      const slow = outcomes.slice(from).filter(({ ms }) => ms > LIMIT_MS + 500)
      expect(slow).toEqual([])
      const failed = outcomes.slice(from).filter(({ ok }) => !ok)
      expect(failed.filter(({ error }) => error !== 'timeout' && error !== 'unsure')).toEqual([])
      const [tab] = tabs
      if (!tab) throw new Error('no tab is left')
      await drained(tab, 60_000)
      await browserConverged(system, tab, { ms: 90_000 })
      await everythingOnce()
      for (const each of tabs.slice(1)) await each.close()
    },
  )

  test(
    'a copied profile: both go on, each as somebody, nothing is lost and nothing is there twice',
    limit(2),
    async () => {
      await device.reopen()
      await enter(device.page)
      await system.server.kill()
      const shared = await writeTask(device.page, 'waited when it was copied')
      await device.quit()
      const copy = await openDevice(system.server)
      onTestFinished(() => copy.close())
      await copy.quit()
      await cp(device.profile, copy.profile, { recursive: true, force: true })
      await system.server.start()
      const made: string[] = [shared]
      for (const each of [device, copy]) {
        await each.reopen()
        await enter(each.page)
        for (let n = 0; n < 5; n++) made.push(await writeTask(each.page, 'after the copy', randomUUID()))
      }
      for (const each of [device, copy]) {
        await drained(each.page, 60_000)
        await browserConverged(system, each.page, { ms: 90_000 })
      }
      const there = await system.rows<{ id: string }>('select id from tasks where id = any($1)', [made])
      expect(there).toHaveLength(made.length)
      const ids = await Promise.all(
        [device, copy].map(
          async ({ page }) =>
            (await query<{ replica_id: string }>(page, 'select replica_id from sync.replica'))[0]?.replica_id,
        ),
      )
      expect(new Set(ids).size).toBe(2)
    },
  )

  test('E4: database files that came without this device’s memory of them take a new identity, and what waited is sent once', async () => {
    await system.server.kill()
    const id = await writeTask(device.page, 'waited in the files')
    const before = await query<{ replica_id: string }>(device.page, 'select replica_id from sync.replica')
    await device.quit()
    await system.server.start()
    await device.reopen('/v1/health')
    // As if the files were those of another device.
    await device.page.evaluate(FORGET_GUARD)
    await device.reopen()
    await enter(device.page)
    await drained(device.page, 60_000)
    const after = await query<{ replica_id: string }>(device.page, 'select replica_id from sync.replica')
    expect(after).not.toEqual(before)
    expect(await system.rows('select title from tasks where id = $1', [id])).toHaveLength(1)
    await browserConverged(system, device.page, { ms: 90_000 })
  })
})

const FORGET_GUARD = `new Promise((resolve, reject) => {
  const request = indexedDB.open('hq-device')
  request.onerror = () => reject(request.error)
  request.onsuccess = () => {
    const transaction = request.result.transaction('databases', 'readwrite')
    const store = transaction.objectStore('databases')
    store.getAll().onsuccess = ({ target }) => {
      for (const record of target.result) store.put({ ...record, guard: crypto.randomUUID() })
    }
    transaction.oncomplete = () => { request.result.close(); resolve() }
  }
})`

/** Ends the process of the page's renderer. */
async function crash(page: Page): Promise<void> {
  const crashed = new Promise((resolve) => page.once('crash', resolve))
  const session = await page.context().newCDPSession(page)
  // Never answered: nobody is left who could.
  session.send('Page.crash').catch(() => undefined)
  await within(10_000, 'the tab crashes', crashed)
}
