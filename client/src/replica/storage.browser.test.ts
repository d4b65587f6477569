/** Where a browser keeps the database, what a person is told about it. */

import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureBuilt } from '../../../scripts/build.ts'
import { picture } from '../../../tests/support/axe.ts'
import {
  CHROMIUM,
  CHROMIUM_ARGS,
  call,
  type Device,
  drained,
  hasChromium,
  openDevice,
  opened,
  query,
  setUpOwner,
  signIn,
  startTestServer,
  statusOf,
  type TestServer,
  writeTask,
} from '../../../tests/support/browser.ts'

/** The app whose database worker runs a line before its own code, as in a browser that lacks something. */
async function appWith(line: string): Promise<string> {
  ensureBuilt()
  const folder = await mkdtemp(join(tmpdir(), 'hq-test-app-'))
  await cp(join(import.meta.dirname, '../../dist/client'), folder, { recursive: true })
  for (const name of await readdir(join(folder, 'assets'))) {
    const path = join(folder, 'assets', name)
    if (/^worker-.*\.js$/.test(name)) await writeFile(path, `${line}\n${await readFile(path, 'utf8')}`)
    // Packed, they are what they were.
    else if (/^worker-.*\.js\.\w+$/.test(name)) await rm(path)
  }
  return folder
}

/** A server of its own with such an app, and a device that has signed in there. */
async function lacking(line: string, work: (device: Device, server: TestServer) => Promise<void>): Promise<void> {
  const appFolder = await appWith(line)
  const server = await startTestServer({ appFolder })
  const device = await openDevice(server)
  try {
    await setUpOwner(device.page, server)
    await work(device, server)
  } finally {
    await device.close()
    await server.stop()
    await rm(appFolder, { recursive: true, force: true })
  }
}
const NO_OPFS = 'navigator.storage.getDirectory = () => Promise.reject(new DOMException("not here", "SecurityError"));'
const NO_IDB = 'Object.defineProperty(self, "indexedDB", { value: undefined, configurable: true });'

describe.skipIf(!hasChromium)('where the database is kept', () => {
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

  test('without the private file system: IndexedDB, which keeps what was written when the browser ends', () =>
    lacking(NO_OPFS, async (device, server) => {
      expect((await statusOf(device.page))?.phase).toMatchObject({ name: 'open', storage: 'idb' })
      await server.kill()
      const id = await writeTask(device.page, 'kept in IndexedDB')
      await device.quit()
      await server.start()
      await device.reopen('/sync')
      await opened(device.page, 90_000)
      expect((await statusOf(device.page))?.phase).toMatchObject({ name: 'open', storage: 'idb', notice: null })
      expect(await query(device.page, 'select title from tasks where id = $1', [id])).toEqual([
        { title: 'kept in IndexedDB' },
      ])
      await device.page.getByText('This browser’s IndexedDB').waitFor()
      await drained(device.page, 60_000)
      expect(await server.rows('select 1 from tasks where id = $1', [id])).toHaveLength(1)
    }))

  test('without either: it works, and says that nothing is kept and what to do', () =>
    lacking(NO_OPFS + NO_IDB, async ({ page }, server) => {
      expect((await statusOf(page))?.phase).toMatchObject({ name: 'open', storage: 'memory' })
      const notice = page.getByRole('region', { name: 'Nothing is kept on this device' })
      await notice.getByText(/what waits is lost when this tab closes/).waitFor()
      await picture(page, 'storage-not-kept')
      await notice.getByRole('link', { name: 'What waits' }).click()
      await page.getByText('Memory only').waitFor()
      const id = await writeTask(page, 'made in memory')
      await drained(page, 60_000)
      expect(await server.rows('select 1 from tasks where id = $1', [id])).toHaveLength(1)
    }))

  test('a private window: the notice is what the browser’s own facts say, neither more nor less', async () => {
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_ARGS })
    try {
      const page = await (await browser.newContext()).newPage()
      await page.goto(server.url)
      await signIn(page, server)
      const facts = (await call(
        page,
        '() => Promise.all([navigator.storage.persisted(), navigator.storage.estimate()]).then(([persisted, { quota }]) => ({ persisted, quota }))',
      )) as { persisted: boolean; quota: number }
      const little = !facts.persisted && facts.quota < 1e9
      await page.goto(`${server.url}/sync`)
      await page.getByText(facts.persisted ? 'Yes, also when space gets scarce' : /may delete it when space/).waitFor()
      expect(await page.getByRole('region', { name: 'This browser may not keep HQ’s data' }).count()).toBe(
        little ? 1 : 0,
      )
    } finally {
      await browser.close()
    }
  })
})
