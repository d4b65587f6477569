/** Adding a gateway as a person does it: a real browser, a real server, and the very command that the screen shows, run in a shell. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { picture, seriousFindings } from '../../../../tests/support/axe.ts'
import {
  type Device,
  eventually,
  hasChromium,
  invite,
  joinByLink,
  openDevice,
  setUpOwner,
  startTestServer,
  statusOf,
  type TestServer,
} from '../../../../tests/support/browser.ts'

const root = join(import.meta.dirname, '../../../..')
/** A gateway starts on a machine that may be busy. */
const LONG = { timeout: 120_000 }

const SETTLED = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => requestAnimationFrame(done)))))`

/** In both schemes, wide and on a phone: nothing serious for axe, nothing wider than the screen, and a picture. */
async function inspect(page: Page, name: string): Promise<void> {
  const size = page.viewportSize()
  for (const [width, height] of [
    [1280, 800],
    [390, 844],
  ] as const) {
    await page.setViewportSize({ width, height })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.evaluate(SETTLED)
      expect(await seriousFindings(page)).toEqual([])
      await picture(page, `${name}-${width}-${colorScheme}`)
    }
    const wider = `[document.documentElement, ...document.querySelectorAll('main, [role=dialog]')]
      .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.tagName + ' ' + each.scrollWidth)`
    expect(await page.evaluate(wider)).toEqual([])
  }
  await page.emulateMedia({ colorScheme: 'light' })
  if (size) await page.setViewportSize(size)
}

/** What the person types into a shell of the gateway's machine, with a home of its own. */
async function machine(): Promise<{
  readonly home: string
  run(command: string): { text(): string; ended: Promise<number | null>; end(): Promise<void> }
}> {
  const home = await mkdtemp(join(tmpdir(), 'hq-added-gateway-'))
  const ends: (() => Promise<void>)[] = []
  onTestFinished(async () => {
    for (const end of ends) await end()
    await rm(home, { recursive: true, force: true, maxRetries: 5 })
  })
  return {
    home,
    run(command) {
      const child = spawn('sh', ['-c', command], {
        cwd: root,
        env: { PATH: process.env['PATH'], HOME: home, HQ_GATEWAY_HOME: join(home, 'gateway') },
        // A group of its own: npm, node and the gateway end together.
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let text = ''
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
      let isEnded = false
      const ended = once(child, 'close').then(([code]) => {
        isEnded = true
        return code as number | null
      })
      const end = async () => {
        if (!isEnded && child.pid) process.kill(-child.pid, 'SIGKILL')
        await ended
      }
      ends.push(end)
      return { text: () => text, ended, end }
    },
  }
}

describe.skipIf(!hasChromium)('adding a gateway', () => {
  let server: TestServer
  let owner: Device
  const dialog = () => owner.page.getByRole('dialog', { name: 'Add a gateway' })
  const commandText = async () => String(await dialog().locator('code').textContent())

  beforeAll(async () => {
    server = await startTestServer()
    owner = await openDevice(server)
    await setUpOwner(owner.page, server)
    await owner.page.getByRole('link', { name: 'Gateways' }).first().click()
  })
  afterAll(async () => {
    await owner?.close()
    await server?.stop()
  })

  test('from its name to “connected”, by keyboard and with the command as it is shown', LONG, async () => {
    const { page } = owner
    await page.getByRole('heading', { name: 'No gateway yet' }).waitFor()
    await inspect(page, 'gateways-none')
    await page.getByRole('button', { name: 'Add a gateway' }).focus()
    await page.keyboard.press('Enter')
    await dialog().waitFor()
    expect(await page.evaluate('document.activeElement.tagName')).toBe('INPUT')
    await inspect(page, 'gateway-add-name')
    await page.keyboard.type('Mac mini im Büro für Öffentlichkeitsarbeit')
    await page.keyboard.press('Enter')
    await dialog().getByRole('status').getByText('Waiting for the gateway').waitFor()
    await eventually('the focus is on what is done next', () =>
      page.evaluate(`document.activeElement.textContent === 'Copy the command'`),
    )
    await inspect(page, 'gateway-add-command')

    await owner.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.url })
    await page.keyboard.press('Enter')
    await dialog().getByRole('button', { name: 'Copied' }).waitFor()
    const command = String(await page.evaluate('navigator.clipboard.readText()'))
    expect(command).toBe(await commandText())
    const token = /hqreg_[\w-]+/.exec(command)?.[0] ?? ''
    // In the environment of the first step: in nobody's arguments, in no address.
    expect(command).toMatch(new RegExp(`^HQ_SERVER_URL=${server.url} HQ_REGISTRATION_TOKEN=${token} npm run `))

    const here = await machine()
    const gateway = here.run(command)
    await eventually('it registers', async () => gateway.text().includes('This machine is the gateway'), 60_000)
    await dialog()
      .getByRole('status')
      .getByText('“Mac mini im Büro für Öffentlichkeitsarbeit” is connected')
      .waitFor({ timeout: 60_000 })
      .catch((error: unknown) => {
        throw new Error(gateway.text(), { cause: error })
      })
    expect(await dialog().locator('code').count()).toBe(0)
    await inspect(page, 'gateway-add-connected')
    await dialog().getByRole('button', { name: 'Done' }).click()
    await dialog().waitFor({ state: 'detached' })
    const card = page.getByRole('article', { name: 'Mac mini im Büro für Öffentlichkeitsarbeit' })
    await card.getByText('Online').waitFor()
    await card.getByText(/^HQ \d/).waitFor()
    await inspect(page, 'gateways-one')

    // The token is nowhere but in the command: not in what was printed, not in what the gateway keeps.
    expect(gateway.text()).not.toContain(token)
    expect(await readdir(join(here.home, 'gateway'))).toContain('credentials.json')
    expect((await stat(join(here.home, 'gateway/credentials.json'))).mode & 0o777).toBe(0o600)

    const thief = (await machine()).run(command)
    expect(await thief.ended).not.toBe(0)
    expect(thief.text()).toContain('already been used by another gateway')
    expect(await server.rows('select label from gateways')).toEqual([
      { label: 'Mac mini im Büro für Öffentlichkeitsarbeit' },
    ])
  })

  test(
    'a token that nobody has used yet is listed, and can be withdrawn from the list and in the dialog',
    LONG,
    async () => {
      const { page } = owner
      const open = page.getByRole('region', { name: 'Tokens that nobody has used' })
      const make = async (name: string) => {
        await page.getByRole('button', { name: 'Add a gateway' }).click()
        await dialog().getByLabel('Name').fill(name)
        await dialog().getByRole('button', { name: 'Make the command' }).click()
        return commandText()
      }
      const first = await make('Attic')
      await dialog().getByRole('button', { name: 'Withdraw the token' }).click()
      await dialog().getByText('The token was withdrawn').waitFor()
      await dialog().getByRole('button', { name: 'Make another' }).waitFor()
      await page.keyboard.press('Escape')
      const second = await make('Cellar')
      await page.keyboard.press('Escape')
      await open.getByText('Cellar').waitFor()
      expect(await open.getByRole('listitem').count()).toBe(1)
      await inspect(page, 'gateways-open-token')
      await open.getByRole('button', { name: 'Withdraw the token of Cellar' }).click()
      await open.waitFor({ state: 'detached' })
      for (const command of [first, second]) {
        const refused = (await machine()).run(command)
        expect(await refused.ended).not.toBe(0)
        expect(refused.text()).toContain('was withdrawn')
      }
    },
  )

  test('a member sees the gateways, and nothing to add, pause or retire one with', LONG, async () => {
    const path = await invite(owner.page)
    const member = await openDevice(server)
    onTestFinished(() => member.close())
    await joinByLink(member.page, server, path, {
      name: 'Mia',
      email: 'mia@example.com',
      password: 'long enough, that',
    })
    await member.page.getByRole('link', { name: 'Gateways' }).first().click()
    const card = member.page.getByRole('article').first()
    await card.getByText(/^HQ \d/).waitFor()
    expect(await member.page.getByRole('main').getByRole('button').count()).toBe(0)
    expect(await member.page.getByRole('button', { name: 'Add a gateway' }).count()).toBe(0)
  })

  test('retired, it is gone from the list and let in no more', LONG, async () => {
    const { page } = owner
    await page.getByRole('link', { name: 'Gateways' }).first().click()
    await page.getByRole('button', { name: /^More about/ }).click()
    await page.getByRole('menuitem', { name: /^Retire/ }).click()
    const confirm = page.getByRole('alertdialog')
    await confirm.waitFor()
    await inspect(page, 'gateway-retire')
    await confirm.getByRole('button', { name: 'Retire' }).click()
    await page.getByRole('heading', { name: 'No gateway yet' }).waitFor()
    expect(await server.rows('select 1 from gateway_credentials where revoked_at is null')).toEqual([])
  })

  test('offline the button says why it cannot be used, and works when the server is back', LONG, async () => {
    const { page } = owner
    await page.getByRole('button', { name: 'Add a gateway' }).click()
    const make = dialog().getByRole('button', { name: 'Make the command' })
    expect(await make.isEnabled()).toBe(true)
    await server.kill()
    await eventually('offline', async () => (await statusOf(page))?.status.connection === 'offline')
    await dialog().getByText('Needs the server, and it can’t be reached now.').waitFor()
    expect(await make.isEnabled()).toBe(false)
    const described = await make.getAttribute('aria-describedby')
    expect(await page.locator(`[id="${described}"]`).textContent()).toContain('Needs the server')
    await inspect(page, 'gateway-add-offline')
    await server.start()
    await eventually('it can be used again', () => make.isEnabled(), 60_000)
    await make.click()
    await dialog().getByRole('status').getByText('Waiting for the gateway').waitFor()
  })
})
