/** What a person sees of sync, in a real browser against a real server: marks, what waits, refusals, conflicts, a file, devices. */
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { picture, seriousFindings } from '../../../../tests/support/axe.ts'
import {
  type Device,
  drained,
  eventually,
  hasChromium,
  openDevice,
  query,
  setUpOwner,
  signIn,
  startTestServer,
  statusOf,
  type TestServer,
  write,
  writeTask,
} from '../../../../tests/support/browser.ts'

const offline = (device: Device) =>
  eventually('offline', async () => (await statusOf(device.page))?.status.connection === 'offline')
const region = (page: Page, name: string) => page.getByRole('region', { name, exact: true })
/** By the app's own links, so that the page is not loaded anew. */
const goTo = (page: Page, name: RegExp | string) => page.getByRole('link', { name }).first().click()

const SETTLED = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => requestAnimationFrame(done)))))`

/** In both schemes and on a phone: nothing serious for axe, nothing wider than the screen, and a picture. */
async function inspect(page: Page, name: string): Promise<void> {
  const size = page.viewportSize()
  await page.setViewportSize({ width: 1280, height: 1500 })
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    // Colours change by a transition, which ends with the next frames.
    await page.evaluate(SETTLED)
    expect(await seriousFindings(page)).toEqual([])
    await picture(page, `${name}-1280-${colorScheme}`)
  }
  await page.setViewportSize({ width: 390, height: 1500 })
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await picture(page, `${name}-390-dark`)
  await page.emulateMedia({ colorScheme: 'light' })
  await picture(page, `${name}-390-light`)
  if (size) await page.setViewportSize(size)
}

describe.skipIf(!hasChromium)('what a person sees of sync', () => {
  let server: TestServer
  let ann: Device
  let ben: Device
  let task: string

  beforeAll(async () => {
    server = await startTestServer()
    ann = await openDevice(server)
    await setUpOwner(ann.page, server)
    ben = await openDevice(server)
    await ben.page.goto(server.url)
    await signIn(ben.page, server)
    task = await writeTask(ann.page, 'Call the supplier')
    await drained(ann.page)
    await eventually('ben has it', async () => (await query(ben.page, 'select 1 from tasks')).length === 1)
  })
  afterAll(async () => {
    await ann?.close()
    await ben?.close()
    await server?.stop()
  })

  test('online nothing flickers, and nothing waits', async () => {
    const { page } = ann
    await goTo(page, /^Tasks/)
    await page.evaluate(`{
      window.__dots = 0
      new MutationObserver(() => { window.__dots += document.querySelectorAll('[aria-label^="Waiting to sync"]').length })
        .observe(document.body, { childList: true, subtree: true })
    }`)
    for (let round = 0; round < 10; round++) {
      await write(page, [{ sql: 'update tasks set description = $2 where id = $1', params: [task, `round ${round}`] }])
      await drained(page)
    }
    expect(await page.evaluate('window.__dots')).toBe(0)
    await goTo(page, /^Sync/)
    await page.getByRole('heading', { name: 'Nothing waits' }).waitFor()
  })

  test('offline: a mark beside the row leads to its entry; what waits is said in words, grouped and counted', async () => {
    const { page } = ann
    await server.kill()
    await offline(ann)
    await write(page, [
      { sql: `update tasks set priority = 'urgent', description = 'By Friday' where id = $1`, params: [task] },
    ])
    for (let index = 0; index < 120; index++) await writeTask(page, `Follow-up ${index}`)
    await write(page, [
      {
        sql: `insert into comments (id, tenant_id, entity_type, entity_id, body, actor_type, actor_person_id)
          select uuidv7(), tenant_id, 'task', $1::uuid, 'Said while the train was in the tunnel', 'human', (select id from people limit 1) from sync.replica`,
        params: [task],
      },
    ])
    const tasks = region(page, 'Tasks')
    await tasks.getByText('121 changes').waitFor()
    await tasks.getByText('Task “Call the supplier”: priority, description').waitFor()
    await tasks.getByText('New task “Follow-up 0”').waitFor()
    await region(page, 'Comments').getByText('1 change').waitFor()
    await tasks.getByRole('button', { name: /^Show 100 more of 113/ }).click()
    await eventually('a hundred more', async () => (await tasks.getByRole('listitem').count()) === 108)
    await inspect(page, 'sync-waiting')

    await goTo(page, /^Tasks/)
    const row = page.getByRole('row', { name: /Follow-up/ }).first()
    const title = /Follow-up \d+/.exec((await row.textContent()) ?? '')?.[0]
    await row.getByRole('button', { name: 'Waiting to sync' }).click()
    const entry = page.getByRole('listitem').filter({ hasText: `“${title}”` })
    await entry.waitFor()
    await eventually('the entry has the focus', async () =>
      String(await page.evaluate('document.activeElement?.textContent')).includes(`“${title}”`),
    )
  })

  let exported = ''
  test('offline: everything that waits is exported as a file that says what it is', async () => {
    const { page } = ann
    await goTo(page, /^Sync/)
    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export 122 changes' }).click()
    const download = await downloading
    expect(download.suggestedFilename()).toMatch(/^hq-acme-waiting-\d{4}-\d\d-\d\d\.jsonl$/)
    exported = await readFile(await download.path(), 'utf8')
    const lines = exported.trimEnd().split('\n')
    expect(lines).toHaveLength(123)
    expect(lines[0]).toContain('122 changes of Olga Owner in the workspace Acme that had not reached the server')
    // What is in the file waits here already: nothing is made twice.
    await page.getByLabel('A file of exported changes').setInputFiles({
      name: 'same.jsonl',
      mimeType: 'text/plain',
      buffer: Buffer.from(exported),
    })
    await page.getByText('122 changes wait here already').waitFor()
    expect((await statusOf(page))?.status.pending).toBe(122)
  })

  test('two people change the same thing: both values, by whom; the other is taken, everywhere', async () => {
    await offline(ben)
    await write(ben.page, [{ sql: `update tasks set title = 'Call Ben first' where id = $1`, params: [task] }])
    await write(ann.page, [{ sql: `update tasks set title = 'Call Ann first' where id = $1`, params: [task] }])
    await server.start()
    await drained(ann.page)
    await drained(ben.page)
    const { page } = ann
    await goTo(page, /^Sync/)
    const card = page.getByRole('article', { name: /^Changed in two places: task/ })
    await card.waitFor()
    const before = await query<{ title: string }>(page, 'select title from tasks where id = $1', [task])
    const other = before[0]?.title === 'Call Ben first' ? 'Call Ann first' : 'Call Ben first'
    await card.getByText(other).waitFor()
    await card.getByText(/^Was set aside, by Olga Owner/).waitFor()
    await page.getByRole('link', { name: /1 needs you/ }).waitFor()
    await inspect(page, 'sync-conflict')
    await card.getByRole('button', { name: 'Take the other' }).click()
    await eventually('ben sees it', async () => {
      const now = await query<{ title: string }>(ben.page, 'select title from tasks where id = $1', [task])
      return now[0]?.title === other
    })
    await card.waitFor({ state: 'detached' })
    expect(await server.rows('select 1 from conflicts where resolved_at is null')).toEqual([])
  })

  test('a refusal says why and what the server has, and is corrected, sent again or discarded', async () => {
    const { page } = ann
    await goTo(page, /^Sync/)
    const stream = (name: string) => ({
      sql: 'insert into streams (id, tenant_id, name) select uuidv7(), tenant_id, $1 from sync.replica',
      params: [name],
    })
    await write(page, [stream('Sales')])
    await drained(page)
    await write(page, [stream('Support')])
    await drained(page)
    await write(page, [{ sql: `update streams set name = 'Sales' where name = 'Support'` }])
    const card = page.getByRole('article', { name: /^Refused: Stream/ })
    await card.waitFor()
    await card.getByText(/name is taken/).waitFor()
    await card.getByRole('button', { name: 'Edit and compare' }).press('Enter')
    await card.getByText('Support', { exact: true }).waitFor()
    await inspect(page, 'sync-rejected')
    await card.getByLabel('Your name').fill('Care')
    await card.getByRole('button', { name: 'Send corrected' }).click()
    await eventually('the server took it', async () => {
      const rows = await server.rows(`select name from streams order by name`)
      return JSON.stringify(rows) === JSON.stringify([{ name: 'Care' }, { name: 'Sales' }])
    })
    await card.waitFor({ state: 'detached' })

    await write(page, [{ sql: `update streams set name = 'Sales' where name = 'Care'` }])
    await card.waitFor()
    await card.getByRole('button', { name: 'Discard…' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Discard' }).click()
    await card.waitFor({ state: 'detached' })
    expect(await query(page, `select name from streams order by name`)).toEqual([{ name: 'Care' }, { name: 'Sales' }])
  })

  test('a device is removed: it says so, keeps and exports what waits, which is imported elsewhere; it can be let in again', async () => {
    const { page } = ann
    await goTo(page, /^Sync/)
    const devices = region(page, 'Devices')
    await eventually('two devices are listed', async () => (await devices.getByRole('listitem').count()) === 2)
    expect(await devices.getByText('Chrome on Linux').count()).toBe(2)
    expect(await devices.getByText('This device').count()).toBe(1)
    await inspect(page, 'sync-devices')
    await devices.getByRole('button', { name: 'Remove… Chrome on Linux', exact: true }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).click()
    await devices.getByText('Removed just now').waitFor()

    await ben.page.getByText('This device has been removed from the workspace').first().waitFor()
    const lost = await writeTask(ben.page, 'Written on the removed device')
    await goTo(ben.page, /^Sync/)
    await eventually('it is parked', async () => (await statusOf(ben.page))?.status.parked === 'revoked')
    await inspect(ben.page, 'sync-revoked')
    const downloading = ben.page.waitForEvent('download')
    await ben.page.getByRole('button', { name: 'Export what waits' }).click()
    const file = await readFile(await (await downloading).path(), 'utf8')
    expect(await server.rows('select 1 from tasks where id = $1', [lost])).toEqual([])

    await page.getByLabel('A file of exported changes').setInputFiles({
      name: 'waiting.jsonl',
      mimeType: 'text/plain',
      buffer: Buffer.from(file),
    })
    await page.getByText('1 change imported').waitFor()
    await eventually(
      'the server has it',
      async () => (await server.rows('select 1 from tasks where id = $1', [lost])).length === 1,
    )
    await page.getByLabel('A file of exported changes').setInputFiles({
      name: 'holiday.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('not ours'),
    })
    await page.getByText('This is not a file of changes that HQ has exported.').waitFor()

    await devices.getByRole('button', { name: 'Let in again: Chrome on Linux' }).click()
    await ben.page
      .getByRole('button', { name: 'Connect now' })
      .or(ben.page.getByText('Synced').first())
      .first()
      .waitFor()
    await drained(ben.page, 60_000)
    expect(await server.rows('select 1 from tasks where id = $1', [lost])).toHaveLength(1)
    await ben.page.getByText('This device has been removed').first().waitFor({ state: 'detached' })
  })
})
