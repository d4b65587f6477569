/** Setup, sign-in, invitations and sign-out, in a real browser against a real server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Device,
  drained,
  eventually,
  hasChromium,
  invite,
  joinByLink,
  loaded,
  OWNER,
  openDevice,
  query,
  setUpOwner,
  signIn,
  startTestServer,
  statusOf,
  type TestServer,
  within,
  writeTask,
} from '../../../tests/support/browser.ts'

describe.skipIf(!hasChromium)('people', () => {
  let server: TestServer
  let device: Device

  beforeAll(async () => {
    server = await startTestServer()
    device = await openDevice(server)
  })
  afterAll(async () => {
    await device?.close()
    await server?.stop()
  })

  test('the first visit sets the workspace up, and the app opens from the replica', async () => {
    await setUpOwner(device.page, server)
    await device.page.getByRole('button', { name: OWNER.workspace }).waitFor()
    expect(await query(device.page, 'select name, role from people')).toEqual([{ name: OWNER.name, role: 'owner' }])
    expect(await server.rows('select name from workspace')).toEqual([{ name: OWNER.workspace }])
    expect((await statusOf(device.page))?.phase).toMatchObject({ name: 'open', storage: 'opfs', notice: null })
  })

  test('signing out asks, closes the session, keeps the database; a wrong password is said; the right one lets in', async () => {
    const { page } = device
    await writeTask(page, 'Before signing out')
    await drained(page)
    await signOut(device)
    await page.getByLabel('Email', { exact: true }).fill(OWNER.email)
    await page.getByLabel('Password', { exact: true }).fill('not the password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('do not belong together').waitFor()
    await signIn(page, server)
    expect(await query(page, 'select title from tasks')).toEqual([{ title: 'Before signing out' }])
    expect(await databases(device)).toHaveLength(1)
  })

  test('a link lets a second person in, once; two people on one browser share no database', async () => {
    const link = await invite(device.page)
    const other = await openDevice(server)
    try {
      await joinByLink(other.page, server, link, {
        name: 'Mia Member',
        email: 'mia@example.com',
        password: 'another good one',
      })
      expect(await query(other.page, 'select title from tasks')).toEqual([{ title: 'Before signing out' }])
      await other.page.context().clearCookies()
      const used = await other.newTab('/sign-in')
      await used.evaluate('localStorage.clear()')
      await used.goto(server.url + link)
      await used.getByText('already been used').waitFor()
      await used.goto(`${server.url}/join/nonsense`)
      await used.getByText('not valid').waitFor()
    } finally {
      await other.close()
    }
    await signOut(device)
    await signIn(device.page, server, { email: 'mia@example.com', password: 'another good one' })
    expect(await query(device.page, 'select name from people order by name')).toHaveLength(2)
    expect(new Set(await databases(device)).size).toBe(2)
    await signOut(device)
    await signIn(device.page, server)
  })

  test('a session that the server ended: the sign-in says what waits, and afterwards it is sent', async () => {
    const { page } = device
    await server.kill()
    await eventually('offline', async () => (await statusOf(page))?.status.connection === 'offline')
    await writeTask(page, 'Written before the session ended')
    await server.rows('delete from auth_session')
    await server.start()
    await page.getByText('1 change waits on this device').waitFor({ timeout: 40_000 })
    expect(await page.getByLabel('Email', { exact: true }).inputValue()).toBe(OWNER.email)
    await page.getByLabel('Password', { exact: true }).fill(OWNER.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await loaded(page)
    await drained(page)
    expect(await server.rows(`select title from tasks where title like 'Written before%'`)).toHaveLength(1)
  })

  test('signing out with the data deleted leaves nothing of this person; others stay', async () => {
    const before = await databases(device)
    await signOut(device, true)
    await eventually('one database fewer', async () => (await databases(device)).length === before.length - 1)
  })

  test('nobody known and no server: it says that the first sign-in needs the server, and goes on by itself', async () => {
    const { page } = device
    await within(90_000, 'the service worker is ready', page.evaluate('navigator.serviceWorker.ready.then(() => 1)'))
    await server.kill()
    await page.goto(`${server.url}/`).catch(() => undefined)
    await page.getByText('Waiting for the server').waitFor()
    await server.start()
    await page.getByRole('button', { name: 'Sign in' }).waitFor({ timeout: 30_000 })
  })
})

async function signOut({ page }: Device, remove = false): Promise<void> {
  await page.getByRole('button', { name: /^You: / }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  const dialog = page.getByRole('dialog', { name: 'Sign out?' })
  if (remove) await dialog.getByRole('checkbox').click()
  await dialog.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
}

/** Names of the databases in this browser's private file system. */
const databases = ({ page }: Device): Promise<string[]> =>
  page.evaluate(`(async () => {
    const names = []
    for await (const name of (await navigator.storage.getDirectory()).keys()) if (name.startsWith('hq-1-')) names.push(name)
    return names
  })()`)
